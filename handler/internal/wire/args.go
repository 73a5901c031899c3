// Copyright 2026 The Caddy Code Interpreter Authors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package wire

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Program is what the arguments of a call for our tool say.
type Program struct {
	// Code is the program, "" when there is none to run.
	Code string
	// Echo is the arguments as they go back to the upstream: a JSON string
	// that holds an object.
	Echo []byte
	// Problem tells the model why nothing is run.
	Problem string
}

// Why nothing is run, in words for the model.
const (
	problemNoCode = "Error: the call has no program. Call the tool again with arguments that are a JSON object " +
		"with the Python program as the string `code`."
	problemCutOff = "Error: the arguments of the call are not valid JSON or are incomplete, so nothing was run. Call the tool again " +
		"with a JSON object that has the whole Python program as the string `code`."
	problemAmbiguous = "Error: the arguments of the call name more than one program, so nothing was run. Call the tool again " +
		"with a JSON object that has one Python program as the string `code`."
	problemLanguage = "Error: only Python is supported, nothing was run. Call the tool again with a Python program as the string `code`."
)

// noArguments are the arguments that stand in for ones that cannot be sent
// back.
var noArguments = []byte(`"{}"`)

// UnknownTool tells the model that it called a tool that does not exist.
func UnknownTool(name, ours string) string {
	return fmt.Sprintf("Error: there is no tool named %q. The Python tool is named %q.", name, ours)
}

// Program reads the arguments of a call. Only text that says beyond doubt what
// the model meant is repaired; a part of a program is never run.
func (c *Call) Program() Program {
	a, ok := c.argument()
	if !ok {
		return Program{Echo: noArguments, Problem: problemCutOff}
	}
	r := reading{tool: c.Name, depth: maxNesting}
	var p Program
	if a.isJSON {
		p.Code, p.Problem = r.value([]byte(trimSpace(a.text)))
	} else {
		p.Code, p.Problem = r.text(a.text)
	}
	switch {
	case a.isJSON && isObject(a.text):
		p.Echo = a.verbatim
	case p.Problem != "":
		p.Echo = noArguments
	default:
		p.Echo = appendQuoted(nil, string(append(appendQuoted([]byte(`{"code":`), p.Code), '}')))
	}
	return p
}

// Foreign reads the arguments of a call that is not ours, to send them back.
func (c *Call) Foreign() Program {
	if a, ok := c.argument(); ok && (c.custom || a.isJSON && isObject(a.text)) {
		return Program{Echo: a.verbatim}
	}
	return Program{Echo: noArguments}
}

// argument is the arguments of a call.
type argument struct {
	text     string
	verbatim []byte // the text as a JSON string, the way it came
	isJSON   bool   // the text is a JSON value
}

// argument returns the arguments. It is false when they are no text.
func (c *Call) argument() (argument, bool) {
	if len(c.args) == 0 {
		return newArgument(string(c.object), appendQuoted(nil, string(c.object))), true
	}
	body := quoted(c.args)
	text, ok := unquote(body)
	if !ok {
		repaired, _, _ := repairString(c.args)
		body = quoted(repaired)
		if text, ok = unquote(body); !ok {
			return argument{}, false
		}
	}
	a := newArgument(text, body)
	if !a.isJSON {
		if snapshot, ok := lastSnapshot(text, c.pieces()); ok {
			return newArgument(snapshot, appendQuoted(nil, snapshot)), true
		}
	}
	return a, true
}

func newArgument(text string, verbatim []byte) argument {
	return argument{text: text, verbatim: verbatim, isJSON: json.Valid([]byte(text))}
}

// isObject says whether a text starts like an object.
func isObject(s string) bool { return firstByte(s) == '{' }

// unfence takes off one Markdown fence around the whole of s. language is what
// the fence says that it holds.
func unfence(s string) (inner, language string, ok bool) {
	const mark = "```"
	s = strings.TrimSpace(s)
	if len(s) < 2*len(mark) || !strings.HasPrefix(s, mark) || !strings.HasSuffix(s, mark) {
		return "", "", false
	}
	first, rest, ok := strings.Cut(s[len(mark):len(s)-len(mark)], "\n")
	if !ok {
		return "", "", false
	}
	// Other fences within are text of the program, or more than one program.
	if rest = strings.TrimRight(rest, " \t"); strings.Contains("\n"+rest, "\n"+mark) {
		return "", "", false
	}
	language = strings.ToLower(strings.TrimSpace(first))
	if strings.ContainsAny(language, " \t`'\"(){}[]=") {
		return "", "", false
	}
	return strings.TrimSuffix(strings.TrimSuffix(rest, "\n"), "\r"), language, true
}
