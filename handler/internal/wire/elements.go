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

// streamedStrings are the members of an element that come in pieces. Others,
// such as type, id, format and signature, come whole and may come repeatedly.
var streamedStrings = []string{"text", "summary", "data", "thinking", "content"}

// flowing are those of which more may come in an element of its own, without
// an index to tell where it belongs.
var flowing = []string{"text", "summary", "thinking", "content"}

// grow adds the elements of v to an array. Elements that are objects with an
// `index` go on the element of that index, as in OpenRouter's reasoning_details.
// Without one the first element may go on the last one, as in thinking_blocks:
// https://github.com/BerriAI/litellm/pull/16434
func (f *part) grow(v []byte, m manner) {
	if f.items == nil {
		f.items = []part{}
		for _, x := range elementsOf(f.value) {
			if m.tally.full() {
				return
			}
			m.tally.held++
			f.items = append(f.items, newItem(x.of(f.value), m.tally))
		}
	}
	before := len(f.items)
	for i, x := range elementsOf(v) {
		held := m.tally.held
		next := newItem(x.of(v), m.tally)
		if m.tally.full() {
			return
		}
		at := -1
		switch {
		case next.members == nil:
		case next.members.get("index") != nil:
			at = f.atIndex(&next, m.tally)
		case i == 0 && before > 0 && f.items[before-1].flowsInto(&next):
			at = before - 1
		}
		if at < 0 {
			m.tally.held++
			f.items = append(f.items, next)
			continue
		}
		m.tally.held = held // next is not
		f.items[at].add(x.of(v), m.below(nil, streamedStrings))
	}
}

// newItem returns an element of an array. Objects are taken apart at once.
func newItem(v []byte, n *tally) part {
	var p part
	p.set(v)
	if p.kind == '{' {
		p.open(n)
	}
	return p
}

// atIndex returns which of the items has the index of next, -1 for none. Those
// of another type are others: a summary and what it is encrypted to may share
// an index.
func (f *part) atIndex(next *part, n *tally) int {
	index := string(next.members.get("index").value)
	for i := len(f.items) - 1; i >= 0; i-- { // it is mostly the last one
		have := &f.items[i]
		if have.members == nil {
			continue
		}
		n.steps += 4 // as many members
		if x := have.members.get("index"); x != nil && string(x.value) == index && !differ(have, next, "type") {
			return i
		}
	}
	return -1
}

// flowsInto says whether next, which has no index, is more of the same element:
// it has the same type and text of the same kind, and the one before is not
// closed by a signature.
func (f *part) flowsInto(next *part) bool {
	kind := f.members.get("type")
	if kind == nil || f.members.get("index") != nil || next.members.get("type") == nil ||
		differ(f, next, "type") || differ(f, next, "id") {
		return false
	}
	if signature := f.members.get("signature"); signature != nil && !signature.empty() {
		return false
	}
	for _, name := range flowing {
		if a, b := f.members.get(name), next.members.get(name); a != nil && b != nil && a.kind == b.kind {
			return true
		}
	}
	return false
}

// differ says whether two objects have a member of different values.
func differ(a, b *part, name string) bool {
	x, y := a.members.get(name), b.members.get(name)
	return x != nil && y != nil && !x.empty() && !y.empty() && string(x.value) != string(y.value)
}
