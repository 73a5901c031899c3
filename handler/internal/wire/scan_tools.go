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
	"iter"
	"strconv"
)

// tool is an element of the client's tools.
type tool struct {
	value
	ours bool
}

// tools yields the elements of tools, if that is an array. Like messages they
// are read anew each time, so that the scan keeps no list of them.
func (r *Request) tools() iter.Seq[tool] { return r.toolsIn(r.values[keyTools]) }

// toolsIn returns the elements of an array of tools.
func (r *Request) toolsIn(v value) iter.Seq[tool] {
	return func(yield func(tool) bool) {
		if v.first != '[' {
			return
		}
		s := newScanner(r.body, v.start+1)
		for begun := false; ; {
			c, more, ok := s.element(&begun)
			if !more || !ok {
				return
			}
			t := tool{value: value{span{start: s.offset() - 1}, c}}
			if t.ours, _, ok = s.tool(c); !ok {
				return
			}
			if t.end = s.offset(); !yield(t) {
				return
			}
		}
	}
}

// HasUnnamedTool says whether the client declared a tool without a name, such
// as a built-in one of its upstream, which may be called by any.
func (r *Request) HasUnnamedTool() bool {
	for t := range r.tools() {
		if t.ours {
			continue
		}
		named := false
		for _, v := range [...]value{r.find(t.value, "function"), r.find(t.value, "custom"), t.value} {
			_, ok := r.text(r.find(v, "name"))
			named = named || ok
		}
		if !named {
			return true
		}
	}
	return false
}

// Names are the names of tools. A set, since a request may have a great many.
type Names map[string]struct{}

func (n Names) has(name string) bool {
	_, ok := n[name]
	return ok
}

// ClientTools returns the names of the client's own tools. A name may stand in
// a function, in a custom tool, or flat in the declaration; all that there are
// count. The functions of the time before tools are tools here, as their calls are.
func (r *Request) ClientTools() Names {
	n := Names{}
	for t := range r.tools() {
		if t.ours {
			continue
		}
		for _, v := range [...]value{r.find(t.value, "function"), r.find(t.value, "custom"), t.value} {
			if name, ok := r.text(r.find(v, "name")); ok {
				n[name] = struct{}{}
			}
		}
	}
	for f := range r.toolsIn(r.values[keyFunctions]) {
		if name, ok := r.text(r.find(f.value, "name")); ok {
			n[name] = struct{}{}
		}
	}
	return n
}

// free returns name or, when it is taken, name with the first number that makes
// it another. It keeps to the 64 characters that upstreams allow.
func (n Names) free(name string) string {
	const longest = 64
	free := name
	for i := 2; n.has(free); i++ {
		end := "_" + strconv.Itoa(i)
		free = name[:min(len(name), longest-len(end))] + end
	}
	return free
}
