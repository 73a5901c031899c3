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

import "iter"

// Message is where an element of messages stands in the body, and who wrote it.
type Message struct {
	Start, End int
	Role       string // decoded, "" when the element has none
}

// HasMessages says that messages is an array, to which turns can be appended.
func (r *Request) HasMessages() bool { return r.values[keyMessages].first == '[' }

// holds says that a member is an array with an element.
func (r *Request) holds(k key) bool {
	v := r.values[k]
	if v.first != '[' {
		return false
	}
	s := newScanner(r.body, v.start+1)
	return s.token() != ']'
}

// Messages yields the elements of messages in order. It reads them anew each
// time, since few requests need it.
func (r *Request) Messages() iter.Seq[Message] {
	return func(yield func(Message) bool) {
		if !r.HasMessages() {
			return
		}
		s := newScanner(r.body, r.values[keyMessages].start+1)
		for begun := false; ; {
			c, more, ok := s.element(&begun)
			start := s.offset() - 1
			if !more || !ok || !s.value(c) {
				return
			}
			m := Message{Start: start, End: s.offset()}
			m.Role, _ = r.text(r.find(value{span{m.Start, m.End}, c}, "role"))
			if !yield(m) {
				return
			}
		}
	}
}

// Body returns the bytes that were scanned.
func (r *Request) Body() *Body { return r.body }
