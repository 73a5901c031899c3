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
	"cmp"
	"slices"
)

// RewriteOptions says what a request becomes on its way to the upstream.
type RewriteOptions struct {
	// Name is the name of the function tool. A tool of the client that has it
	// makes ours take another, by a number at its end.
	Name string

	// Offer gives the tool to a request that does not ask for it.
	Offer bool
}

// Edited is a request with the edits that all its turns share. It may be used
// by one goroutine at a time; what it returned stays as it is.
type Edited struct {
	// Name is the name by which the upstream knows the tool, "" if the request
	// goes without it.
	Name string

	req      *Request
	edits    []edit // in order
	choice   Choice
	allowed  []edit // tools of an allowed_tools choice that are ours
	alone    bool   // such a choice allows all tools that there are
	mode     value  // the mode of such a choice, when that is "required"
	nonEmpty bool   // the object has a member before those that are added
	messages bool   // there is one to be followed by a comma
}

// edit puts text in place of a range.
type edit struct {
	span
	text     []byte
	appended bool // the messages of the turn stand here
}

// Rewrite prepares a request for the upstream: the session id goes (with it a
// metadata that has nothing else), the code interpreter becomes a function
// tool, and tool_choice names that function. Everything else keeps its bytes.
// A request without the tool, unless it is offered, only loses its session id,
// and so does one with a Duplicate, which must not get the tool.
func (r *Request) Rewrite(o RewriteOptions) *Edited {
	e := &Edited{req: r, nonEmpty: r.left > 0, messages: r.holds(keyMessages)}
	for _, c := range r.cuts {
		e.replace(c, nil)
	}
	if r.Duplicate == "" && (r.HasTool || o.Offer && r.canOffer()) {
		clients := r.ClientTools()
		e.Name = clients.free(o.Name)
		if r.HasTool {
			e.replaceTools()
		} else {
			e.offer()
		}
		e.prepareChoice(o.Name, clients)
	}
	slices.SortFunc(e.edits, compareEdits)
	return e
}

// Changed says whether the request differs from what the client sent.
func (e *Edited) Changed() bool { return len(e.edits) > 0 }

func (e *Edited) replace(at span, text []byte) {
	e.edits = append(e.edits, edit{span: at, text: text})
}

// replaceTools puts the function tool where ours stood first and cuts out what
// other ones there are.
func (e *Edited) replaceTools() {
	var list cutter
	placed := false
	for t := range e.req.tools() {
		if t.ours && placed {
			list.drop(t.start, t.end)
			continue
		}
		if cut := list.keep(t.start, t.end); cut.present() {
			e.replace(cut, nil)
		}
		if t.ours {
			e.replace(t.span, functionTool(e.Name))
			placed = true
		}
	}
	if cut := list.close(); cut.present() {
		e.replace(cut, nil)
	}
}

// canOffer says whether the request has a place for a tool: its tools are a
// list, null, or not there.
func (r *Request) canOffer() bool {
	switch r.values[keyTools].first {
	case 0, 'n', '[':
		return true
	}
	return false
}

// offer adds the function tool to the client's, or the member if there is none.
func (e *Edited) offer() {
	text := functionTool(e.Name)
	switch v := e.req.values[keyTools]; v.first {
	case '[':
		if e.req.holds(keyTools) {
			text = slices.Concat([]byte(","), text)
		}
		e.replace(span{v.end - 1, v.end - 1}, text)
	case 'n':
		e.replace(v.span, slices.Concat([]byte("["), text, []byte("]")))
	default:
		e.replace(span{e.req.end, e.req.end}, e.newMember(`"tools":[`+string(text)+`]`))
		e.nonEmpty = true
	}
}

// newMember returns the text of a member that is added at the object's end.
func (e *Edited) newMember(text string) []byte {
	if e.nonEmpty {
		text = "," + text
	}
	return []byte(text)
}

// functionTool returns the tool as the upstream gets it. It has no "strict",
// which some upstreams refuse.
func functionTool(name string) []byte {
	text := make([]byte, 0, len(beforeName)+len(name)+len(`""`)+len(afterName))
	return append(appendQuoted(append(text, beforeName...), name), afterName...)
}

const (
	beforeName = `{"type":"function","function":{"name":`
	afterName  = `,"description":"Runs Python code and returns what it prints (stdout and stderr) and the value of its last expression. ` +
		`Variables, imports and files stay from one call to the next. ` +
		`Use it for calculations, data analysis and plots, without asking for permission first.",` +
		`"parameters":{"type":"object","properties":{"code":{"type":"string","description":"The Python source code to run."}},"required":["code"]}}}`
)

func compareEdits(a, b edit) int {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
}
