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
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Answer is what an upstream says in one turn: the message of the assistant
// and how the turn ended. Chunks of a stream and a whole completion are read
// alike.
type Answer struct {
	// Usage is the last usage of the turn, in JSON; nil when there was none.
	Usage []byte
	// Finish is the finish_reason, "" when there was none.
	Finish string
	// Done says that the stream ended with [DONE], or the answer was whole.
	Done bool
	// Failure is the error that the upstream reported inside of the answer: a
	// JSON object with a member `error`.
	Failure []byte
	// Damaged says that a part of the answer could not be read.
	Damaged bool

	id, created, model []byte // of the first chunk, in JSON

	message parts
	calls   Assembler
	legacy  Assembler // of function_call, which tool_calls replaced
	choices bool      // a choice has been seen
}

// Observe takes in the next chunk of the answer.
func (a *Answer) Observe(c *Chunk) {
	if c.usage.present() {
		a.Usage = append(a.Usage[:0], c.usage.of(c.data)...)
	}
	if c.failure.present() && a.Failure == nil {
		a.Failure = failureObject(c.data, c.failure)
	}
	if !c.hasChoice {
		return
	}
	if !a.choices {
		a.choices = true
		a.id = bytes.Clone(c.id.of(c.data))
		a.created = bytes.Clone(c.created.of(c.data))
		a.model = bytes.Clone(c.model.of(c.data))
	}
	for _, m := range c.delta {
		if m.value == c.toolCalls || m.value == c.functionCall || m.is(c.data, "tool_calls") || m.is(c.data, "role") {
			continue
		}
		a.message.merge(m.name.of(c.data), m.value.of(c.data))
	}
	a.calls.begin()
	a.legacy.begin()
	c.fragments(func(v span) { a.calls.add(v.of(c.data)) })
	if c.functionCall.present() {
		a.legacy.addLegacy(c.functionCall.of(c.data))
	}
	if c.finish.present() {
		a.Finish = c.FinishReason()
	}
}

// Fail takes an error that came as an event of its own, JSON or not.
func (a *Answer) Fail(v []byte) {
	if a.Failure != nil {
		return
	}
	if len(v) > 0 && v[0] == '{' && json.Valid(v) {
		a.Failure = append(append([]byte(`{"error":`), v...), '}')
		return
	}
	a.Failure = ErrorObject(string(bytes.ToValidUTF8(v, []byte("\uFFFD"))), "upstream_error", "")
}

// failureObject makes of an error of any form an object with a member `error`
// that clients can read.
func failureObject(data []byte, failure span) []byte {
	v := failure.of(data)
	if v[0] == '{' {
		return bytes.Clone(data)
	}
	message, ok := unquote(v)
	if !ok {
		message = string(v)
	}
	return ErrorObject(message, "upstream_error", "")
}

// ErrorObject returns an error in the form of the OpenAI API. code may be "".
func ErrorObject(message, kind, code string) []byte {
	dst := appendMember([]byte{'{'}, "message", appendQuoted(nil, message))
	dst = appendMember(dst, "type", appendQuoted(nil, kind))
	dst = appendMember(dst, "param", []byte("null"))
	if code == "" {
		dst = appendMember(dst, "code", []byte("null"))
	} else {
		dst = appendMember(dst, "code", appendQuoted(nil, code))
	}
	return append(append([]byte(`{"error":`), append(dst, '}')...), '}')
}

// Calls returns the calls of the turn in the order in which they began.
func (a *Answer) Calls() []*Call {
	if len(a.calls.calls) > 0 {
		return a.calls.calls
	}
	return a.legacy.calls
}

// Touched returns the calls of which the last chunk had a fragment.
func (a *Answer) Touched() []*Call {
	if len(a.calls.inThis) > 0 {
		return a.calls.inThis
	}
	if len(a.calls.calls) > 0 {
		return nil
	}
	return a.legacy.inThis
}

// untrusted are finish reasons after which a call is not run, however
// complete it looks: there may have been more of it, or it was refused.
var untrusted = []string{"length", "max_tokens", "model_length", "content_filter", "safety", "recitation", "error"}

// Trusted says whether the way in which the turn ended lets calls be run.
func (a *Answer) Trusted() bool {
	return a.Failure == nil && !a.Damaged && !slices.Contains(untrusted, strings.ToLower(a.Finish))
}

// Cut says that the answer broke off although its transport ended well: there
// is a call that has no end, or there is nothing at all, and no word that this
// was all. An empty answer without a finish_reason is what Ollama leaves of a
// call that it could not read:
// https://github.com/odysseus-dev/odysseus/issues/5877
func (a *Answer) Cut() bool {
	if a.Finish != "" {
		return false
	}
	calls := a.Calls()
	if len(calls) == 0 {
		return a.Text() == ""
	}
	return !a.Done && !calls[len(calls)-1].complete()
}

// HasChoice says whether the answer had the form of a completion at all.
func (a *Answer) HasChoice() bool { return a.choices }

// Text returns the text that the model wrote in this turn.
func (a *Answer) Text() string {
	p := a.message.get("content")
	if p == nil {
		return ""
	}
	return contentText(p.appendValue(nil))
}

// contentText returns the text of a content, which is a string or an array of
// parts: https://github.com/symfony/ai/issues/2422
func contentText(v []byte) string {
	if s, ok := unquote(v); ok {
		return s
	}
	var list []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(v, &list) != nil {
		return ""
	}
	var sb strings.Builder
	for _, p := range list {
		if p.Type == "text" {
			sb.WriteString(p.Text)
		}
	}
	return sb.String()
}

// Settle gives each call an id that no other call of the request has. used
// holds the ids that are taken; those of the turn are added.
func (a *Answer) Settle(used map[string]bool) {
	turn := map[string]bool{}
	for _, c := range a.Calls() {
		for c.ID == "" || turn[c.ID] {
			if id := NewID(); !used[id] {
				c.ID = id
			}
		}
		turn[c.ID] = true
		used[c.ID] = true
	}
}

// NewID returns an id for a tool call: nine letters and digits, the form that
// the strictest upstream accepts: https://github.com/nearai/ironclaw/issues/1241
func NewID() string { return rand.Text()[:9] }

// responseOnly are members of a message that upstreams send but refuse, when
// they say nothing.
var responseOnly = []string{"refusal", "audio", "function_call", "annotations"}

// Echo returns the message of the assistant as it goes back to the upstream,
// with the given calls and their arguments. Members named in without are left
// out.
func (a *Answer) Echo(calls []*Call, arguments [][]byte, without Dropped) []byte {
	dst := []byte(`{"role":"assistant"`)
	if a.message.get("content") == nil {
		dst = append(dst, `,"content":null`...)
	}
	for i := range a.message {
		p := &a.message[i]
		if p.silent() || without.has(p.name) {
			continue
		}
		dst = append(dst, ',')
		if without.FlipContent && string(p.name) == `"content"` {
			dst = append(append(dst, `"content":`...), flip(p)...)
			continue
		}
		dst = p.append(dst)
	}
	if without.FlipContent && a.message.get("content") == nil {
		dst = bytes.Replace(dst, []byte(`"content":null`), []byte(`"content":""`), 1)
	}
	for i, c := range calls {
		if i == 0 {
			dst = append(dst, `,"tool_calls":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = c.appendEcho(dst, arguments[i], without)
	}
	if len(calls) > 0 {
		dst = append(dst, ']')
	}
	return validJSON(append(dst, '}'))
}

// validJSON mends what an upstream got wrong in strings that are sent back:
// raw control characters, bad escapes, bytes that are no UTF-8.
func validJSON(v []byte) []byte {
	if !utf8.Valid(v) {
		v = bytes.ToValidUTF8(v, []byte("\uFFFD"))
	}
	if json.Valid(v) {
		return v
	}
	if repaired, ok := repairJSON(string(v)); ok {
		return repaired
	}
	return v
}

// silent says whether a member says nothing that an upstream has to get back.
func (p *part) silent() bool {
	name := string(p.name[1 : len(p.name)-1])
	return slices.Contains(responseOnly, name) &&
		(p.kind == 'n' || len(p.value) == 0 || string(p.value) == "[]" || string(p.value) == "{}")
}

// flip exchanges null and "" as a content; anything else stays.
func flip(p *part) []byte {
	switch {
	case p.kind == 'n':
		return []byte(`""`)
	case p.kind == '"' && len(p.value) == 0:
		return []byte("null")
	}
	return p.appendValue(nil)
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
