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
)

// Where a string has one escaped quote, others mostly follow: code and JSON have
// one in twenty bytes or so. Finding each of them is a jump that the processor
// cannot foresee, so that it pays to ask whether all quotes in a few words are
// escaped, without asking where they are.
const (
	wordSize  = 8
	ones      = 0x0101010101010101
	highBits  = 0x80 * ones
	nearQuote = 32 // from one escaped quote to the next: that is near
	manyNear  = 4  // so many near ones in a row are a text full of them
	blockSize = 4 * wordSize
	maxBlocks = 64 // to pass in such a text before it is looked at again
)

// closingQuote returns the index in buf of the quote that ends the string whose
// content begins at from, -1 when there is none. A quote after an even number of
// backslashes ends it; what else is in the string is not checked.
func closingQuote(buf []byte, from int) int {
	near := 0
	for at := from; ; {
		i := bytes.IndexByte(buf[at:], '"')
		if i < 0 {
			return -1
		}
		at += i
		if at == from || buf[at-1] != '\\' {
			return at
		}
		slashes := at - 1
		for slashes > from && buf[slashes-1] == '\\' {
			slashes--
		}
		if (at-slashes)&1 == 0 {
			return at
		}
		at++
		if near++; i >= nearQuote {
			near = 0
		}
		if near < manyNear {
			if at+wordSize <= len(buf) && mayEnd(buf[at-2:at+wordSize]) == 0 {
				at += wordSize
			}
			continue
		}
		for n := 0; n < maxBlocks && at+blockSize <= len(buf) && !blockMayEnd((*[2 + blockSize]byte)(buf[at-2:])); n++ {
			at += blockSize
		}
	}
}

// blockMayEnd says whether a string may end in a block, of which the first two
// bytes are those before it. It is false only if each quote in it has exactly
// one backslash before it.
func blockMayEnd(block *[2 + blockSize]byte) bool {
	return mayEnd(block[0:10])|mayEnd(block[8:18])|mayEnd(block[16:26])|mayEnd(block[24:34]) != 0
}

// mayEnd returns 0 only if each quote in the last eight of ten bytes has exactly
// one backslash before it: one byte ahead, but not two. Whether a byte is zero is
// asked by a subtraction that carries from such a byte into the next one, and so
// has false answers on the safe side; that it is not, by an addition without any.
func mayEnd(p []byte) uint64 {
	const (
		seven = 0x7f * ones
		quote = '"' * ones
		slash = '\\' * ones
	)
	_ = p[9]
	q := binary.LittleEndian.Uint64(p[2:]) ^ quote
	s := binary.LittleEndian.Uint64(p[1:]) ^ slash
	t := binary.LittleEndian.Uint64(p) ^ slash
	isQuote := (q - ones) &^ q
	noSlash := (s&seven + seven) | s
	isSecond := (t - ones) &^ t
	return isQuote & (noSlash | isSecond) & highBits
}
