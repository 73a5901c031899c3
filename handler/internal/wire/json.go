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
	"slices"
	"strings"
	"unicode/utf8"
)

// text is a piece of JSON that an upstream sent, read in place.
type text struct{ data []byte }

func (t text) scanner(at int) scanner { return scanner{buf: t.data, pos: at} }

// span is a range of bytes of a text. The zero span stands for what is absent.
type span struct{ start, end int }

func (s span) present() bool { return s.end > s.start }

func (s span) length() int { return s.end - s.start }

func (s span) of(data []byte) []byte { return data[s.start:s.end] }

// member is one member of an object: its name, quotes included, and its value.
type member struct{ name, value span }

// raw returns the member as it was written.
func (m member) raw(data []byte) []byte { return data[m.name.start:m.value.end] }

// is says whether the member has the given name, however it was escaped.
func (m member) is(data []byte, name string) bool {
	return named(m.name.of(data), name)
}

// named says whether a string in quotes is name, however it was escaped.
func named(quoted []byte, name string) bool {
	raw := quoted[1 : len(quoted)-1]
	if len(raw) == len(name) {
		return string(raw) == name
	}
	if len(raw) < len(name) || bytes.IndexByte(raw, '\\') < 0 {
		return false
	}
	s, ok := unquote(quoted)
	return ok && s == name
}

// object appends the members of the object that the text is to list. It is
// false when the text is none, or has anything but white space around it.
func (t text) object(list []member) ([]member, bool) {
	s := t.scanner(0)
	list, ok := t.scanMembers(list, &s)
	return list, ok && s.token() == 0 && s.offset() == len(t.data)
}

// members appends the members of the object at an offset of the text to list.
// It is false when there is no object, or one that breaks off.
func (t text) members(list []member, at int) ([]member, bool) {
	s := t.scanner(at)
	return t.scanMembers(list, &s)
}

func (t text) scanMembers(list []member, s *scanner) ([]member, bool) {
	if s.token() != '{' {
		return list, false
	}
	for begun := false; ; {
		f, more, ok := s.field(&begun)
		if !ok || !more {
			return list, ok
		}
		if !s.value(f.first) {
			return list, false
		}
		n := len(f.key)
		if f.key == nil {
			n = nameLength(t.data[f.start+1:])
		}
		end := f.start + 1 + n
		list = append(list, member{name: span{f.start, end + 1}, value: span{f.value, s.offset()}})
	}
}

// nameLength returns the length of what stands before the closing quote.
func nameLength(raw []byte) int {
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(raw)
}

// elements appends the values of the array at an offset of the text to list.
func (t text) elements(list []span, at int) ([]span, bool) {
	s := t.scanner(at)
	if s.token() != '[' {
		return list, false
	}
	for begun := false; ; {
		first, more, ok := s.element(&begun)
		if !ok || !more {
			return list, ok
		}
		start := s.offset() - 1
		if !s.value(first) {
			return list, false
		}
		list = append(list, span{start, s.offset()})
	}
}

// isNull says whether a value is the literal null.
func isNull(v []byte) bool { return len(v) == 4 && v[0] == 'n' }

// isEmpty says whether a value says nothing: null, "", [] or {}.
func isEmpty(v []byte) bool {
	return len(v) == 0 || isNull(v) || len(v) == 2 && (v[0] == '"' || v[0] == '[' || v[0] == '{')
}

// stringBody returns what stands between the quotes of a string value, still
// escaped, and whether the value is a string.
func stringBody(v []byte) ([]byte, bool) {
	if len(v) < 2 || v[0] != '"' {
		return nil, false
	}
	return v[1 : len(v)-1], true
}

// unquote decodes a JSON string. What is no UTF-8 or no whole surrogate pair
// becomes U+FFFD.
func unquote(v []byte) (string, bool) {
	body, ok := stringBody(v)
	if !ok {
		return "", false
	}
	if bytes.IndexByte(body, '\\') >= 0 {
		if slices.ContainsFunc(body, isControl) {
			return "", false
		}
		if body, ok = unescape(make([]byte, 0, len(body)), body); !ok {
			return "", false
		}
	}
	return string(validUTF8(body)), true
}

// validUTF8 returns v with U+FFFD for what is no UTF-8.
func validUTF8(v []byte) []byte {
	if utf8.Valid(v) {
		return v
	}
	return bytes.ToValidUTF8(v, []byte("\uFFFD"))
}

// space is what may stand between the tokens of JSON.
const space = " \t\r\n"

func trimSpace(s string) string { return strings.Trim(s, space) }

// isControl says whether a byte may not stand in a JSON string.
func isControl(c byte) bool { return c < ' ' }

// contains says whether a name in quotes is one of names.
func contains(names []string, quoted []byte) bool {
	return slices.Contains(names, string(quoted[1:len(quoted)-1]))
}

// appendQuoted appends s as a JSON string, as encoding/json does it without
// SetEscapeHTML: <, > and & stay as they are, so that prompt caches and
// templates see the same text that the model wrote. Half a rune becomes U+FFFD.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0 // what has been appended
	for i := 0; i < len(s); {
		c := s[i]
		if ' ' <= c && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); !escaped(r, size) {
				i += size
				continue
			}
		}
		dst = appendEscape(append(dst, s[done:i]...), s[i:i+size])
		i += size
		done = i
	}
	return append(append(dst, s[done:]...), '"')
}

// escaped says whether a rune beyond ASCII is not written as it is: it is none,
// or a line end in JavaScript.
func escaped(r rune, size int) bool {
	return r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029'
}

// appendEscape appends the escape of what stands in one.
func appendEscape(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	switch c := s[0]; {
	case c == '"', c == '\\':
		return append(dst, '\\', c)
	case c < ' ':
		if i := strings.IndexByte("\b\f\n\r\t", c); i >= 0 {
			return append(dst, '\\', "bfnrt"[i])
		}
		return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	case s == "\u2028":
		return append(dst, `\u2028`...)
	case s == "\u2029":
		return append(dst, `\u2029`...)
	}
	return append(dst, `\ufffd`...)
}

// appendMember adds a member with a value in JSON to an object being built. The
// name has nothing to escape.
func appendMember(dst []byte, name string, value []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(append(append(dst, '"'), name...), `":`...)
	return append(dst, value...)
}
