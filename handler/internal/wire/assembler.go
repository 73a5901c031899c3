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

import "slices"

// Assembler makes calls out of fragments. Upstreams differ in what identifies
// a fragment: an index, an id, both, or nothing but its place. The zero value
// is ready for use.
type Assembler struct {
	calls  []*Call
	last   *Call   // the one of the latest fragment
	inThis []*Call // calls that the current delta has had fragments of
	tally  tally   // of unknown members, and of looks for calls
}

// begin starts a delta.
func (a *Assembler) begin() { a.inThis = a.inThis[:0] }

// add takes a fragment of tool_calls.
func (a *Assembler) add(raw []byte) {
	if f, ok := readFragment(raw); ok {
		a.place(f)
	}
}

// addLegacy takes a delta.function_call, the form from before tool_calls.
func (a *Assembler) addLegacy(raw []byte) {
	var f fragment
	if f.readFunction(raw, "arguments") {
		a.place(f)
	}
}

// place adds a fragment to the call that it belongs to, or opens one.
func (a *Assembler) place(f fragment) {
	if !a.tally.search(len(a.calls) + len(a.inThis)) {
		return
	}
	c := a.find(f)
	if c == nil {
		// A name alone may begin the next call or tell the last one's again.
		c = &Call{again: f.id == "" && a.last != nil && a.last.Name == f.name}
		a.calls = append(a.calls, c)
	}
	c.take(f, &a.tally)
	a.last = c
	a.inThis = append(a.inThis, c)
}

// find returns the call that a fragment continues, nil when it begins one.
func (a *Assembler) find(f fragment) *Call {
	// Where the fragment says that it belongs, or where it came.
	here := a.last
	if f.listed {
		here = a.byIndex(f.index)
	}
	switch {
	case f.id != "" && f.name != "":
		return a.findNamed(f, here)
	case f.id != "":
		return a.findByID(f, here)
	case f.name != "":
		if here == nil || a.had(here) || !here.awaits(f) || here.Name != "" && here.ended() && !f.says() {
			return nil
		}
		return here
	case here != nil:
		return here
	case a.last != nil && a.last.ended():
		return nil
	}
	return a.last
}

// findNamed is find for a fragment with an id and a name.
func (a *Assembler) findNamed(f fragment, here *Call) *Call {
	if c := a.byID(f); c != nil && (!a.had(c) || c.Name == "") && c.awaits(f) {
		return c
	}
	// Arguments may come before the id and the name.
	if here != nil && here.ID == "" && !a.had(here) && here.awaits(f) {
		return here
	}
	return nil
}

// findByID is find for a fragment with an id but no name. Some upstreams give
// each fragment an id of its own.
func (a *Assembler) findByID(f fragment, here *Call) *Call {
	if c := a.byID(f); c != nil {
		return c
	}
	if here == nil {
		// The index is that of the fragment, not of the call.
		return a.openWith(f.id)
	}
	if here.ended() || !f.listed && here.Name == "" {
		return nil
	}
	return here
}

// openWith returns the latest call with an id, nil if it can have no more.
func (a *Assembler) openWith(id string) *Call {
	for _, c := range slices.Backward(a.calls) {
		if c.ID == id && !c.ended() {
			return c
		}
	}
	return nil
}

// byID returns the latest call with the id of a fragment, unless its index
// speaks against it.
func (a *Assembler) byID(f fragment) *Call {
	for _, c := range slices.Backward(a.calls) {
		if c.ID == f.id && (!c.listed || !f.listed || c.index == f.index) {
			return c
		}
	}
	return nil
}

// byIndex returns the latest call at an index.
func (a *Assembler) byIndex(index int) *Call {
	for _, c := range slices.Backward(a.calls) {
		if c.listed && c.index == index {
			return c
		}
	}
	return nil
}

// had says whether the current delta has had a fragment of a call: two
// elements of one array are never the same call when both bring a name.
func (a *Assembler) had(c *Call) bool { return slices.Contains(a.inThis, c) }
