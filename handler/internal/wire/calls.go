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
	"strconv"
	"strings"
)

// Call is a tool call of the model, assembled from however many fragments.
type Call struct {
	// ID is the id that the upstream gave, or one made by Turn.Settle.
	ID string
	// Name is the name as it came, less the control tokens of a template.
	Name string

	args   []byte // the bodies of the argument strings, still escaped
	cuts   []int  // where each fragment of args starts
	object []byte // arguments that came as a value that is no string
	index  int
	listed bool  // it has an index
	extra  parts // unknown members of the call
	inner  parts // unknown members of its function
}

// fragment is a piece of a call as one delta has it.
type fragment struct {
	id, name string
	index    int
	listed   bool
	args     []byte // body of the string
	object   []byte // arguments that are no string
	extra    parts
	inner    parts
}

// Assembler makes calls out of fragments. Upstreams differ in what identifies
// a fragment: an index, an id, both, or nothing but its place. The zero value
// is ready for use.
type Assembler struct {
	calls  []*Call
	last   *Call
	inThis []*Call // calls that the current delta has had fragments of
	t      text
	list   []member
}

// begin starts a delta: two elements of one array are never the same call
// when both bring a name.
func (a *Assembler) begin() { a.inThis = a.inThis[:0] }

// add takes a fragment of tool_calls and returns the call it belongs to.
func (a *Assembler) add(raw []byte) *Call {
	f, ok := a.read(raw)
	if !ok {
		return nil
	}
	return a.place(f)
}

// addLegacy takes a delta.function_call, the form from before tool_calls.
func (a *Assembler) addLegacy(raw []byte) *Call {
	var f fragment
	if !a.readFunction(&f, raw) {
		return nil
	}
	return a.place(f)
}

func (a *Assembler) read(raw []byte) (fragment, bool) {
	var f fragment
	var t text
	t.reset(raw)
	list, ok := t.members(nil, 0)
	if !ok {
		return f, false
	}
	for _, m := range list {
		name, v := m.name.of(raw), m.value.of(raw)
		switch {
		case m.is(raw, "index"):
			f.index, f.listed = number(v)
		case m.is(raw, "id"):
			f.id = identity(v)
		case m.is(raw, "type"):
		case m.is(raw, "function"):
			if !isNull(v) && !a.readFunction(&f, v) {
				return f, false
			}
		default:
			f.extra.merge(name, v)
		}
	}
	return f, true
}

func (a *Assembler) readFunction(f *fragment, raw []byte) bool {
	a.t.reset(raw)
	list, ok := a.t.members(a.list[:0], 0)
	a.list = list
	if !ok {
		return false
	}
	for _, m := range list {
		v := m.value.of(raw)
		switch {
		case m.is(raw, "name"):
			f.name = cleanName(identity(v))
		case m.is(raw, "arguments"):
			if body, ok := stringBody(v); ok {
				f.args = body
			} else if !isNull(v) {
				f.object = v
			}
		default:
			f.inner.merge(m.name.of(raw), v)
		}
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
	if c := v[0]; c == '-' || '0' <= c && c <= '9' {
		return string(v)
	}
	return ""
}

// cleanName cuts off what a chat template left behind a name, such as
// <|channel|>commentary.
func cleanName(s string) string {
	s, _, _ = strings.Cut(s, "<|")
	return strings.TrimSpace(s)
}

// place finds the call that a fragment belongs to, or opens one.
func (a *Assembler) place(f fragment) *Call {
	c := a.find(f)
	if c == nil {
		c = &Call{index: f.index, listed: f.listed}
		a.calls = append(a.calls, c)
	}
	c.take(f)
	a.last = c
	a.inThis = append(a.inThis, c)
	return c
}

// find returns the call that a fragment continues, nil when it begins one.
func (a *Assembler) find(f fragment) *Call {
	atIndex := a.byIndex(f)
	switch {
	case f.id != "" && f.name != "":
		return a.findNamed(f, atIndex)
	case f.id != "":
		if c := a.byID(f.id); c != nil && agree(c, f) {
			return c
		}
		// Some upstreams give each fragment an id of its own.
		if atIndex != nil && !atIndex.complete() {
			return atIndex
		}
		if !f.listed && a.last != nil && a.last.Name != "" && !a.last.complete() {
			return a.last
		}
		return nil
	case f.name != "":
		c := atIndex
		if !f.listed {
			c = a.last
		}
		if c == nil || a.had(c) || !c.awaits(f) {
			return nil
		}
		return c
	case atIndex != nil:
		return atIndex
	case f.listed && a.last != nil && a.last.complete():
		return nil
	}
	return a.last
}

// findNamed is find for a fragment with an id and a name.
func (a *Assembler) findNamed(f fragment, atIndex *Call) *Call {
	if c := a.byID(f.id); c != nil && agree(c, f) && (!a.had(c) || c.Name == "") {
		return c
	}
	if atIndex != nil && atIndex.ID == "" && !a.had(atIndex) && atIndex.awaits(f) {
		return atIndex
	}
	return nil
}

// agree says whether the index of a fragment does not speak against a call.
func agree(c *Call, f fragment) bool { return !c.listed || !f.listed || c.index == f.index }

func (a *Assembler) byID(id string) *Call {
	for i := len(a.calls) - 1; i >= 0; i-- {
		if a.calls[i].ID == id {
			return a.calls[i]
		}
	}
	return nil
}

// byIndex returns the latest call at the index of a fragment.
func (a *Assembler) byIndex(f fragment) *Call {
	if !f.listed {
		return nil
	}
	for i := len(a.calls) - 1; i >= 0; i-- {
		if c := a.calls[i]; c.listed && c.index == f.index {
			return c
		}
	}
	return nil
}

func (a *Assembler) had(c *Call) bool {
	for _, x := range a.inThis {
		if x == c {
			return true
		}
	}
	return false
}

// awaits says whether a call can go on with a fragment that brings a name: it
// has none yet, or the same one and arguments that are not at their end, or it
// is told again what it has.
func (c *Call) awaits(f fragment) bool {
	switch {
	case c.Name == "":
		return true
	case c.Name != f.name:
		// A name in pieces, before any arguments.
		return f.listed && f.id == "" && len(c.args) == 0 && c.object == nil
	case !c.complete():
		return true
	}
	return len(f.args) == 0 && f.object == nil || bytes.Equal(f.args, c.args)
}

// complete says whether the arguments are a whole JSON value.
func (c *Call) complete() bool {
	if c.object != nil {
		return true
	}
	s, ok := c.Arguments()
	return ok && s != "" && json.Valid([]byte(s))
}

// take adds a fragment to the call.
func (c *Call) take(f fragment) {
	if c.ID == "" {
		c.ID = f.id
	}
	switch {
	case strings.HasPrefix(f.name, c.Name):
		c.Name = f.name
	case f.name != "" && f.id == "" && len(c.args) == 0:
		c.Name += f.name
	}
	if !c.listed && f.listed {
		c.index, c.listed = f.index, true
	}
	if len(f.args) > 0 {
		c.cuts = append(c.cuts, len(c.args))
		c.args = append(c.args, f.args...)
	}
	if f.object != nil {
		c.object = bytes.Clone(f.object)
	}
	for _, p := range f.extra {
		c.extra.mergePart(p)
	}
	for _, p := range f.inner {
		c.inner.mergePart(p)
	}
}

// mergePart merges a part that owns its bytes.
func (fs *parts) mergePart(p part) { fs.merge(p.name, p.appendValue(nil)) }

// Arguments returns the joined arguments. It is false when they are no string
// that can be decoded.
func (c *Call) Arguments() (string, bool) {
	return unquote(quoted(c.args))
}

// pieces returns the arguments as they came, fragment by fragment.
func (c *Call) pieces() []string {
	out := make([]string, 0, len(c.cuts))
	for i, at := range c.cuts {
		end := len(c.args)
		if i+1 < len(c.cuts) {
			end = c.cuts[i+1]
		}
		s, ok := unquote(quoted(c.args[at:end]))
		if !ok {
			return nil
		}
		out = append(out, s)
	}
	return out
}

func quoted(body []byte) []byte {
	v := make([]byte, 0, len(body)+2)
	return append(append(append(v, '"'), body...), '"')
}

// appendEcho adds the call as it goes back to the upstream, with arguments as
// a JSON string.
func (c *Call) appendEcho(dst, arguments []byte, without Dropped) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendQuoted(dst, c.ID)
	dst = append(dst, `,"type":"function","function":{"name":`...)
	dst = appendQuoted(dst, c.Name)
	dst = append(dst, `,"arguments":`...)
	dst = append(dst, arguments...)
	dst = append(c.inner.appendTo(dst, without), '}')
	return append(c.extra.appendTo(dst, without), '}')
}

// appendTo adds the members to an object that has others before.
func (fs parts) appendTo(dst []byte, without Dropped) []byte {
	for i := range fs {
		if !without.has(fs[i].name) {
			dst = fs[i].append(append(dst, ','))
		}
	}
	return dst
}

// appendDelta adds the call as a fragment of a stream, under an index of ours.
// opening fragments carry all that is known, others only arguments.
func (c *Call) appendDelta(dst []byte, index, from int, opening bool) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(index), 10)
	args := c.args[from:]
	if opening {
		dst = appendQuoted(append(dst, `,"id":`...), c.ID)
		dst = appendQuoted(append(dst, `,"type":"function","function":{"name":`...), c.Name)
		if c.object != nil {
			object := appendQuoted(nil, string(c.object))
			args = object[1 : len(object)-1]
		}
		dst = append(append(append(dst, `,"arguments":"`...), args...), '"')
		dst = append(c.inner.appendTo(dst, Dropped{}), '}')
		return append(c.extra.appendTo(dst, Dropped{}), '}')
	}
	dst = append(append(append(dst, `,"function":{"arguments":"`...), args...), '"')
	return append(dst, "}}"...)
}
