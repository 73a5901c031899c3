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
	"math/rand/v2"
	"testing"
)

// endOfString is closingQuote by its definition.
func endOfString(buf []byte, from int) int {
	for i := from; i < len(buf); i++ {
		switch buf[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

func checkClosingQuote(t *testing.T, buf []byte, from int) {
	t.Helper()
	if got, want := closingQuote(buf, from), endOfString(buf, from); got != want {
		t.Fatalf("the string from %d in %q ends at %d, want %d", from, buf, got, want)
	}
}

// The looks at several bytes at once agree with one byte after the other, in
// texts that are full of what they look for and of what resembles it by a bit:
// # and ] are the neighbours of the quote and the backslash.
func TestStringsEndWhereTheyDoByteByByte(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 20_000 {
		dense, slashes := 1+r.IntN(40), r.IntN(4)
		buf := make([]byte, r.IntN(600))
		for i := range buf {
			switch {
			case r.IntN(dense) > 0:
				buf[i] = "abc #]!\x00\x01\x80\xa2\xdc\xff["[r.IntN(14)]
			case r.IntN(40) > 0 && (i == 0 || buf[i-1] != '\\' || r.IntN(4) < slashes):
				buf[i] = '\\'
			default:
				buf[i] = '"'
			}
		}
		checkClosingQuote(t, buf, r.IntN(min(len(buf), 40)+1))
	}
	// Escaped quotes at every distance, then an end after none to three more
	// backslashes.
	for gap := range 70 {
		for tail := range 4 {
			var buf []byte
			for range 200 {
				buf = append(append(buf, make([]byte, gap)...), '\\', '"')
			}
			buf = append(buf, make([]byte, gap)...)
			for range tail {
				buf = append(buf, '\\')
			}
			buf = append(buf, `", "after": "x"`...)
			for from := range min(gap+1, 3) {
				checkClosingQuote(t, buf, from)
			}
		}
	}
}

func FuzzClosingQuote(f *testing.F) {
	f.Add([]byte(`\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\\\"\\"`), uint8(0))
	f.Add([]byte(`a\\"`), uint8(1))
	f.Fuzz(func(t *testing.T, buf []byte, from uint8) {
		checkClosingQuote(t, buf, min(int(from), len(buf)))
	})
}
