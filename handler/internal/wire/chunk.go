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

import "sync"

// Chunk is what one structural pass finds in a chat.completion.chunk, or in a
// chat.completion, of which the one choice is read: a request with the tool
// has n 1. It is reused from event to event.
type Chunk struct {
	text

	top    []member // of the object
	choice []member // of the choice
	delta  []member // of its delta or message

	// Values of members; absent ones and nulls are not present.
	id, created, model, usage, failure, finish, toolCalls, functionCall, role span

	choices   span // the value of choices
	message   span // the value of its delta or message
	hasChoice bool
	whole     bool // it is a message, not a delta
	odd       bool // the choice is not of the form that clients know

	list  []span // scratch
	frame frame
}

// What a chunk may have to be used again: more is of no chat completion.
const (
	maxMembers = 64
	maxFrame   = 16 << 10
)

var chunks = sync.Pool{New: func() any { return new(Chunk) }}

// NewChunk returns a chunk with the lists of one that is not needed any more.
func NewChunk() *Chunk {
	c, _ := chunks.Get().(*Chunk)
	return c
}

// Release ends the use of a chunk. Nothing of it is left for the next one.
func (c *Chunk) Release() {
	if max(cap(c.top), cap(c.choice), cap(c.delta), cap(c.list)) > maxMembers || cap(c.frame.fixed) > maxFrame {
		return
	}
	c.clear()
	chunks.Put(c)
}

// clear leaves the lists alone.
func (c *Chunk) clear() {
	c.frame.clear()
	*c = Chunk{top: c.top[:0], choice: c.choice[:0], delta: c.delta[:0], list: c.list[:0], frame: c.frame}
}

// Parse reads data, of which the chunk keeps hold until the next call. It is
// false when data is no JSON object.
func (c *Chunk) Parse(data []byte) bool {
	if c.again(data) {
		return true
	}
	c.clear()
	if !c.parse(data) {
		return false
	}
	c.keepFrame()
	return true
}

func (c *Chunk) parse(data []byte) bool {
	c.data = data
	var ok bool
	if c.top, ok = c.object(c.top); !ok {
		return false
	}
	for _, m := range c.top {
		switch v := c.valueOf(m); {
		case m.is(data, "id"):
			c.id = v
		case m.is(data, "created"):
			c.created = v
		case m.is(data, "model"):
			c.model = v
		case m.is(data, "usage"):
			c.usage = v
		case m.is(data, "error"):
			c.failure = c.failureIn(v)
		case m.is(data, "choices"):
			c.choices = v
		}
	}
	if c.choices.present() {
		c.parseChoice()
	} else if !c.failure.present() && c.complains() {
		c.failure = span{0, len(data)}
	}
	return true
}

// valueOf returns where the value of m lies, nowhere when it is null.
func (c *Chunk) valueOf(m member) span {
	if isNull(m.value.of(c.data)) {
		return span{}
	}
	return m.value
}

// parseChoice reads the first choice.
func (c *Chunk) parseChoice() {
	var ok bool
	if c.list, ok = c.elements(c.list, c.choices.start); !ok || len(c.list) == 0 {
		return
	}
	if c.choice, ok = c.members(c.choice, c.list[0].start); !ok {
		return
	}
	c.hasChoice, c.odd = true, len(c.list) > 1
	indexed := false
	for _, m := range c.choice {
		switch v := c.valueOf(m); {
		case m.is(c.data, "finish_reason"):
			c.parseFinish(v)
		case m.is(c.data, "index"):
			indexed = string(v.of(c.data)) == "0"
		case m.is(c.data, "usage"):
			c.choiceUsage(v)
		case m.is(c.data, "delta"):
			c.parseMessage(v, false)
		case m.is(c.data, "message"):
			c.parseMessage(v, true)
		}
	}
	c.odd = c.odd || !indexed || !c.message.present()
	for _, m := range c.delta {
		switch v := c.valueOf(m); {
		case m.is(c.data, "tool_calls"):
			c.toolCalls = v
		case m.is(c.data, "function_call"):
			c.functionCall = v
		case m.is(c.data, "role"):
			c.role = v
		}
	}
}

// parseFinish reads a finish_reason. Upstreams that have none to tell send
// null, "", "null", or what is no string.
func (c *Chunk) parseFinish(v span) {
	c.odd = c.odd || c.finish.present()
	c.finish = span{}
	if body, ok := stringBody(v.of(c.data)); ok && len(body) > 0 && string(body) != "null" {
		c.finish = v
	} else {
		c.odd = c.odd || v.present()
	}
}

// choiceUsage takes a usage that lies in the choice, as Kimi has it.
func (c *Chunk) choiceUsage(v span) {
	if v.present() {
		c.odd = true
		if !c.usage.present() {
			c.usage = v
		}
	}
}

// parseMessage takes the value of delta or message. Where there are both, the
// delta is what is new.
func (c *Chunk) parseMessage(v span, whole bool) {
	switch {
	case !v.present() || c.data[v.start] != '{':
		c.odd = c.odd || !whole
		return
	case c.message.present():
		c.odd = true
		if whole || !c.whole {
			return
		}
	}
	c.message, c.whole = v, whole
	c.delta, _ = c.members(c.delta[:0], v.start)
}

// forget leaves nothing of the message, so that only what stands around it is
// read on.
func (c *Chunk) forget() {
	c.message, c.toolCalls, c.functionCall, c.role = span{}, span{}, span{}, span{}
	c.delta, c.odd = c.delta[:0], true
}

// Kept returns how many bytes an answer holds of the chunk: texts and calls add
// up, and so may names of members; all else is let go.
func (c *Chunk) Kept() int {
	n := 0
	for _, m := range c.delta {
		n += m.value.end - m.name.start
	}
	return n
}

// HasChoice says whether the chunk has the form of a completion.
func (c *Chunk) HasChoice() bool { return c.hasChoice && c.message.present() }

// Failed says whether the chunk reports an error.
func (c *Chunk) Failed() bool { return c.failure.present() }

// FinishReason returns the reason for which the turn ended, "" when the chunk
// has none.
func (c *Chunk) FinishReason() string {
	s, _ := unquote(c.finish.of(c.data))
	return s
}

// substance says whether the delta has anything to show but the role and the
// calls.
func (c *Chunk) substance() bool {
	for _, m := range c.delta {
		switch {
		case isEmpty(m.value.of(c.data)):
		case m.value == c.role, m.value == c.toolCalls, m.value == c.functionCall:
		default:
			return true
		}
	}
	return false
}

// fragments calls f for each fragment of a tool call in the chunk, whether
// tool_calls is an array or one object:
// https://github.com/huggingface/text-generation-inference/pull/2949
func (c *Chunk) fragments(f func(call []byte)) {
	if !c.toolCalls.present() {
		return
	}
	if c.data[c.toolCalls.start] == '{' {
		f(c.toolCalls.of(c.data))
		return
	}
	c.list, _ = c.elements(c.list[:0], c.toolCalls.start)
	for _, v := range c.list {
		f(v.of(c.data))
	}
}

// tells says whether the chunk has members beyond those of every chunk.
func (c *Chunk) tells() bool {
	for _, m := range c.top {
		if !common(m.name.of(c.data)) {
			return true
		}
	}
	return false
}

// common says whether a name, in quotes, is that of a member of every chunk.
func common(name []byte) bool {
	switch string(name) {
	case `"id"`, `"object"`, `"created"`, `"model"`, `"choices"`, `"usage"`, `"system_fingerprint"`, `"service_tier"`:
		return true
	}
	return false
}
