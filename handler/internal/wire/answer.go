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
	"encoding/json"
	"slices"
	"strings"
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
	tally   tally // of it
	calls   Assembler
	legacy  Assembler // of function_call, which tool_calls replaced
	choices bool      // a choice has been seen
	pieces  bool      // it comes in deltas
}

// Event takes in the next event of a stream, with c to read it. It is false
// when the event says nothing, as a ping does not. After an event the answer may
// be Over; otherwise c holds a chunk that has been observed.
func (a *Answer) Event(ev *Event, c *Chunk) bool {
	data := bytes.TrimSpace(ev.Data)
	isError := string(ev.Name) == "error"
	switch {
	case len(ev.Error) > 0:
		a.Failure = FailureOf(ev.Error)
	case len(data) > 0 && data[0] == '{':
		return a.object(data, c, isError)
	case ev.Done():
		a.Done = true
	case len(data) == 0:
		return false
	case isError:
		a.Failure = FailureOf(data)
	default:
		a.Failure, _ = ErrorIn(data)
		return a.Failure != nil
	}
	return true
}

// object takes in an event that is an object.
func (a *Answer) object(data []byte, c *Chunk, isError bool) bool {
	switch {
	case !c.Parse(data):
		a.Damaged = true
		return false
	case isError && !c.Failed():
		a.Failure = FailureOf(data)
	default:
		a.Observe(c)
	}
	return true
}

// Over says whether nothing that comes after can belong to the answer.
func (a *Answer) Over() bool { return a.Done || a.Failure != nil }

// Observe takes in the next chunk of the answer.
func (a *Answer) Observe(c *Chunk) {
	if c.usage.present() && c.data[c.usage.start] == '{' && !isEmpty(c.usage.of(c.data)) {
		a.Usage = append(a.Usage[:0], c.usage.of(c.data)...)
	}
	if c.failure.present() && a.Failure == nil {
		a.Failure = failureOf(c)
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
	if c.whole && a.pieces {
		c.forget() // a message after its pieces tells them again
	}
	a.pieces = a.pieces || !c.whole && (c.substance() || c.toolCalls.present() || c.functionCall.present())
	for _, m := range c.delta {
		if m.is(c.data, "tool_calls") || m.value == c.functionCall || m.is(c.data, "role") {
			continue
		}
		how := inPieces(&a.tally)
		how.join = !constant(m.name.of(c.data))
		a.message.member(m.name.of(c.data), &a.tally).add(m.value.of(c.data), how)
	}
	a.calls.begin()
	a.legacy.begin()
	c.fragments(a.calls.add)
	if c.functionCall.present() {
		a.legacy.addLegacy(c.functionCall.of(c.data))
	}
	a.Damaged = a.Damaged || a.tally.full() || a.calls.tally.full() || a.legacy.tally.full()
	// A reason that speaks against running anything is not taken back.
	if c.finish.present() && !cutOff(a.Finish) {
		a.Finish = c.FinishReason()
	}
}

// constant says whether a member of a message, of which the name is in quotes,
// says the same in each chunk. Other strings are the next piece of a text.
func constant(name []byte) bool {
	switch string(name) {
	case `"type"`, `"id"`, `"object"`, `"name"`, `"status"`, `"format"`, `"channel"`, `"phase"`, `"recipient"`:
		return true
	}
	return false
}

// Calls returns the calls of the turn in the order in which they began.
func (a *Answer) Calls() []*Call {
	calls := a.calls.calls
	if len(calls) == 0 {
		calls = a.legacy.calls
	}
	if !slices.ContainsFunc(calls, (*Call).void) {
		return calls
	}
	return slices.DeleteFunc(slices.Clone(calls), (*Call).void)
}

// CallCount returns the number of calls that have begun. Unlike Calls it costs
// nothing.
func (a *Answer) CallCount() int { return max(len(a.calls.calls), len(a.legacy.calls)) }

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

// cutOffs are found in finish reasons after which a call is not run, however
// complete it looks: there may have been more of it, or it was refused.
// Providers have dozens of them.
var cutOffs = []string{
	"length", "max_token", "limit", "exceeded", "insufficient", "abort", "cancel", "interrupt", "timeout", "error", "malformed",
	"filter", "safety", "recitation", "refus", "guardrail", "sensitive", "blocklist", "prohibited", "spii", "toxic",
}

// cutOff says whether a finish reason is one of those.
func cutOff(finish string) bool {
	finish = strings.ToLower(finish)
	return slices.ContainsFunc(cutOffs, func(s string) bool { return strings.Contains(finish, s) })
}

// Trusted says whether the way in which the turn ended lets calls be run.
func (a *Answer) Trusted() bool {
	return a.Failure == nil && !a.Damaged && !cutOff(a.Finish)
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
