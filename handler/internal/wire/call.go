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
	"strings"
)

// Call is a tool call of the model, assembled from however many fragments.
type Call struct {
	// ID is the id that the upstream gave, or one made by Answer.Settle.
	ID string
	// Name is the name as it came, less the control tokens of a template.
	Name string

	args   []byte // the bodies of the argument strings, still escaped
	cuts   []int  // where each fragment of args starts
	end    ending // of args
	object []byte // arguments that came as a value that is no string
	index  int
	listed bool   // it has an index
	custom bool   // it is of a custom tool
	mended bool   // the name is less than what came
	given  bool   // the id is one of ours
	again  bool   // it began with the name of the call before and no id
	extra  parts  // unknown members of the call
	inner  parts  // unknown members of its function
	echoed string // the name under which it goes back to the upstream
}

// take adds a fragment to the call.
func (c *Call) take(f fragment, n *tally) {
	if c.ID == "" {
		c.ID = f.id
	}
	switch {
	case f.name == "":
	case strings.HasPrefix(f.name, c.Name):
		c.Name = f.name
	case !c.begun() && (f.id == "" || f.id == c.ID):
		c.Name += f.name
	}
	if !c.listed && f.listed {
		c.index, c.listed = f.index, true
	}
	c.custom, c.mended = c.custom || f.custom, c.mended || f.mended
	if len(f.args) > 0 {
		c.cuts = append(c.cuts, len(c.args))
		c.args = append(c.args, f.args...)
	}
	if f.object != nil {
		c.object = bytes.Clone(f.object)
	}
	for _, m := range f.extra {
		c.extra.member(m.name, n).add(m.value, inWhole(n))
	}
	for _, m := range f.inner {
		c.inner.member(m.name, n).add(m.value, inWhole(n))
	}
}

// awaits says whether the call can go on with a fragment that brings a name:
// it has none yet, or the same one and arguments that are not at their end, or
// it is told again what it has, or that and more.
func (c *Call) awaits(f fragment) bool {
	switch {
	case c.Name == "":
		return true
	case c.Name == f.name:
		return !c.ended() || c.repeats(f) || f.id != "" && f.id == c.ID && c.grows(f)
	case c.begun():
		return false
	}
	// A name in pieces, before any arguments.
	return f.listed || f.id != ""
}

// begun says whether there are arguments.
func (c *Call) begun() bool { return len(c.args) > 0 || c.object != nil }

// repeats says whether a fragment tells no arguments or once more what the
// call has.
func (c *Call) repeats(f fragment) bool {
	return !f.says() || bytes.Equal(f.args, c.args) && bytes.Equal(f.object, c.object)
}

// grows says whether a fragment tells again what the latest one has told, and
// more of it.
func (c *Call) grows(f fragment) bool {
	if f.object != nil || len(c.cuts) == 0 {
		return f.object != nil && grown(string(c.object), string(f.object))
	}
	before, known := unquote(quoted(c.args[c.cuts[len(c.cuts)-1]:]))
	after, ok := unquote(quoted(f.args))
	return known && ok && grown(before, after)
}

// complete says whether the arguments are a whole JSON value.
func (c *Call) complete() bool {
	if len(c.args) == 0 {
		return c.object != nil
	}
	if !c.end.follow(c.args) {
		return false
	}
	if !c.end.checked {
		s, ok := c.Arguments()
		c.end.checked, c.end.valid = true, ok && json.Valid([]byte(s))
	}
	return c.end.valid
}

// ended says whether the arguments can have no more fragments. An empty object
// can: some upstreams open a call with one and then send the arguments.
func (c *Call) ended() bool {
	return c.complete() && string(c.args) != "{}" && string(c.object) != "{}"
}

// firstByte returns the first byte of s that is no white space, 1 for none.
func firstByte(s string) byte {
	if s = strings.TrimLeft(s, space); s == "" {
		return 1
	}
	return s[0]
}

// lastByte returns the last byte of the body of a string that is no white
// space, 1 for none.
func lastByte(body []byte) byte {
	for {
		n := len(body)
		switch {
		case n == 0:
			return 1
		case n > 1 && body[n-2] == '\\' && bytes.IndexByte([]byte("nrt"), body[n-1]) >= 0:
			body = body[:n-2]
		case body[n-1] <= ' ':
			body = body[:n-1]
		default:
			return body[n-1]
		}
	}
}

// Arguments returns the joined arguments. It is false when they are no string
// that can be decoded.
func (c *Call) Arguments() (string, bool) {
	return unquote(quoted(c.args))
}

// pieces returns the arguments as they came, fragment by fragment, still
// escaped.
func (c *Call) pieces() [][]byte {
	out := make([][]byte, len(c.cuts))
	for i, at := range c.cuts {
		end := len(c.args)
		if i+1 < len(c.cuts) {
			end = c.cuts[i+1]
		}
		out[i] = c.args[at:end]
	}
	return out
}

// void says whether the call says nothing at all, as a fragment does that
// some upstreams send after the last one.
func (c *Call) void() bool {
	return (c.Name == "" || c.again && c.ID == "") && c.object == nil && lastByte(c.args) == 1
}
