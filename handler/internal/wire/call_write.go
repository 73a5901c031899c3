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

import "strconv"

// quoted makes a JSON string of its escaped body.
func quoted(body []byte) []byte {
	v := make([]byte, 0, len(body)+2)
	return append(append(append(v, '"'), body...), '"')
}

// argumentString returns the arguments as they came, as a JSON string.
func (c *Call) argumentString() []byte {
	if len(c.args) == 0 && c.object != nil {
		return appendQuoted(nil, string(c.object))
	}
	return quoted(c.args)
}

// form returns the type of a call, and the name of its arguments.
func form(custom bool) (kind, arguments string) {
	if custom {
		return "custom", "input"
	}
	return "function", "arguments"
}

// appendCall adds the members of the call from its id on, and closes the
// object. arguments is a JSON string.
func (c *Call) appendCall(dst []byte, name string, arguments []byte, custom bool, without Dropped) []byte {
	kind, argumentsName := form(custom)
	dst = appendMember(dst, "id", appendQuoted(nil, c.ID))
	dst = appendMember(dst, "type", quoted([]byte(kind)))
	dst = append(appendMember(dst, kind, nil), '{')
	dst = appendMember(dst, "name", appendQuoted(nil, name))
	dst = appendMember(dst, argumentsName, arguments)
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

// appendOpening adds the first fragment of the call in a stream, with all that
// is known of it, under an index of ours and the name that the client knows.
func (c *Call) appendOpening(dst []byte, index int, name string) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(index), 10)
	return c.appendCall(dst, name, c.argumentString(), c.custom, Dropped{})
}

// appendDelta adds a later fragment of the call in a stream: what it has
// beyond what the client has seen.
func (c *Call) appendDelta(dst []byte, at *seen) []byte {
	kind, argumentsName := form(c.custom)
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(at.index), 10)
	dst = append(appendMember(dst, kind, nil), '{')
	dst = appendMember(dst, argumentsName, quoted(c.args[at.args:]))
	dst = append(c.inner[at.inner:].appendTo(dst, Dropped{}), '}')
	return append(c.extra[at.extra:].appendTo(dst, Dropped{}), '}')
}
