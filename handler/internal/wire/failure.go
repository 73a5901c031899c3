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
)

// failureIn returns where the error of a chunk lies: v, unless that says that
// there is none.
func (c *Chunk) failureIn(v span) span {
	raw := v.of(c.data)
	if isEmpty(raw) || raw[0] == 'f' || string(raw) == "0" {
		return span{}
	}
	return v
}

// complains says whether a chunk without choices is itself an error: upstreams
// also send them without a member `error`, as FastAPI does with `detail` and
// others with a `message` beside a code.
func (c *Chunk) complains() bool {
	told, coded := false, false
	for _, m := range c.top {
		v := m.value.of(c.data)
		switch {
		case isEmpty(v):
		case m.is(c.data, "detail"):
			told, coded = true, true
		case m.is(c.data, "message"):
			told = told || v[0] == '"'
		case m.is(c.data, "object"):
			coded = coded || string(v) == `"error"`
		case m.is(c.data, "code"), m.is(c.data, "status"), m.is(c.data, "status_code"), m.is(c.data, "error_type"):
			coded = true
		}
	}
	return told && coded
}

// failureOf returns the error that a chunk reports. An object goes on as it
// came, with all that stands beside it.
func failureOf(c *Chunk) []byte {
	if v := c.failure.of(c.data); v[0] != '{' || len(v) == len(c.data) {
		return FailureOf(v)
	}
	return bytes.Clone(c.data)
}

// FailureOf makes of an error of any form an object with a member `error` that
// clients can read.
func FailureOf(v []byte) []byte {
	if object, ok := ErrorIn(v); ok {
		return object
	}
	v = bytes.TrimSpace(v)
	message, ok := unquote(v)
	switch {
	case !json.Valid(v) || !ok && !isObject(string(v)):
		message = string(bytes.ToValidUTF8(v, []byte("\uFFFD")))
	case !ok:
		return append(append([]byte(`{"error":`), v...), '}')
	}
	return ErrorObject(message, "upstream_error", "")
}

// ErrorIn returns the error that a body tells of, as an object with a member
// `error` that clients can read. It may be that object already, or in an array
// as from Gemini, or what belongs into it, with or without a message. It is
// false when the body tells of none.
func ErrorIn(body []byte) ([]byte, bool) {
	v := bytes.TrimSpace(body)
	if !json.Valid(v) {
		return nil, false
	}
	for range maxDepth {
		if list := elementsOf(v); len(list) > 0 {
			v = list[0].of(v)
		}
	}
	var told, detail, failure []byte
	for name, value := range membersOf(v) {
		switch {
		case isEmpty(value):
		case named(name, "error"):
			failure = value
		case named(name, "message"):
			told = value
		case named(name, "detail"), named(name, "errors"):
			detail = value
		}
	}
	switch {
	case failure != nil && failure[0] == '{':
		return bytes.Clone(v), true
	case failure != nil && failure[0] != 'f':
		return FailureOf(failure), true
	case told != nil:
		return append(append([]byte(`{"error":`), v...), '}'), true
	case detail != nil:
		return FailureOf(detail), true
	}
	return nil, false
}

// ErrorObject returns an error in the form of the OpenAI API. code may be "".
func ErrorObject(message, kind, code string) []byte {
	quotedCode := []byte("null")
	if code != "" {
		quotedCode = appendQuoted(nil, code)
	}
	dst := []byte(`{"error":{`)
	dst = appendMember(dst, "message", appendQuoted(nil, message))
	dst = appendMember(dst, "type", appendQuoted(nil, kind))
	dst = appendMember(dst, "param", []byte("null"))
	dst = appendMember(dst, "code", quotedCode)
	return append(dst, "}}"...)
}
