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
	"math"
	"strconv"
	"strings"
)

// fragment is a piece of a call as one delta has it. Its bytes are those of
// the chunk.
type fragment struct {
	id, name string
	index    int
	listed   bool // it has an index
	custom   bool // it is of a custom tool, whose input is text and no JSON
	mended   bool // the name is less than what came
	args     []byte
	object   []byte
	extra    []unknown
	inner    []unknown
}

// unknown is a member that means nothing to us. Its name is in quotes.
type unknown struct{ name, value []byte }

// says reports whether the fragment adds to the arguments.
func (f *fragment) says() bool { return len(f.args) > 0 || f.object != nil }

// readFragment reads an element of tool_calls.
func readFragment(raw []byte) (fragment, bool) {
	var f fragment
	t := text{raw}
	var few [8]member
	list, ok := t.members(few[:0], 0)
	if !ok {
		return f, false
	}
	var flat fragment // a function without one of its own, as Cloudflare has it
	nested := false
	for _, m := range list {
		v := m.value.of(raw)
		switch {
		case isNull(v):
		case m.is(raw, "index"):
			f.index, f.listed = position(v)
		case m.is(raw, "id"):
			f.id = identity(v)
		case m.is(raw, "type"):
		case m.is(raw, "function"):
			nested = f.readFunction(v, "arguments") || nested
		case m.is(raw, "custom"):
			f.custom = f.readFunction(v, "input")
		case !flat.readMember(m, raw, "arguments"):
			f.extra = append(f.extra, unknown{m.name.of(raw), v})
		}
	}
	if !nested && !f.custom {
		f.name, f.mended, f.args, f.object = flat.name, flat.mended, flat.args, flat.object
	}
	return f, true
}

// readFunction reads the value of function, or of its like, whose arguments
// have the given name. It is false when there is none.
func (f *fragment) readFunction(raw []byte, arguments string) bool {
	t := text{raw}
	var few [8]member
	list, ok := t.members(few[:0], 0)
	if !ok {
		return false
	}
	for _, m := range list {
		if v := m.value.of(raw); !isNull(v) && !f.readMember(m, raw, arguments) {
			f.inner = append(f.inner, unknown{m.name.of(raw), v})
		}
	}
	return true
}

// readMember reads a member of function that is not null. It is false when
// that is neither the name nor the arguments.
func (f *fragment) readMember(m member, raw []byte, arguments string) bool {
	switch v := m.value.of(raw); {
	case m.is(raw, "name"):
		name := identity(v)
		f.name = cleanName(name)
		f.mended = f.name != name
	case m.is(raw, arguments):
		if body, ok := stringBody(v); ok {
			f.args = body
		} else {
			f.object = v
		}
	default:
		return false
	}
	return true
}

// identity reads an id or a name. Null, the empty string and absence are the
// same; a number stands for its text:
// https://github.com/AI-Shell-Team/aish/pull/200
func identity(v []byte) string {
	if len(v) == 0 || isNull(v) {
		return ""
	}
	if s, ok := unquote(v); ok {
		return s
	}
	if isNumber(v[0]) {
		return string(v)
	}
	return ""
}

// position reads an index, which may be written as a string or with a point.
func position(v []byte) (int, bool) {
	x, err := strconv.ParseFloat(strings.TrimSpace(identity(v)), 64)
	if err != nil || x != math.Trunc(x) || math.Abs(x) > math.MaxInt32 {
		return 0, false
	}
	return int(x), true
}

// cleanName takes off what a chat template left around a name, such as
// <|channel|>commentary behind it.
func cleanName(s string) string {
	s = strings.TrimSpace(s)
	for strings.HasPrefix(s, "<|") {
		_, rest, ok := strings.Cut(s, "|>")
		if !ok {
			return ""
		}
		s = strings.TrimSpace(rest)
	}
	s, _, _ = strings.Cut(s, "<|")
	return strings.TrimSpace(s)
}
