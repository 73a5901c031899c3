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

// Completion makes one answer in JSON for the client out of the answers of
// several turns.
type Completion struct {
	// Tools says whose calls the client may see.
	Tools *Tools

	hidden parts // strings of earlier turns, to stand before those of the last
	turns  int
}

// joined are the members whose text the client gets from every turn, as it
// does in a stream.
var joined = []string{"content", "reasoning_content", "reasoning"}

// Hide ends a turn after which another one comes.
func (n *Completion) Hide(a *Answer) {
	n.turns++
	var few tally
	for i := range a.message {
		p := &a.message[i]
		if !contains(joined, p.name) {
			continue
		}
		text := p.text()
		if p.kind == '[' {
			body := appendQuoted(nil, contentText(p.appendValue(nil)))
			text = string(body[1 : len(body)-1])
		}
		if text != "" {
			n.hidden.member(p.name, &few).add(quoted([]byte(text)), inPieces(&few))
		}
	}
}

// Outcome is what the client has to know beside the last answer.
type Outcome struct {
	// Finish is the finish_reason.
	Finish string
	// Usage is the sum of the turns, nil for none.
	Usage []byte
	// Executed is the array of executed_tools, nil for none.
	Executed []byte
	// Calls are the calls that are the client's.
	Calls []*Call
}

// Final returns the answer for the client. c is the whole answer of the last
// turn, nil when it was streamed.
func (n *Completion) Final(c *Chunk, a *Answer, o Outcome) []byte {
	if c == nil {
		return n.folded(a, o)
	}
	if n.unchanged(c, a, o) {
		return c.data
	}
	dst := []byte{'{'}
	for _, m := range c.top {
		switch {
		case m.is(c.data, "usage") && o.Usage != nil:
		case m.value == c.choices:
			dst = append(appendMember(dst, "choices", []byte("[")), '{')
			dst = append(n.appendChoice(dst, c, a, o), "}]"...)
		default:
			dst = appendRaw(dst, m.raw(c.data))
		}
	}
	if o.Usage != nil {
		dst = appendMember(dst, "usage", o.Usage)
	}
	return append(dst, '}')
}

// unchanged says whether the answer can go to the client as it came.
func (n *Completion) unchanged(c *Chunk, a *Answer, o Outcome) bool {
	return n.turns == 0 && o.Executed == nil && len(o.Calls) == len(a.Calls()) && !c.functionCall.present() &&
		o.Finish == c.FinishReason() && !slices.ContainsFunc(o.Calls, n.mended)
}

// mended says whether a call is not as the upstream sent it, since its client
// could not use that.
func (n *Completion) mended(call *Call) bool {
	_, name := n.Tools.Owner(call.Name)
	return call.given || call.object != nil || call.mended || name != call.Name
}

func (n *Completion) appendChoice(dst []byte, c *Chunk, a *Answer, o Outcome) []byte {
	finished := false
	for _, m := range c.choice {
		switch {
		case m.value == c.message:
			dst = appendMember(dst, "message", n.message(a, o))
		case m.is(c.data, "finish_reason"):
			finished = true
			dst = appendMember(dst, "finish_reason", appendQuoted(nil, o.Finish))
		default:
			dst = appendRaw(dst, m.raw(c.data))
		}
	}
	if !finished {
		dst = appendMember(dst, "finish_reason", appendQuoted(nil, o.Finish))
	}
	return dst
}

// message returns the message of the last answer as the client sees it.
func (n *Completion) message(a *Answer, o Outcome) []byte {
	dst := []byte(`{"role":"assistant"`)
	names := map[string]bool{}
	for i := range a.message {
		p := a.message[i]
		names[string(p.name)] = true
		dst = append(append(append(dst, ','), p.name...), ':')
		dst = append(dst, n.prefixed(&p)...)
	}
	for i := range n.hidden {
		if p := &n.hidden[i]; !names[string(p.name)] {
			names[string(p.name)] = true
			dst = p.append(append(dst, ','))
		}
	}
	if !names[`"content"`] {
		dst = appendMember(dst, "content", []byte("null"))
	}
	if len(o.Calls) > 0 {
		dst = appendMember(dst, "tool_calls", n.calls(o.Calls))
	}
	if o.Executed != nil {
		dst = appendMember(dst, "executed_tools", o.Executed)
	}
	return append(dst, '}')
}

// prefixed returns the value of a member with the text of earlier turns before
// it, unless it has too many parts.
func (n *Completion) prefixed(p *part) []byte {
	before := n.hidden.get(string(p.name[1 : len(p.name)-1]))
	if before == nil {
		return p.appendValue(nil)
	}
	both := part{kind: before.kind, value: bytes.Clone(before.value)}
	var parts tally
	if both.add(p.appendValue(nil), inPieces(&parts)); parts.full() {
		return p.appendValue(nil)
	}
	return both.appendValue(nil)
}

// calls returns the client's calls under the names that it knows.
func (n *Completion) calls(calls []*Call) []byte {
	dst := []byte{'['}
	for i, call := range calls {
		_, name := n.Tools.Owner(call.Name)
		dst = call.appendCall(append(separated(dst, i), '{'), name, call.argumentString(), call.custom, Dropped{})
	}
	return append(dst, ']')
}

// folded makes a completion of an answer that was streamed although JSON was
// asked for: https://github.com/quangdang46/openproxy/issues/306
func (n *Completion) folded(a *Answer, o Outcome) []byte {
	dst := []byte{'{'}
	dst = appendMember(dst, "id", idOf(a.id))
	dst = appendMember(dst, "object", []byte(`"chat.completion"`))
	dst = appendMember(dst, "created", createdOf(a.created))
	if len(a.model) > 0 {
		dst = appendMember(dst, "model", a.model)
	}
	dst = append(appendMember(dst, "choices", []byte(`[{"index":0,"message":`)), n.message(a, o)...)
	dst = append(append(append(dst, `,"finish_reason":`...), appendQuoted(nil, o.Finish)...), "}]"...)
	if o.Usage != nil {
		dst = appendMember(dst, "usage", o.Usage)
	}
	return append(dst, '}')
}
