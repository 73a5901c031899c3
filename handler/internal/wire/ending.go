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

import "strings"

// ending follows the body of a string, in however many pieces it comes, to the
// end of the JSON value that the string is. With some upstreams that is to be
// known after each fragment of arguments, which may be many and long.
type ending struct {
	read  int // how much of the body has been looked at
	depth int // brackets of the value that are open

	// Of the escapes of the body.
	slash  bool    // a backslash has come, and not what it escapes
	digits int8    // of a \u escape that are to come
	hex    [4]byte // those that have

	// Of the value.
	begun   bool
	quoted  bool // it goes on in a string
	literal bool // behind a backslash in that
	closed  bool // only white space has come since its end
	over    bool // what has come is no start of a value

	escapes, controls bool // what the body has any of; both are too much
	checked, valid    bool // whether the value is good JSON, once that is known
}

// follow reads the body from where it was left. It says whether it ends where
// the value does, as far as brackets and quotes show that.
func (e *ending) follow(body []byte) bool {
	for _, c := range body[e.read:] {
		e.controls = e.controls || isControl(c)
		switch {
		case e.digits > 0:
			e.digit(c)
		case e.slash:
			e.escaped(c)
		case c == '\\':
			e.slash, e.escapes = true, true
		case e.quoted && !e.literal && c != '"': // as most of it is
		default:
			e.next(rune(c), true)
		}
	}
	e.read = len(body)
	return e.closed && !e.slash && e.digits == 0 && (!e.escapes || !e.controls)
}

// escaped takes what follows a backslash.
func (e *ending) escaped(c byte) {
	e.slash = false
	if c == 'u' {
		e.digits = int8(len(e.hex))
		return
	}
	i := strings.IndexByte(`"\/bfnrt`, c)
	if i < 0 {
		e.closed, e.over = false, true
		return
	}
	e.next(rune("\"\\/\b\f\n\r\t"[i]), true)
}

// digit takes the next one of a \u escape.
func (e *ending) digit(c byte) {
	e.hex[len(e.hex)-int(e.digits)] = c
	if e.digits--; e.digits > 0 {
		return
	}
	if r, ok := hex4(e.hex[:]); ok {
		e.next(r, false)
	} else {
		e.closed, e.over = false, true
	}
}

// next takes the next character of the value. One that is not plain was a \u
// escape, which no model ends a value with.
func (e *ending) next(r rune, plain bool) {
	blank := r <= ' ' && strings.IndexByte(space, byte(r)) >= 0
	switch {
	case e.closed:
		e.closed = plain && blank
		e.over = !e.closed
	case e.over:
	case e.quoted:
		e.inString(r, plain)
	case r == '"':
		e.begun, e.quoted = true, true
	case r == '{', r == '[':
		e.begun = true
		e.depth++
	case !e.begun:
		e.over = !blank
	case r == '}', r == ']':
		e.depth--
		e.endWith(plain)
	}
}

func (e *ending) inString(r rune, plain bool) {
	switch {
	case e.literal:
		e.literal = false
	case r == '\\':
		e.literal = true
	case r == '"':
		e.quoted = false
		e.endWith(plain)
	}
}

// endWith ends the value with a quote or a bracket if that was the outermost.
func (e *ending) endWith(plain bool) {
	if e.depth == 0 {
		e.closed, e.over = plain, !plain
	}
}
