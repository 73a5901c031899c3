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

package e2b

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// eventFields are the indexes of the fields of a wireEvent by their names.
var eventFields = func() map[string][]int {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[wireEvent]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f.Index
		}
	}
	return fields
}()

// usual parses a line in which all is as servers send it: an object of known
// fields, each with a value of its type. That is most of what a run costs here,
// and of a chart many times less than encoding/json takes. It is false for any
// other line, and w is of no use then.
func (w *wireEvent) usual(data []byte) bool {
	l := line{data}
	if !l.skip('{') {
		return false
	}
	fields := reflect.ValueOf(w).Elem()
	for {
		name, ok := l.quoted()
		if !ok || !l.skip(':') {
			return false
		}
		index, ok := eventFields[string(name[1:len(name)-1])]
		if !ok || !l.value(fields.FieldByIndex(index).Addr().Interface()) {
			return false
		}
		if !l.skip(',') {
			return l.skip('}') && len(l.rest) == 0
		}
	}
}

// line reads a line; rest is what has not been read.
type line struct{ rest []byte }

// white is the white space of JSON.
const white = " \t\r\n"

// skip skips a byte and the white space around it. It is false when another one
// is next.
func (l *line) skip(c byte) bool {
	l.rest = bytes.TrimLeft(l.rest, white)
	if len(l.rest) == 0 || l.rest[0] != c {
		return false
	}
	l.rest = bytes.TrimLeft(l.rest[1:], white)
	return true
}

// value reads a value of the type that the field has.
func (l *line) value(field any) (ok bool) {
	if raw, is := field.(*json.RawMessage); is {
		return l.raw(raw)
	}
	if l.word("null") {
		return true
	}
	switch field := field.(type) {
	case *EventType:
		return l.text((*string)(field))
	case *string:
		return l.text(field)
	case *int:
		return l.number(field)
	case *bool:
		*field = l.word("true")
		return *field || l.word("false")
	}
	return false
}

// word skips a word if it is next.
func (l *line) word(s string) bool {
	rest, ok := bytes.CutPrefix(l.rest, []byte(s))
	l.rest = rest
	return ok
}

// number reads a whole number.
func (l *line) number(field *int) bool {
	digits := l.take(len(l.rest) - len(bytes.TrimLeft(l.rest, "0123456789")))
	n, err := strconv.Atoi(string(digits))
	*field = n
	return err == nil && (digits[0] != '0' || len(digits) == 1)
}

// maxDepth is far below the depth at which encoding/json refuses a line, of
// which a value here is one level less.
const maxDepth = 1000

// raw reads any value. Where one ends that is no JSON does not matter: it is
// refused.
func (l *line) raw(field *json.RawMessage) bool {
	depth, at := 0, 0
	for at < len(l.rest) {
		switch c := l.rest[at]; {
		case c == '"':
			at = stringEnd(l.rest, at)
			continue
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return false
			}
		case depth > 0 && (c == ']' || c == '}'):
			depth--
		case depth == 0 && (c == ',' || c == '}'):
			value := bytes.TrimRight(l.take(at), white)
			*field = bytes.Clone(value)
			return json.Valid(value)
		}
		at++
	}
	return false
}

// text reads a string.
func (l *line) text(field *string) bool {
	quoted, itself := l.quoted()
	if itself {
		*field = string(quoted[1 : len(quoted)-1])
		return true
	}
	return len(quoted) > 0 && json.Unmarshal(quoted, field) == nil
}

// quoted skips a string, which it returns with its quotes, or nothing if there
// is none. It is true if what is between them is the text itself.
func (l *line) quoted() (quoted []byte, itself bool) {
	if len(l.rest) == 0 || l.rest[0] != '"' {
		return nil, false
	}
	ascii := true
	for i, c := range l.rest[1:] {
		switch {
		case c == '"':
			quoted = l.take(i + 2)
			return quoted, ascii || utf8.Valid(quoted)
		case c < ' ', c == '\\':
			return l.take(stringEnd(l.rest, 0)), false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false
}

// take skips n bytes, which it returns.
func (l *line) take(n int) []byte {
	taken := l.rest[:n]
	l.rest = l.rest[n:]
	return taken
}
