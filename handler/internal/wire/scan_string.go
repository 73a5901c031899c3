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
	"unicode/utf16"
	"unicode/utf8"
)

// longestName is the length of the longest key or value that the scan knows by
// name; longestRaw that of the same with every letter written as \u0000.
const (
	longestName = len("parallel_tool_calls")
	longestRaw  = 6 * longestName
)

// equal says whether a string, given as it stands between its quotes, is name.
func equal(raw []byte, name string) bool {
	if string(raw) == name {
		return true
	}
	if len(raw) > 6*len(name) || bytes.IndexByte(raw, '\\') < 0 {
		return false
	}
	var buf [longestRaw]byte
	decoded, ok := unescape(buf[:0], raw)
	return ok && string(decoded) == name
}

// unescape appends a string, given as it stands between its quotes, to dst.
// Half a surrogate pair becomes U+FFFD, as encoding/json has it; bytes that
// are no UTF-8 stay. It is false when an escape is none.
func unescape(dst, raw []byte) ([]byte, bool) {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...), true
		}
		dst = append(dst, raw[:i]...)
		raw = raw[i+1:]
		if len(raw) == 0 {
			return dst, false
		}
		c := raw[0]
		if c == 'u' {
			r, ok := hex4(raw[1:])
			if !ok {
				return dst, false
			}
			raw = raw[5:]
			if utf16.IsSurrogate(r) {
				r, raw = surrogates(r, raw)
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}
		j := bytes.IndexByte([]byte(`"\/bfnrt`), c)
		if j < 0 {
			return dst, false
		}
		dst = append(dst, "\"\\/\b\f\n\r\t"[j])
		raw = raw[1:]
	}
}

// surrogates joins a surrogate with the one that raw begins with.
func surrogates(high rune, raw []byte) (rune, []byte) {
	if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
		if low, ok := hex4(raw[2:]); ok {
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				return r, raw[6:]
			}
		}
	}
	return utf8.RuneError, raw
}

// hex4 reads four hexadecimal digits.
func hex4(p []byte) (rune, bool) {
	if len(p) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range p[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
