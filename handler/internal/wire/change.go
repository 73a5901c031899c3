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

// change is how a chunk differs from what the upstream sent, beside the id.
type change struct {
	calls    []byte // tool_calls of the client, an array; nil for none
	finish   string // in JSON; "" leaves what there is
	dropRole bool
}

// write adds the chunk to the output, as it came wherever that will do.
func (s *Stream) write(c *Chunk, e change) {
	at := s.event()
	if s.unchanged(c, e) {
		s.out = append(s.out, c.data...)
	} else {
		s.out = s.appendChunk(s.out, c, e)
	}
	s.end(at)
}

// unchanged says whether a chunk can be written byte for byte.
func (s *Stream) unchanged(c *Chunk, e change) bool {
	return !e.dropRole && !c.whole && !c.odd && !c.usage.present() && !c.toolCalls.present() && !c.functionCall.present() &&
		(e.finish == "" || string(c.finish.of(c.data)) == e.finish) &&
		string(c.id.of(c.data)) == string(s.id) &&
		(!c.created.present() || string(c.created.of(c.data)) == string(s.created))
}

// appendChunk writes the chunk with what has to be different. What does not
// keeps its bytes and its place.
func (s *Stream) appendChunk(dst []byte, c *Chunk, e change) []byte {
	dst = append(dst, '{')
	hasID := false
	for _, m := range c.top {
		switch {
		case m.value == c.usage:
			continue
		case m.is(c.data, "id"):
			hasID = true
			dst = appendMember(dst, "id", s.id)
		case m.value == c.created && s.created != nil:
			dst = appendMember(dst, "created", s.created)
		case m.value == c.choices && c.hasChoice:
			dst = append(appendMember(dst, "choices", []byte("[")), '{')
			dst = append(s.appendChoice(dst, c, e), "}]"...)
		case c.whole && m.is(c.data, "object"):
			dst = appendMember(dst, "object", []byte(`"chat.completion.chunk"`))
		default:
			dst = appendRaw(dst, m.raw(c.data))
		}
	}
	if !hasID {
		dst = appendMember(dst, "id", s.id)
	}
	return append(dst, '}')
}

// appendChoice adds the members of the choice, which is always the first.
func (s *Stream) appendChoice(dst []byte, c *Chunk, e change) []byte {
	finish := e.finish
	if finish == "" && !c.finish.present() {
		finish = "null" // it may be "" or no string
	}
	dst = appendMember(dst, "index", []byte("0"))
	for _, m := range c.choice {
		switch {
		case m.value == c.message:
			dst = s.appendDelta(dst, c, e)
		case m.is(c.data, "finish_reason"):
			if finish != "" {
				dst = appendMember(dst, "finish_reason", []byte(finish))
			}
			finish = ""
		case m.value == c.usage, m.is(c.data, "index"), m.is(c.data, "delta"), m.is(c.data, "message"):
		default:
			dst = appendRaw(dst, m.raw(c.data))
		}
	}
	if !c.message.present() {
		dst = s.appendDelta(dst, c, e)
	}
	if finish != "" {
		dst = appendMember(dst, "finish_reason", []byte(finish))
	}
	return dst
}

// appendDelta adds the delta of a chunk, an empty one if it has none.
func (s *Stream) appendDelta(dst []byte, c *Chunk, e change) []byte {
	dst = append(appendMember(dst, "delta", nil), '{')
	for _, m := range c.delta {
		switch {
		case e.dropRole && m.value == c.role:
		case m.is(c.data, "function_call"), m.is(c.data, "tool_calls"):
		default:
			dst = appendRaw(dst, m.raw(c.data))
		}
	}
	if e.calls != nil {
		dst = appendMember(dst, "tool_calls", e.calls)
	}
	return append(dst, '}')
}

// appendRaw adds a member as it was written.
func appendRaw(dst, raw []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(dst, raw...)
}
