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
	"strconv"
)

// repairJSON mends JSON whose faults lie outside of its strings, or are only
// of how a string was escaped: raw control characters, a backslash that starts
// no escape, trailing commas, the two characters \n between tokens, closing
// brackets that are missing or too many. It is false for anything else, above
// all for a string that is not closed: there may have been more of it.
func repairJSON(s string) ([]byte, bool) {
	var out []byte
	var open []byte // closing brackets that are due
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			body, n, closed := repairString([]byte(s[i+1:]))
			if !closed {
				return nil, false
			}
			out = append(append(append(out, '"'), body...), '"')
			i += 1 + n
		case '\\':
			if i+1 < len(s) && (s[i+1] == 'n' || s[i+1] == 't' || s[i+1] == 'r') {
				i++
				continue
			}
			return nil, false
		case '{', '[':
			out = append(out, c)
			open = append(open, c+2) // } and ] follow two after { and [ in ASCII
		case '}', ']':
			if len(open) == 0 || open[len(open)-1] != c {
				continue // one too many
			}
			out = append(trimComma(out), c)
			open = open[:len(open)-1]
		default:
			if len(open) == 0 && c > ' ' {
				return nil, false // text around the value
			}
			out = append(out, c)
		}
	}
	for _, closer := range slices.Backward(open) {
		out = append(trimComma(out), closer)
	}
	// White space before a bracket that was too many is not the value's.
	out = bytes.TrimSpace(out)
	return out, json.Valid(out)
}

// trimComma removes white space and one comma from the end.
func trimComma(b []byte) []byte {
	end := len(b)
	for end > 0 && b[end-1] <= ' ' {
		end--
	}
	if end > 0 && b[end-1] == ',' {
		return b[:end-1]
	}
	return b
}

// repairString escapes what has to be escaped in the body of a string: control
// characters, and backslashes that start no escape. s may go on behind the
// closing quote; closed says whether there is one, and n how much of s is before
// it.
func repairString(s []byte) (body []byte, n int, closed bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return body, i, true
		case c == '\\':
			size := escapeLength(s[i:])
			if size == 0 {
				body = append(body, `\\`...)
				continue
			}
			body = append(body, s[i:i+size]...)
			i += size - 1
		case c < ' ':
			body = append(body, controlEscape(c)...)
		default:
			body = append(body, c)
		}
	}
	return body, len(s), false
}

// controlEscape returns the JSON escape of a control character.
func controlEscape(c byte) string {
	switch c {
	case '\n':
		return `\n`
	case '\t':
		return `\t`
	case '\r':
		return `\r`
	}
	const hex = "0123456789abcdef"
	return `\u00` + string([]byte{hex[c>>4], hex[c&15]})
}

// escapeLength returns the length of the JSON escape that s starts with, 0 if
// its backslash starts none.
func escapeLength(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(s) < 6 {
			return 0
		}
		if _, err := strconv.ParseUint(string(s[2:6]), 16, 16); err != nil {
			return 0
		}
		return 6
	}
	return 0
}
