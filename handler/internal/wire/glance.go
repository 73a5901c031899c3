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
	"encoding/binary"
	"math/bits"
)

// MayConcern says whether the body can have the tool or a session id. It is
// false for most requests that have neither, and exact then: a JSON string that
// decodes to one of the names has it as it is, or has an escape by number for
// one of its letters, and a quote at least comes after it, so that the last byte
// of the body does not matter. It costs a fraction of Scan, or as much in long
// strings without quotes, such as images. It is linear at worst. Bodies in
// several blocks are left to Scan.
func (b *Body) MayConcern() bool {
	return len(b.blocks) != 1 || (&glance{text: b.blocks[0]}).concerns()
}

// glance is a look for the names in a text without a look at its structure. It
// jumps from one byte to the next that are rare in most texts. Where they are
// not, it takes the text eight bytes at a time: the processor cannot foresee a
// jump, so that many cost more than to read what is between.
type glance struct {
	text   []byte
	looked int // bytes
	misses int
	dense  [numMarks]bool // in the last window that was looked into
}

const (
	glanceWindow = 4 << 10
	fewJumps     = 32 // in a window
	strideWords  = 8
	stride       = strideWords * wordSize

	// A text with more places that look like a name and are none is given up:
	// Scan does better by it.
	fewMisses = 32
	rarerThan = 256 // bytes for each further one
)

// mark is a byte that a name has to have which is spelled in one of two ways:
// as it is, or with an escape.
type mark struct {
	rare, next byte // it, and what follows it
	after      int  // so many bytes of what is looked for are before it
}

const (
	underscore = iota // in the middle of code_interpreter and session_id
	zero              // of an escape by number of an ASCII character
	numMarks
)

var marks = [numMarks]mark{
	underscore: {rare: '_', next: 'i'},
	zero:       {rare: '0', next: '0', after: len(`\u`)},
}

// concerns looks at the end first, where SDKs put tools and metadata, and then
// goes forward, as memory is read best.
func (g *glance) concerns() bool {
	end := max(len(g.text)-glanceWindow, 0)
	if g.meetsAny(end, len(g.text)) {
		return true
	}
	for at := 0; at < end; at += glanceWindow {
		if g.meetsAny(at, at+glanceWindow) {
			return true
		}
	}
	return false
}

// meetsAny does what meets does, of each mark. A name with its quotes is at most
// 98 bytes, so that a whole window with one of its marks has one of its quotes,
// and one without a quote has no name. That needs whole windows: the last one of
// those that are looked at forward overlaps the end, which was looked at first.
func (g *glance) meetsAny(at, to int) bool {
	g.looked += to - at
	if bytes.IndexByte(g.text[at:to], '"') < 0 {
		return false
	}
	return g.meets(at, to, underscore) || bytes.IndexByte(g.text[at:to], '\\') >= 0 && g.meets(at, to, zero)
}

// meets says whether a spelling with the mark begins within a range, or whether
// there are too many marks of other things.
func (g *glance) meets(at, to, which int) bool {
	m := &marks[which]
	at, to = min(at+m.after, len(g.text)), min(to+m.after, len(g.text))
	jumps := fewJumps
	if g.dense[which] {
		jumps = 1
	}
	for range jumps {
		i := bytes.IndexByte(g.text[at:to], m.rare)
		if i < 0 {
			g.dense[which] = false
			return false
		}
		if at += i; g.isName(at - m.after) {
			return true
		}
		at++
	}
	g.dense[which] = true
	return g.meetsMany(at, to, m)
}

// meetsMany does so where there are many marks.
func (g *glance) meetsMany(at, to int, m *mark) bool {
	p := pair{uint64(m.rare) * ones, uint64(m.next) * ones}
	to = min(to, len(g.text)-1)
	for at = p.next(g.text, at, to); to-at >= stride; at = p.next(g.text, at+stride, to) {
		if g.meetsIn(at, p, m.after) {
			return true
		}
	}
	for ; at < to; at++ {
		if g.isName(at - m.after) {
			return true
		}
	}
	return false
}

// meetsIn does so in a stride.
func (g *glance) meetsIn(at int, p pair, after int) bool {
	for range strideWords {
		for found := p.find(g.text[at:at+wordSize+1]) & highBits; found != 0; found &= found - 1 {
			if g.isName(at + bits.TrailingZeros64(found)/8 - after) {
				return true
			}
			if g.misses++; g.misses > fewMisses+g.looked/rarerThan {
				return true
			}
		}
		at += wordSize
	}
	return false
}

// isName says whether a byte is the underscore of a name or begins an escape
// that may be a byte of one.
func (g *glance) isName(at int) bool {
	before, from := g.text[:at], g.text[at:]
	switch from[0] {
	case '_':
		return bytes.HasPrefix(from, []byte("_interpreter")) && bytes.HasSuffix(before, []byte("code")) ||
			bytes.HasPrefix(from, []byte("_id")) && bytes.HasSuffix(before, []byte("session"))
	case '\\':
		return len(from) > 4 && bytes.HasPrefix(from, []byte(`\u00`)) && '5' <= from[4] && from[4] <= '7'
	}
	return false
}

// pair is two bytes, each of them eight times.
type pair struct{ first, second uint64 }

// next goes on to the next stride in which they stand.
func (p pair) next(text []byte, at, to int) int {
	for ; to-at >= stride; at += stride {
		s := text[at : at+stride+1]
		if (p.find(s[0:9])|p.find(s[8:17])|p.find(s[16:25])|p.find(s[24:33])|
			p.find(s[32:41])|p.find(s[40:49])|p.find(s[48:57])|p.find(s[56:65]))&highBits != 0 {
			break
		}
	}
	return at
}

// find sets the high bit of each of eight bytes at which they stand, as it does
// where they would without the high bits of the text.
func (p pair) find(s []byte) uint64 {
	_ = s[8]
	differ := (binary.LittleEndian.Uint64(s) ^ p.first) | (binary.LittleEndian.Uint64(s[1:]) ^ p.second)
	return highBits - differ&^highBits
}
