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
	"strconv"
)

// part is a member of the assistant's message as it has come so far.
type part struct {
	name  []byte // quotes included
	kind  byte   // first byte of the value: " { [ n t f or a digit
	value []byte // the whole value, but for strings only what is in the quotes
}

// append adds the field to dst as it is to be sent.
func (f *part) append(dst []byte) []byte {
	dst = append(append(dst, f.name...), ':')
	return f.appendValue(dst)
}

func (f *part) appendValue(dst []byte) []byte {
	if f.kind == '"' {
		return append(append(append(dst, '"'), f.value...), '"')
	}
	return append(dst, f.value...)
}

// merge joins a later value of a part to what has come, as streams mean it:
// strings go on, arrays grow, objects take new members, other values replace.
// A null says nothing.
func (f *part) merge(v []byte) {
	switch {
	case f.kind == 0 || isNull(f.value) && f.kind == 'n':
		f.set(v)
	case isNull(v):
	case f.kind == '"' && v[0] == '"':
		f.value = append(f.value, v[1:len(v)-1]...)
	case f.kind == '[' && v[0] == '[':
		f.value = appendElements(f.value, v)
	case f.kind == '{' && v[0] == '{':
		f.value = mergeObjects(f.value, v, nil)
	default:
		f.set(v)
	}
}

func (f *part) set(v []byte) {
	f.kind = v[0]
	if body, ok := stringBody(v); ok {
		v = body
	}
	f.value = append(f.value[:0], v...)
}

// parts are the members of an object in the order in which they came first.
type parts []part

// get returns the field of a name, nil when it has not come.
func (fs parts) get(name string) *part {
	for i := range fs {
		n := fs[i].name
		if string(n[1:len(n)-1]) == name {
			return &fs[i]
		}
	}
	return nil
}

// merge adds a member.
func (fs *parts) merge(name, value []byte) {
	for i := range *fs {
		if bytes.Equal((*fs)[i].name, name) {
			(*fs)[i].merge(value)
			return
		}
	}
	f := part{name: bytes.Clone(name)}
	f.set(value)
	*fs = append(*fs, f)
}

// appendElements joins two arrays. Elements that are objects with an `index`
// go on the element of that index, as in reasoning_details:
// https://openrouter.ai/docs/guides/best-practices/reasoning-tokens
func appendElements(have, more []byte) []byte {
	var a, b text
	a.reset(have)
	b.reset(more)
	list, ok := a.elements(nil, 0)
	add, ok2 := b.elements(nil, 0)
	if !ok || !ok2 || len(add) == 0 {
		return have
	}
	values := make([][]byte, 0, len(list)+len(add))
	for _, v := range list {
		values = append(values, v.of(have))
	}
	for _, v := range add {
		values = placeElement(values, v.of(more))
	}
	return append(append([]byte{'['}, bytes.Join(values, []byte(","))...), ']')
}

func placeElement(values [][]byte, v []byte) [][]byte {
	index, ok := elementIndex(v)
	if !ok {
		return append(values, v)
	}
	for i, have := range values {
		if n, ok := elementIndex(have); ok && n == index {
			values[i] = mergeObjects(have, v, streamedStrings)
			return values
		}
	}
	return append(values, v)
}

func elementIndex(v []byte) (int, bool) {
	var t text
	t.reset(v)
	list, ok := t.members(nil, 0)
	if !ok {
		return 0, false
	}
	for _, m := range list {
		if m.is(v, "index") {
			return number(m.value.of(v))
		}
	}
	return 0, false
}

// streamedStrings are the members of an element that come in pieces. Others,
// such as type, id, format and signature, come whole and may come repeatedly.
var streamedStrings = []string{"text", "summary", "data", "thinking", "content"}

// mergeObjects gives have the members of more. Strings named in streamed are
// joined, others replaced.
func mergeObjects(have, more []byte, streamed []string) []byte {
	var a, b text
	a.reset(have)
	b.reset(more)
	var fs parts
	list, ok := a.members(nil, 0)
	add, ok2 := b.members(nil, 0)
	if !ok || !ok2 {
		return have
	}
	for _, m := range list {
		fs.merge(m.name.of(have), m.value.of(have))
	}
	for _, m := range add {
		name, value := m.name.of(more), m.value.of(more)
		f := fs.get(string(name[1 : len(name)-1]))
		switch {
		case f == nil:
			fs.merge(name, value)
		case isNull(value):
		case f.kind == '"' && value[0] == '"' && !contains(streamed, name):
			f.set(value)
		default:
			f.merge(value)
		}
	}
	return fs.object()
}

func contains(names []string, quoted []byte) bool {
	for _, n := range names {
		if string(quoted[1:len(quoted)-1]) == n {
			return true
		}
	}
	return false
}

// object renders the parts.
func (fs parts) object() []byte {
	dst := []byte{'{'}
	for i := range fs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = fs[i].append(dst)
	}
	return append(dst, '}')
}

// appendMember adds a member with a value in JSON to an object being built.
func appendMember(dst []byte, name string, value []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(strconv.AppendQuote(dst, name), ':')
	return append(dst, value...)
}
