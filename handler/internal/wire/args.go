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
	"regexp"
	"slices"
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

// Program reads the arguments of a call. Only text that says beyond doubt what
// the model meant is repaired; a part of a program is never run.
func (c *Call) Program() Program {
	if len(c.args) == 0 && c.object != nil {
		return programOf(string(c.object), nil, nil)
	}
	plain, ok := c.Arguments()
	if !ok {
		repaired, _ := repairString(c.args)
		if plain, ok = unquote(quoted(repaired)); !ok {
			return Program{Echo: []byte(`"{}"`), Problem: problemCutOff}
		}
	}
	return programOf(plain, c.pieces(), c.args)
}

// Foreign reads the arguments of a call that is not ours, to send them back.
func (c *Call) Foreign() Program {
	plain, ok := c.Arguments()
	switch {
	case len(c.args) == 0 && c.object != nil && isObject(string(c.object)):
		return Program{Echo: appendQuoted(nil, string(c.object))}
	case ok && isObject(plain) && json.Valid([]byte(plain)):
		return Program{Echo: quoted(c.args)}
	}
	return Program{Echo: []byte(`"{}"`)}
}

// Why nothing is run, in words for the model.
const (
	problemNoCode = "Error: the call has no program. Call the tool again with arguments that are a JSON object " +
		"with the Python program as the string `code`."
	problemCutOff = "Error: the arguments of the call are not valid JSON or are incomplete, so nothing was run. Call the tool again " +
		"with a JSON object that has the whole Python program as the string `code`."
	problemLanguage = "Error: only Python is supported, nothing was run. Call the tool again with a Python program as the string `code`."
)

// programOf reads arguments. raw is their escaped form, kept for the echo when
// it already is what an upstream expects.
func programOf(plain string, pieces []string, raw []byte) Program {
	argument := plain
	r := reading{depth: maxNesting}
	whole := json.Valid([]byte(plain))
	if !whole {
		if snapshot, ok := lastSnapshot(plain, pieces); ok {
			argument, whole = snapshot, true
		}
	}
	code, problem := r.text(argument)
	p := Program{Code: code, Problem: problem}
	switch {
	case whole && isObject(argument) && argument == plain && raw != nil:
		p.Echo = quoted(raw)
	case whole && isObject(argument):
		p.Echo = appendQuoted(nil, argument)
	case problem != "":
		p.Echo = []byte(`"{}"`)
	default:
		object := append(appendQuoted([]byte(`{"code":`), code), '}')
		p.Echo = appendQuoted(nil, string(object))
	}
	return p
}

func isObject(s string) bool { return strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{") }

// lastSnapshot finds out whether pieces are not parts of the arguments but
// repetitions of them: the whole once more at the end, twice the same, or each
// piece the one before and more.
func lastSnapshot(plain string, pieces []string) (string, bool) {
	if half := len(plain) / 2; len(plain)%2 == 0 && half > 0 && plain[:half] == plain[half:] && json.Valid([]byte(plain[half:])) {
		return plain[half:], true
	}
	if len(pieces) < 2 {
		return "", false
	}
	last := pieces[len(pieces)-1]
	if !isObject(last) || !json.Valid([]byte(last)) {
		return "", false
	}
	growing := true
	for i := 1; i < len(pieces); i++ {
		growing = growing && strings.HasPrefix(pieces[i], pieces[i-1])
	}
	before := plain[:len(plain)-len(last)]
	if growing || strings.HasPrefix(last, before) {
		return last, true
	}
	return "", false
}

// maxNesting is how often a call may be wrapped in another form of itself.
const maxNesting = 4

// reading interprets arguments, however they are wrapped.
type reading struct {
	depth int
}

// text interprets arguments that came as a string.
func (r reading) text(s string) (code, problem string) {
	if r.depth--; r.depth < 0 {
		return "", problemNoCode
	}
	trimmed := strings.TrimSpace(s)
	if trimmed == "" {
		return "", problemNoCode
	}
	if json.Valid([]byte(trimmed)) {
		return r.value([]byte(trimmed))
	}
	if inner, language, ok := unfence(s); ok {
		if language == "json" {
			return r.text(inner)
		}
		return pythonOnly(inner, language)
	}
	switch trimmed[0] {
	case '{', '[', '"':
	default:
		return s, "" // no JSON at all: the program itself
	}
	if repaired, ok := repairJSON(trimmed); ok {
		return r.value(repaired)
	}
	return "", problemCutOff
}

// value interprets arguments that are valid JSON.
func (r reading) value(v []byte) (code, problem string) {
	if r.depth--; r.depth < 0 {
		return "", problemNoCode
	}
	switch v[0] {
	case '"':
		s, _ := unquote(v)
		return r.text(s)
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(v, &list) == nil && len(list) == 1 {
			return r.value(list[0])
		}
	case '{':
		return r.object(v)
	}
	return "", problemNoCode
}

// synonyms are what models call `code` when they leave it out.
var synonyms = []string{"input", "script", "python", "source", "cmd"}

func (r reading) object(v []byte) (code, problem string) {
	var o map[string]json.RawMessage
	if json.Unmarshal(v, &o) != nil {
		return "", problemCutOff
	}
	var language string
	if raw, ok := o["language"]; ok {
		language, _ = unquote(raw)
	}
	if !isPython(language) {
		return "", problemLanguage
	}
	if raw, ok := o["code"]; ok && !isNull(raw) {
		return r.code(raw)
	}
	for _, name := range []string{"arguments", "parameters"} {
		if raw, ok := o[name]; ok && (raw[0] == '{' || raw[0] == '"') {
			return r.value(raw)
		}
	}
	var found json.RawMessage
	for _, name := range synonyms {
		if raw, ok := o[name]; ok && raw[0] == '"' {
			if found != nil {
				return "", problemNoCode
			}
			found = raw
		}
	}
	if found == nil {
		return "", problemNoCode
	}
	return r.code(found)
}

// code interprets the value of `code`: a program, or the call once more.
func (r reading) code(raw []byte) (code, problem string) {
	if raw[0] == '{' {
		return r.value(raw)
	}
	s, ok := unquote(raw)
	if !ok {
		return "", problemNoCode
	}
	if nested := strings.TrimSpace(s); strings.HasPrefix(nested, "{") && r.depth > 0 {
		var o map[string]json.RawMessage
		if json.Unmarshal([]byte(nested), &o) == nil {
			if raw, ok := o["code"]; ok && len(raw) > 0 && raw[0] == '"' {
				return r.value([]byte(nested))
			}
		}
	}
	if inner, language, ok := unfence(s); ok {
		return pythonOnly(inner, language)
	}
	return pythonOnly(s, "")
}

func pythonOnly(code, language string) (string, string) {
	switch {
	case !isPython(language):
		return "", problemLanguage
	case strings.TrimSpace(code) == "":
		return "", problemNoCode
	}
	return code, ""
}

func isPython(language string) bool {
	names := []string{"", "python", "python3", "py", "py3", "ipython", "ipython3", "tool_code"}
	return slices.Contains(names, strings.ToLower(strings.TrimSpace(language)))
}

var fence = regexp.MustCompile("(?s)^\\s*```([A-Za-z0-9_+-]*)[ \t]*\r?\n(.*?)\r?\n?[ \t]*```\\s*$")

// unfence takes off one Markdown fence around the whole of s.
func unfence(s string) (inner, language string, ok bool) {
	m := fence.FindStringSubmatch(s)
	if m == nil || strings.Contains("\n"+m[2], "\n```") {
		return "", "", false
	}
	return m[2], strings.ToLower(m[1]), true
}

// UnknownTool tells the model that it called a tool that does not exist.
func UnknownTool(name, ours string) string {
	return fmt.Sprintf("Error: there is no tool named %q. The Python tool is named %q.", name, ours)
}
