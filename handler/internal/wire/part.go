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
	"iter"
)

// part is a JSON value that may come in pieces: a member of the assistant's
// message, or what lies in it.
type part struct {
	name  []byte // quotes included; nil for an element of an array
	kind  byte   // first byte of the value: " { [ n t f or a digit; 0 when none came
	value []byte // the value, but for strings only what is in the quotes

	// What a container holds, once it was added to; value then is out of date.
	members parts
	items   []part
}

// append adds the member to dst as it is to be sent.
func (f *part) append(dst []byte) []byte {
	return f.appendValue(append(append(dst, f.name...), ':'))
}

func (f *part) appendValue(dst []byte) []byte {
	switch {
	case f.kind == '"':
		return append(append(append(dst, '"'), f.value...), '"')
	case f.members != nil:
		dst = append(dst, '{')
		for i := range f.members {
			dst = f.members[i].append(separated(dst, i))
		}
		return append(dst, '}')
	case f.items != nil:
		dst = append(dst, '[')
		for i := range f.items {
			dst = f.items[i].appendValue(separated(dst, i))
		}
		return append(dst, ']')
	}
	return append(dst, f.value...)
}

// separated separates the element of a number from the one before.
func separated(dst []byte, i int) []byte {
	if i == 0 {
		return dst
	}
	return append(dst, ',')
}

// text is the body of a string, still escaped, "" for anything else.
func (f *part) text() string {
	if f.kind != '"' {
		return ""
	}
	return string(f.value)
}

// empty says whether the value says nothing.
func (f *part) empty() bool {
	return f.members == nil && f.items == nil &&
		(f.kind == 'n' || f.kind == 0 || f.kind == '"' && len(f.value) == 0 || f.kind != '"' && isEmpty(f.value))
}

// set gives the part a value in place of what it had.
func (f *part) set(v []byte) {
	f.kind, f.members, f.items = v[0], nil, nil
	if body, ok := stringBody(v); ok {
		v = body
	}
	f.value = append(f.value[:0], v...)
}

// What is taken apart of an answer is bounded: each part takes some hundred bytes,
// and is looked for among all others. Both bounds are far beyond what models say,
// and together are some tens of megabytes and half a second.
const (
	maxParts = 1 << 18 // members and elements that are held
	maxSteps = 1 << 27 // parts that were looked at
)

// tally counts them.
type tally struct{ held, steps int }

// full says whether there are too many. What has come then is not all held.
func (n *tally) full() bool { return n.held > maxParts || n.steps > maxSteps }

// search counts a look at so many parts. It is false when that is too many.
func (n *tally) search(among int) bool {
	n.steps += among
	return !n.full()
}

// manner is how a later value is joined to an earlier one.
type manner struct {
	tally  *tally
	join   bool     // strings go on; else a later one replaces an earlier one
	pieces []string // the members of objects below whose strings go on
	depth  int      // how far down to join; deeper values replace each other
}

// maxDepth is how deep values are joined: deeper than any provider nests, and
// little enough that no upstream can make it slow.
const maxDepth = 6

// inPieces is how the members of a message come.
func inPieces(n *tally) manner { return manner{tally: n, join: true, depth: maxDepth} }

// inWhole is how the members of a call come, if with each fragment.
func inWhole(n *tally) manner { return manner{tally: n, depth: maxDepth} }

// below is the manner for what lies in a member or an element.
func (m manner) below(name []byte, pieces []string) manner {
	return manner{tally: m.tally, join: name != nil && contains(pieces, name), pieces: pieces, depth: m.depth - 1}
}

// add joins a later value to what has come, as streams mean it: arrays grow,
// objects take new members, other values replace. What is empty says nothing.
func (f *part) add(v []byte, m manner) {
	switch {
	case f.kind == 0 || f.kind == 'n':
		f.set(v)
	case isEmpty(v):
	case f.kind == '"' && v[0] == '"' && m.join:
		f.value = append(f.value, v[1:len(v)-1]...)
	case f.kind == '"' && v[0] == '[' && m.join && !f.empty():
		text := f.appendValue([]byte(textPart))
		f.set(append(text, "}]"...))
		f.grow(v, m)
	case f.kind == '[' && v[0] == '"' && m.join:
		f.grow(append(append([]byte(textPart), v...), "}]"...), m)
	case f.kind == '[' && v[0] == '[' && m.depth > 0:
		f.grow(v, m)
	case f.kind == '{' && v[0] == '{' && m.depth > 0:
		f.extend(v, m)
	default:
		f.set(v)
	}
}

// textPart begins an array with a text in it: some upstreams send a content
// that is now a string, now an array of parts.
const textPart = `[{"type":"text","text":`

// extend gives an object the members of another one.
func (f *part) extend(v []byte, m manner) {
	f.open(m.tally)
	for name, value := range membersOf(v) {
		f.members.member(name, m.tally).add(value, m.below(name, m.pieces))
	}
}

// open takes an object apart, so that members can be added.
func (f *part) open(n *tally) {
	if f.members != nil {
		return
	}
	f.members = parts{}
	for name, value := range membersOf(f.value) {
		f.members.member(name, n).set(value)
	}
}

// membersOf returns the names, quotes included, and values of the members of
// an object, none for what is none.
func membersOf(v []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		t := text{v}
		var few [8]member
		list, ok := t.members(few[:0], 0)
		if !ok {
			return
		}
		for _, m := range list {
			if !yield(m.name.of(v), m.value.of(v)) {
				return
			}
		}
	}
}

// elementsOf returns the elements of an array, none for what is none.
func elementsOf(v []byte) []span {
	t := text{v}
	list, ok := t.elements(nil, 0)
	if !ok {
		return nil
	}
	return list
}

// parts are the members of an object in the order in which they came first.
type parts []part

// get returns the member of a name, nil when it has not come.
func (fs parts) get(name string) *part {
	for i := range fs {
		if n := fs[i].name; string(n[1:len(n)-1]) == name {
			return &fs[i]
		}
	}
	return nil
}

// member returns the member with a name in quotes, a new one of no kind when
// there is none. The name is kept without escapes that it does not need. When
// there are too many, it is one that nobody sees.
func (fs *parts) member(name []byte, n *tally) *part {
	if !n.search(len(*fs)) {
		return &part{}
	}
	if bytes.IndexByte(name, '\\') >= 0 {
		if s, ok := unquote(name); ok {
			name = appendQuoted(nil, s)
		}
	}
	for i := range *fs {
		if bytes.Equal((*fs)[i].name, name) {
			return &(*fs)[i]
		}
	}
	n.held++
	*fs = append(*fs, part{name: bytes.Clone(name)})
	return &(*fs)[len(*fs)-1]
}
