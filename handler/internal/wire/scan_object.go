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

// field is the start of a member of an object.
type field struct {
	key   []byte // as it stands between its quotes; nil when too long to be known
	start int    // offset of the key's opening quote
	value int    // offset of the value
	first byte   // of the value, which the scanner has consumed
}

// field goes on to the next member of an object whose brace has been
// consumed, up to and with the first byte of its value. At the end of the
// object more is false; ok is false when the text is no object.
func (s *scanner) field(begun *bool) (m field, more, ok bool) {
	c := s.token()
	if c == '}' {
		return m, false, true
	}
	if *begun {
		if c != ',' {
			return m, false, false
		}
		c = s.token()
	}
	*begun = true
	m.start = s.offset() - 1
	if c != '"' || !s.str() {
		return m, false, false
	}
	m.key = s.last(m.start+1, longestRaw)
	if s.token() != ':' {
		return m, false, false
	}
	m.first = s.token()
	m.value = s.offset() - 1
	return m, true, m.first != 0
}

// element goes on to the next element of an array whose bracket has been
// consumed, up to and with its first byte. At the end of the array more is
// false; ok is false when the text is no array.
func (s *scanner) element(begun *bool) (first byte, more, ok bool) {
	c := s.token()
	if c == ']' {
		return 0, false, true
	}
	if *begun {
		if c != ',' {
			return 0, false, false
		}
		c = s.token()
	}
	*begun = true
	return c, true, c != 0
}

// last returns what stands between start and the closing quote that has just
// been consumed, nil when that is more than limit bytes.
func (s *scanner) last(start, limit int) []byte {
	end := s.offset() - 1
	switch {
	case end-start > limit:
		return nil
	case start >= s.base:
		return s.buf[start-s.base : end-s.base]
	}
	return s.body.Bytes(start, end)
}

// cutter finds what to cut out of a list of comma-separated items so that the
// list stays one. Items come in order; each call returns the range to cut that
// has become known by it, which is empty most of the time.
type cutter struct {
	kept    int // end of the last item kept, 0 when there is none
	from    int // start of the first of the items being dropped
	to      int // end of the last of them, 0 when none is
	dropped int
	items   int
}

// keep notes an item that stays.
func (c *cutter) keep(start, end int) span {
	c.items++
	var cut span
	if c.to > 0 {
		cut = span{c.from, start}
		c.to = 0
	}
	c.kept = end
	return cut
}

// drop notes an item that goes.
func (c *cutter) drop(start, end int) {
	c.items++
	c.dropped++
	if c.to == 0 {
		c.from = start
	}
	c.to = end
}

// close ends the list.
func (c *cutter) close() span {
	switch {
	case c.to == 0:
		return span{}
	case c.kept == 0:
		return span{c.from, c.to}
	}
	return span{c.kept, c.to}
}
