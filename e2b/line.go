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

// space skips the white space of JSON.
func (l *line) space() { l.rest = bytes.TrimLeft(l.rest, " \t\r\n") }

// skip skips a byte, and white space around it, if it is next.
func (l *line) skip(c byte) bool {
	l.space()
	if len(l.rest) == 0 || l.rest[0] != c {
		return false
	}
	l.rest = l.rest[1:]
	l.space()
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
	digits := len(l.rest) - len(bytes.TrimLeft(l.rest, "0123456789"))
	n, err := strconv.Atoi(string(l.rest[:digits]))
	if err != nil || l.rest[0] == '0' && digits > 1 {
		return false
	}
	*field, l.rest = n, l.rest[digits:]
	return true
}

// maxDepth is far below the depth at which encoding/json refuses a line, of
// which a value here is one level less.
const maxDepth = 1000

// raw reads any value. Where one ends that is no JSON does not matter: valid
// refuses it.
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
			return l.valid(field, at)
		}
		at++
	}
	return false
}

// valid takes the next n bytes as a value.
func (l *line) valid(field *json.RawMessage, n int) bool {
	value := bytes.TrimRight(l.rest[:n], " \t\r\n")
	if !json.Valid(value) {
		return false
	}
	*field, l.rest = bytes.Clone(value), l.rest[n:]
	return true
}

// text reads a string.
func (l *line) text(field *string) bool {
	quoted, ok := l.quoted()
	if ok {
		*field = string(quoted[1 : len(quoted)-1])
		return true
	}
	if len(quoted) == 0 {
		return false
	}
	return json.Unmarshal(quoted, field) == nil
}

// quoted skips a string, which it returns with its quotes, or nothing if there
// is none. It is true if what is between them is the text itself.
func (l *line) quoted() (quoted []byte, itself bool) {
	if len(l.rest) == 0 || l.rest[0] != '"' {
		return nil, false
	}
	end := stringEnd(l.rest, 0)
	quoted, l.rest = l.rest[:end], l.rest[end:]
	if end < 2 || quoted[end-1] != '"' {
		return quoted, false
	}
	ascii := true
	for _, c := range quoted[1 : end-1] {
		if c < ' ' || c == '\\' {
			return quoted, false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return quoted, ascii || utf8.Valid(quoted)
}
