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

// MaxSessionID is the greatest length of a session id, in bytes.
const MaxSessionID = 512

// SessionState says what a request has as metadata.session_id.
type SessionState int

// The states of a session id.
const (
	SessionAbsent  SessionState = iota // no such member
	SessionValid                       // a string of 1 to MaxSessionID bytes
	SessionInvalid                     // anything else, null included
)

// SessionID returns metadata.session_id, decoded.
func (r *Request) SessionID() (string, SessionState) {
	if r.session.first == 0 {
		return "", SessionAbsent
	}
	if r.session.end-r.session.start > 6*MaxSessionID+2 {
		return "", SessionInvalid // too long however it is escaped
	}
	id, ok := r.text(r.session)
	if !ok || id == "" || len(id) > MaxSessionID {
		return "", SessionInvalid
	}
	return id, SessionValid
}

// Choice is what a request asks for with tool_choice.
type Choice int

// The kinds of tool_choice.
const (
	ChoiceUnset    Choice = iota // absent or null
	ChoiceAuto                   // "auto"
	ChoiceNone                   // "none"
	ChoiceRequired               // "required", "any": some tool
	ChoiceOurs                   // the code interpreter, by its type or its name
	ChoiceAllowed                // some of a list of tools (allowed_tools)
	ChoiceOther                  // a tool of the client, or what is not known
)

// Choice returns the kind of tool_choice. name is the configured name of the
// tool, by which a client may ask for it unless it has a tool of that name.
func (r *Request) Choice(name string) Choice {
	v := r.values[keyToolChoice]
	switch v.first {
	case 0, 'n':
		return ChoiceUnset
	case '"':
		switch text, _ := r.text(v); text {
		case "auto":
			return ChoiceAuto
		case "none":
			return ChoiceNone
		case "required", "any":
			return ChoiceRequired
		}
	case '{':
		if r.meansUs(v, name, r.ClientTools()) {
			return ChoiceOurs
		}
		if kind, ok := r.text(r.find(v, "type")); ok && kind == "allowed_tools" {
			return ChoiceAllowed
		}
	}
	return ChoiceOther
}

// meansUs says whether an object of tool_choice names the code interpreter:
// by its type, or as a function by a name that no tool of the client has.
func (r *Request) meansUs(v value, name string, clients Names) bool {
	kind, _ := r.text(r.find(v, "type"))
	if kind == ToolType {
		return true
	}
	if kind != "function" {
		return false
	}
	called, ok := r.text(r.find(r.find(v, "function"), "name"))
	if !ok {
		called, ok = r.text(r.find(v, "name"))
	}
	return ok && (called == name || called == ToolType) && !clients.has(called)
}

// ManyChoices says that the request may ask for more than one answer: n is
// neither absent, null nor a number of at most 1.
func (r *Request) ManyChoices() bool {
	v := r.values[keyN]
	switch v.first {
	case 0, 'n':
		return false
	}
	n, err := strconv.ParseFloat(string(r.body.Bytes(v.start, v.end)), 64)
	return err != nil || n > 1
}

// IncludeUsage says that a stream is to end with the usage.
func (r *Request) IncludeUsage() bool {
	return r.find(r.values[keyStreamOptions], "include_usage").first == 't'
}

// FormattedResponse says that the answer is to follow a grammar, such as a
// JSON schema: response_format is of another type than "text".
func (r *Request) FormattedResponse() bool {
	v := r.values[keyResponseFormat]
	if v.first == 0 || v.first == 'n' {
		return false
	}
	kind, _ := r.text(r.find(v, "type"))
	return kind != "text"
}

// LegacyFunctions says that the request uses the functions of the time before
// tools.
func (r *Request) LegacyFunctions() bool {
	f, c := r.values[keyFunctions].first, r.values[keyFunctionCall].first
	return f != 0 && f != 'n' || c != 0 && c != 'n'
}

// find returns a member of a value, absent if the value is no object or has no
// such member. Of several the last counts, as it does nearly everywhere.
func (r *Request) find(v value, name string) value {
	var found value
	if v.first != '{' {
		return found
	}
	s := newScanner(r.body, v.start+1)
	for begun := false; ; {
		m, more, ok := s.field(&begun)
		if !more || !ok {
			return found
		}
		match := equal(m.key, name)
		if !s.value(m.first) {
			return found
		}
		if match {
			found = value{span{m.value, s.offset()}, m.first}
		}
	}
}

// text decodes a string. It is false when the value is none.
func (r *Request) text(v value) (string, bool) {
	if v.first != '"' {
		return "", false
	}
	decoded, ok := unescape(nil, r.body.Bytes(v.start+1, v.end-1))
	return string(decoded), ok
}
