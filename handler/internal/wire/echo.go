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
	"crypto/rand"
	"encoding/json"
	"slices"
	"strconv"
)

// Settle gives each call an id that no other call of the request has, and a
// call without a name that of our tool, for the history only: upstreams refuse
// one without. used holds the ids that are taken; those of the turn are added.
func (a *Answer) Settle(used map[string]bool, tool string) {
	turn := map[string]bool{}
	for _, c := range a.Calls() {
		for c.ID == "" || turn[c.ID] {
			if id := NewID(); !used[id] {
				c.ID, c.given = id, true
			}
		}
		turn[c.ID] = true
		used[c.ID] = true
		if c.echoed = c.Name; c.echoed == "" {
			c.echoed = tool
		}
	}
}

// NewID returns an id for a tool call: nine letters and digits, the form that
// the strictest upstream accepts: https://github.com/nearai/ironclaw/issues/1241
func NewID() string { return rand.Text()[:9] }

// responseOnly are members of a message that upstreams send but refuse, when
// they say nothing.
var responseOnly = []string{"refusal", "audio", "function_call", "annotations"}

// usualText is the room in bytes that most echoes and elements need.
const usualText = 512

// Echoed is a settled call as it goes back to the upstream.
type Echoed struct {
	Call *Call
	// Arguments are those of its Program, a JSON string.
	Arguments []byte
	// Ours says that it is of our tool, which was declared as a function.
	Ours bool
}

// Echo returns the message of the assistant as it goes back to the upstream,
// with the given calls. What was refused before is left out.
func (a *Answer) Echo(calls []Echoed, without Dropped) []byte {
	dst := append(make([]byte, 0, usualText), `{"role":"assistant"`...)
	if a.message.get("content") == nil {
		dst = append(append(dst, ','), without.content(&part{name: []byte(`"content"`), kind: 'n', value: []byte("null")})...)
	}
	for i := range a.message {
		switch p := &a.message[i]; {
		case p.empty() && contains(responseOnly, p.name), without.has(p.name):
		case string(p.name) == `"content"`:
			dst = append(append(dst, ','), without.content(p)...)
		default:
			dst = p.append(append(dst, ','))
		}
	}
	if len(calls) > 0 {
		dst = append(dst, `,"tool_calls":[`...)
		for i, c := range calls {
			dst = c.Call.appendCall(append(separated(dst, i), '{'), c.Call.echoed, c.Arguments, c.Call.custom && !c.Ours, without)
		}
		dst = append(dst, ']')
	}
	return validJSON(append(dst, '}'))
}

// ToolMessage returns the message with the result of a settled call.
func ToolMessage(c *Call, content string) []byte {
	dst := append(appendQuoted([]byte(`{"role":"tool","tool_call_id":`), c.ID), `,"name":`...)
	dst = append(appendQuoted(dst, c.echoed), `,"content":`...)
	return append(appendQuoted(dst, content), '}')
}

// ExecutedTool is an element of executed_tools, in the shape that Groq's SDKs
// know: https://console.groq.com/docs/api-reference#chat-create
type ExecutedTool struct {
	Index int
	// Name is that of our tool.
	Name string
	// Arguments are those of its Program, a JSON string.
	Arguments []byte
	// Output is the result for the model, nil before there is one.
	Output *string
	// Results is the array code_results in JSON, nil for none.
	Results []byte
}

// JSON returns the element.
func (e *ExecutedTool) JSON() []byte {
	dst := strconv.AppendInt(append(make([]byte, 0, usualText), `{"index":`...), int64(e.Index), 10)
	dst = append(dst, `,"type":"python","name":`...)
	dst = append(appendQuoted(dst, e.Name), `,"arguments":`...)
	dst = append(dst, validUTF8(e.Arguments)...)
	if e.Output != nil {
		dst = appendQuoted(append(dst, `,"output":`...), *e.Output)
	}
	if e.Results != nil {
		dst = append(append(dst, `,"code_results":`...), e.Results...)
	}
	return append(dst, '}')
}

// validJSON mends what an upstream got wrong in strings that are sent back:
// raw control characters, bad escapes, bytes that are no UTF-8.
func validJSON(v []byte) []byte {
	v = validUTF8(v)
	if json.Valid(v) {
		return v
	}
	if repaired, ok := repairJSON(string(v)); ok {
		return repaired
	}
	return v
}

// Fields returns the names of the members that an echo has beyond those of
// every message, longest first, so that a name is not taken for another one
// that it contains.
func (a *Answer) Fields() []string {
	var names []string
	add := func(ps parts) {
		for _, p := range ps {
			if name := string(p.name[1 : len(p.name)-1]); name != "content" {
				names = append(names, name)
			}
		}
	}
	add(a.message)
	for _, c := range a.Calls() {
		add(c.extra)
		add(c.inner)
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(names)
}

// Dropped is what an upstream refused of an echo.
type Dropped struct {
	// Names are members to leave out.
	Names []string
	// FlipContent exchanges a content of null and of "".
	FlipContent bool
}

func (d Dropped) has(name []byte) bool { return contains(d.Names, name) }

// content returns the member content, null and "" exchanged if that is wanted.
func (d Dropped) content(p *part) []byte {
	switch {
	case !d.FlipContent || !p.empty():
		return p.append(nil)
	case p.kind == 'n':
		return []byte(`"content":""`)
	}
	return []byte(`"content":null`)
}
