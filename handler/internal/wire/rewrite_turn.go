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
	"bytes"
	"slices"
)

// TurnChoice is what becomes of tool_choice in a turn.
type TurnChoice int

// What a turn may do with tool_choice.
const (
	AsAsked  TurnChoice = iota // as the client wants it: the first turn
	Unforced                   // nothing is forced any more: later turns
	NoTools                    // "none": no further call is wanted
)

// Edit puts Text in place of the bytes from Start to End of the client's body.
type Edit struct {
	Start, End int
	Text       []byte
}

// Turn is what one request to the upstream has beyond the rewritten body.
type Turn struct {
	// Appended are messages, as JSON, that follow those of the client. They
	// are not copied and must not change any more.
	Appended [][]byte

	// Choice is what becomes of tool_choice.
	Choice TurnChoice

	// Edits are further changes, to be made inside messages only and without
	// overlap. ReplaceMessage makes them.
	Edits []Edit
}

// ReplaceMessage puts other messages, at least one, in the place of m.
func ReplaceMessage(m Message, raw ...[]byte) Edit {
	return Edit{m.Start, m.End, bytes.Join(raw, []byte(","))}
}

// Turn returns the body of a turn. The client's bytes are referred to, not
// copied; the list of references is what a turn costs. A request whose
// messages are no array (HasMessages) gets none appended.
func (e *Edited) Turn(t Turn) *Segments {
	var few [24]edit
	edits := append(few[:0], e.edits...)
	if e.Name != "" {
		edits = e.choose(edits, t.Choice)
	}
	for _, x := range t.Edits {
		edits = append(edits, edit{span: span{x.Start, x.End}, text: x.Text})
	}
	if len(t.Appended) > 0 && e.req.HasMessages() {
		at := e.req.values[keyMessages].end - 1
		edits = append(edits, edit{span: span{at, at}, appended: true})
	}
	slices.SortStableFunc(edits, compareEdits)

	// At most: a piece before each edit and its text, a comma and a text for each
	// message, and a piece of each block.
	s := newSegments(e.req.body, 2*(len(edits)+len(t.Appended))+len(e.req.body.blocks))
	at, rest := 0, e.req.body.cursor()
	for _, x := range edits {
		rest.copy(s, at, x.start)
		s.add(x.text)
		if x.appended {
			e.appendMessages(s, t.Appended)
		}
		at = max(at, x.end)
	}
	rest.copy(s, at, e.req.body.size)
	return s
}

var comma = []byte(",")

func (e *Edited) appendMessages(s *Segments, list [][]byte) {
	for i, raw := range list {
		if i > 0 || e.messages {
			s.add(comma)
		}
		s.add(raw)
	}
}

// prepareChoice notes what there is to edit in tool_choice.
func (e *Edited) prepareChoice(name string, clients Names) {
	r := e.req
	e.choice = r.Choice(name)
	if e.choice != ChoiceAllowed {
		return
	}
	v := r.values[keyToolChoice]
	list := r.find(v, "allowed_tools")
	if list.first != '{' {
		list = v // the flat form of the Responses API
	}
	if mode := r.find(list, "mode"); mode.first == '"' {
		if text, _ := r.text(mode); text == "required" {
			e.mode = mode
		}
	}
	tools := r.find(list, "tools")
	if tools.first != '[' {
		return
	}
	s := newScanner(r.body, tools.start+1)
	for begun, listed := false, 0; ; listed++ {
		c, more, ok := s.element(&begun)
		start := s.offset() - 1
		if !more || !ok || !s.value(c) {
			e.alone = len(e.allowed) == listed && len(clients) == 0 && !r.HasUnnamedTool()
			return
		}
		v := value{span{start, s.offset()}, c}
		if r.meansUs(v, name, clients) {
			e.allowed = append(e.allowed, edit{span: v.span, text: functionChoice(e.Name)})
		}
	}
}

// choose appends the edits of tool_choice.
func (e *Edited) choose(edits []edit, c TurnChoice) []edit {
	v := e.req.values[keyToolChoice]
	switch {
	case c == NoTools && v.first == 0:
		end := e.req.end
		return append(edits, edit{span: span{end, end}, text: e.newMember(`"tool_choice":"none"`)})
	case c == NoTools:
		return append(edits, edit{span: v.span, text: []byte(`"none"`)})
	case e.choice == ChoiceAllowed && (c == AsAsked || !e.alone):
		edits = append(edits, e.allowed...)
		if c == Unforced && e.mode.first != 0 {
			edits = append(edits, edit{span: e.mode.span, text: []byte(`"auto"`)})
		}
		return edits
	case c == AsAsked && e.choice == ChoiceOurs:
		return append(edits, edit{span: v.span, text: functionChoice(e.Name)})
	case c == AsAsked || e.choice == ChoiceUnset || e.choice == ChoiceAuto || e.choice == ChoiceNone:
		return edits
	}
	return append(edits, edit{span: v.span, text: []byte(`"auto"`)})
}

// functionChoice returns the tool_choice, or the element of one, that names a
// function.
func functionChoice(name string) []byte {
	text := append([]byte(nil), `{"type":"function","function":{"name":`...)
	return append(appendQuoted(text, name), '}', '}')
}
