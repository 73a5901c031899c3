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

import "bytes"

// maxHoles is how many texts a frame has at most; chunks have one or two.
const maxHoles = 4

// frame is a chunk but for its texts. The chunks of one stream mostly differ in
// these alone: the token, and what pads it against those who measure it. They
// need not be taken apart again, since the inside of a string says nothing of
// the structure around it.
type frame struct {
	fixed []byte // what stands before, between and after the texts
	ends  []int  // where those parts end in it
	holes []span // where the texts are in the chunk read last
}

func (f *frame) clear() { f.fixed, f.ends, f.holes = f.fixed[:0], f.ends[:0], f.holes[:0] }

// part returns the fixed part before a hole.
func (f *frame) part(i int) []byte {
	if i == 0 {
		return f.fixed[:f.ends[0]]
	}
	return f.fixed[f.ends[i-1]:f.ends[i]]
}

// keepFrame keeps the frame of a chunk that is part of a text.
func (c *Chunk) keepFrame() {
	if !c.hasChoice || c.whole || c.odd || c.failure.present() || c.finish.present() || c.toolCalls.present() || c.functionCall.present() {
		return
	}
	f := &c.frame
	for _, m := range c.top {
		switch {
		case m.value == c.choices:
			for _, m := range c.delta {
				if m.value != c.role {
					f.hole(c.data, m.value)
				}
			}
		case !common(m.name.of(c.data)) && !m.is(c.data, "error"):
			f.hole(c.data, m.value)
		}
	}
	if len(f.holes) == 0 || len(f.holes) > maxHoles {
		f.clear()
		return
	}
	at := 0
	for _, h := range f.holes {
		f.fix(c.data[at:h.start])
		at = h.end
	}
	f.fix(c.data[at:])
}

// hole takes a value for a text if it is a string.
func (f *frame) hole(data []byte, v span) {
	if data[v.start] == '"' {
		f.holes = append(f.holes, span{v.start + 1, v.end - 1})
	}
}

func (f *frame) fix(p []byte) {
	f.fixed = append(f.fixed, p...)
	f.ends = append(f.ends, len(f.fixed))
}

// again reads data by the frame of the chunk before. It is false when data is
// of another one.
func (c *Chunk) again(data []byte) bool {
	f := &c.frame
	if len(f.holes) == 0 {
		return false
	}
	var holes [maxHoles]span
	at := 0
	for i := range f.holes {
		fixed := f.part(i)
		if !bytes.HasPrefix(data[at:], fixed) {
			return false
		}
		at += len(fixed)
		end := closingQuote(data, at)
		if end < 0 {
			return false
		}
		holes[i] = span{at, end}
		at = end
	}
	if !bytes.Equal(data[at:], f.part(len(f.holes))) {
		return false
	}
	c.data = data
	for i, old := range f.holes {
		if by := holes[i].length() - old.length(); by != 0 {
			c.shift(holes[i].start, by)
		}
	}
	copy(f.holes, holes[:])
	return true
}

// shift moves what lies behind the start of a text, which has become longer.
func (c *Chunk) shift(from, by int) {
	for _, v := range [...]*span{&c.id, &c.created, &c.model, &c.usage, &c.role, &c.choices, &c.message} {
		v.shift(from, by)
	}
	for _, list := range [...][]member{c.top, c.choice, c.delta} {
		for i := range list {
			list[i].name.shift(from, by)
			list[i].value.shift(from, by)
		}
	}
}

func (s *span) shift(from, by int) {
	if s.start > from {
		s.start += by
	}
	if s.end > from {
		s.end += by
	}
}
