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

// scanner reads the structure of a JSON text that lies in blocks. It checks
// the grammar of everything but the inside of strings, which it jumps over:
// a string with a bad escape or a raw control character is one all the same.
// It does not recurse, so depth costs one bit per level and no stack.
type scanner struct {
	body *Body  // nil when buf is all there is
	buf  []byte // the block being read
	pos  int    // of the next byte in buf
	base int    // offset in the body of buf[0]
	next int    // index of the block after buf

	depth int      // of the container being skipped
	kinds uint64   // one bit per level, the innermost lowest: 1 is an object
	outer []uint64 // kinds of levels further out, 64 at a time
}

// newScanner returns a scanner that starts at an offset.
func newScanner(body *Body, offset int) scanner {
	s := scanner{body: body}
	for s.refill() && offset >= s.base+len(s.buf) {
		s.pos = len(s.buf)
	}
	s.pos = offset - s.base
	return s
}

// refill goes on to the next block.
func (s *scanner) refill() bool {
	if s.body == nil || s.next == len(s.body.blocks) {
		return false
	}
	s.base += len(s.buf)
	s.buf = s.body.blocks[s.next]
	s.pos = 0
	s.next++
	return true
}

// offset returns the offset in the body of the next byte.
func (s *scanner) offset() int { return s.base + s.pos }

// peek returns the next byte without consuming it, 0 at the end.
func (s *scanner) peek() byte {
	if s.pos == len(s.buf) && !s.refill() {
		return 0
	}
	return s.buf[s.pos]
}

// token consumes white space and the byte after it, which it returns: 0 at the
// end of the text, and another control character for any that is no space.
func (s *scanner) token() byte {
	for {
		for s.pos < len(s.buf) {
			c := s.buf[s.pos]
			s.pos++
			switch {
			case c > ' ':
				return c
			case c != ' ' && c != '\n' && c != '\t' && c != '\r':
				return 1
			}
		}
		if !s.refill() {
			return 0
		}
	}
}

// str consumes the rest of a string whose opening quote has been consumed.
func (s *scanner) str() bool {
	for {
		if i := closingQuote(s.buf, s.pos); i >= 0 {
			s.pos = i + 1
			return true
		}
		if !s.strAcross(s.buf[s.pos:]) {
			return false
		}
	}
}

// strAcross goes on to the next block within a string. rest is what this block
// has of it, without a quote; a backslash at its end may escape what follows.
func (s *scanner) strAcross(rest []byte) bool {
	j := len(rest)
	for j > 0 && rest[j-1] == '\\' {
		j--
	}
	if !s.refill() {
		return false
	}
	s.pos = (len(rest) - j) & 1
	return true
}

// literal consumes the rest of a word of which the first byte has been consumed.
func (s *scanner) literal(word string) bool {
	for _, c := range []byte(word[1:]) {
		if s.peek() != c {
			return false
		}
		s.pos++
	}
	return true
}

// digits consumes a run of digits and says whether there was one.
func (s *scanner) digits() bool {
	found := false
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.pos++
		found = true
	}
	return found
}

// number consumes a number of which the first byte has been consumed.
func (s *scanner) number(c byte) bool {
	if c == '-' {
		c = s.peek()
		if c < '0' || c > '9' {
			return false
		}
		s.pos++
	}
	if c != '0' {
		s.digits()
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return false
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return true
}

// push enters a container.
func (s *scanner) push(object uint64) {
	if s.depth > 0 && s.depth&63 == 0 {
		s.outer = append(s.outer, s.kinds)
	}
	s.kinds = s.kinds<<1 | object
	s.depth++
}

// pop leaves the innermost container.
func (s *scanner) pop() {
	s.kinds >>= 1
	if s.depth--; s.depth > 0 && s.depth&63 == 0 {
		s.kinds = s.outer[len(s.outer)-1]
		s.outer = s.outer[:len(s.outer)-1]
	}
}

// scalar consumes a string, number or literal whose first byte is c.
func (s *scanner) scalar(c byte) bool {
	switch c {
	case '"':
		return s.str()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return s.number(c)
	}
	return false
}

// value consumes the rest of a value of any kind whose first byte is c.
func (s *scanner) value(c byte) bool {
	for {
		opened := false
		switch c {
		case '{':
			s.push(1)
			opened = true
		case '[':
			s.push(0)
			opened = true
		default:
			if !s.scalar(c) {
				return false
			}
		}
		var ok bool
		if c, ok = s.advance(opened); !ok {
			return false
		}
		if c == 0 {
			return true
		}
	}
}

// advance goes from the start of a container (opened) or from the end of a
// value to the first byte of the next value inside the containers that are
// open, and returns it. It is 0 when none of them is left open.
func (s *scanner) advance(opened bool) (byte, bool) {
	for s.depth > 0 {
		object := s.kinds&1 == 1
		c := s.token()
		switch {
		case c == '}' && object, c == ']' && !object:
			s.pop()
			opened = false
			continue
		case opened:
		case c == ',':
			c = s.token()
		default:
			return 0, false
		}
		if object {
			if c != '"' || !s.str() || s.token() != ':' {
				return 0, false
			}
			c = s.token()
		}
		// A closing bracket here is a trailing comma; as the first byte of a
		// value it is refused. So is the end of the text.
		return c, c != 0
	}
	return 0, true
}
