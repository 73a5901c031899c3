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
	"encoding/json"
	"slices"
	"strings"
)

// maxNesting is how often a call may be wrapped in another form of itself.
const maxNesting = 4

// reading interprets arguments, however they are wrapped.
type reading struct {
	tool  string // the name that was called
	depth int    // how many more wrappings are looked into
}

// text interprets arguments that came as a string.
func (r reading) text(s string) (code, problem string) {
	trimmed := trimSpace(s)
	if trimmed == "" {
		return "", problemNoCode
	}
	if rest := trimLead(trimmed); rest != "" && strings.IndexByte(`{["`, rest[0]) >= 0 {
		trimmed = rest
	}
	if json.Valid([]byte(trimmed)) {
		return r.value([]byte(trimmed))
	}
	if inner, language, ok := unfence(s); ok {
		if language == "json" || language == "" {
			return r.text(inner)
		}
		return pythonOnly(inner, language)
	}
	switch trimmed[0] {
	case '{', '[', '"':
	default:
		return pythonOnly(s, "") // no JSON at all: the program itself
	}
	if repaired, ok := repairJSON(trimmed); ok {
		return r.value(repaired)
	}
	return "", problemCutOff
}

// value interprets arguments that are valid JSON.
func (r reading) value(v []byte) (code, problem string) {
	if r.depth--; r.depth < 0 {
		return "", problemNoCode
	}
	switch v[0] {
	case '"':
		s, _ := unquote(v)
		return r.text(s)
	case '[':
		if list := elementsOf(v); len(list) == 1 {
			return r.value(list[0].of(v))
		}
	case '{':
		return r.object(v)
	}
	return "", problemNoCode
}

// synonyms are what models call `code` when they leave it out.
var synonyms = []string{"input", "script", "python", "source", "cmd"}

// object interprets an object, which says in one of its members what to run.
func (r reading) object(v []byte) (code, problem string) {
	fields, ok := arguments(v)
	switch {
	case !ok:
		return "", problemAmbiguous
	case !isPython(fields.string("language")):
		return "", problemLanguage
	case fields.get("code") != nil:
		return r.code(fields.get("code"))
	}
	if name := fields.string("name"); name == "" || bareName(name) == bareName(r.tool) {
		for _, wrapper := range []string{"arguments", "parameters"} {
			if raw := fields.get(wrapper); raw != nil && (raw[0] == '{' || raw[0] == '"') {
				return r.value(raw)
			}
		}
	}
	var found []byte
	for _, name := range synonyms {
		if raw := fields.get(name); raw != nil && raw[0] == '"' {
			if found != nil {
				return "", problemAmbiguous
			}
			found = raw
		}
	}
	if found == nil {
		return "", problemNoCode
	}
	return r.code(found)
}

// fieldNames are the members of arguments that are looked at.
var fieldNames = [...]string{"code", "language", "name", "arguments", "parameters", "input", "script", "python", "source", "cmd"}

// fields are the values of those members that are not null, by their place in
// fieldNames.
type fields [len(fieldNames)][]byte

// get returns the value of a member, nil when it is absent.
func (f *fields) get(name string) []byte {
	return f[slices.Index(fieldNames[:], name)]
}

// string returns the text of a member, "" when it is none.
func (f *fields) string(name string) string {
	s, _ := unquote(f.get(name))
	return s
}

// arguments returns the members of an object. It is false when one that is
// looked at is there twice and not the same: parsers differ in which they take.
func arguments(v []byte) (f fields, ok bool) {
	for quoted, value := range membersOf(v) {
		i := slices.IndexFunc(fieldNames[:], func(name string) bool { return named(quoted, name) })
		if i < 0 || isNull(value) {
			continue
		}
		if have := f[i]; have != nil && string(have) != string(value) {
			return f, false
		}
		f[i] = value
	}
	return f, true
}

// code interprets the value of `code`: a program, or the call once more.
func (r reading) code(raw []byte) (code, problem string) {
	if raw[0] == '{' {
		return r.value(raw)
	}
	s, ok := unquote(raw)
	if !ok {
		return "", problemNoCode
	}
	if nested := trimLead(s); strings.HasPrefix(nested, "{") {
		v, whole := []byte(nested), true
		if !json.Valid(v) {
			v, whole = repairJSON(nested)
		}
		if !whole && opensProgram(nested) {
			return "", problemCutOff
		}
		if whole {
			// A program may be an object too; one with a program in it is a call.
			if f, ok := arguments(v); !ok || f.string("code") != "" {
				return r.value(v)
			}
		}
	}
	if inner, language, ok := unfence(s); ok {
		return pythonOnly(inner, language)
	}
	return pythonOnly(s, "")
}

// trimLead takes off white space, in literal escapes too, and a byte order mark
// from the start of a text, and white space from its end. No program starts with
// a backslash.
func trimLead(s string) string {
	for s = trimSpace(s); ; s = trimSpace(s[2:]) {
		s = trimSpace(strings.TrimPrefix(s, "\ufeff"))
		if len(s) < 2 || s[0] != '\\' || strings.IndexByte("nrt", s[1]) < 0 {
			return s
		}
	}
}

// opensProgram says whether a text is an object that begins with a program
// whose end is missing.
func opensProgram(s string) bool {
	for _, token := range []string{"{", `"code"`, ":", `"`} {
		rest, found := strings.CutPrefix(trimLead(s), token)
		if !found {
			return false
		}
		s = rest
	}
	_, _, closed := repairString([]byte(s))
	return !closed
}

// pythonOnly returns code if it is a program that can be run.
func pythonOnly(code, language string) (string, string) {
	switch {
	case !isPython(language):
		return "", problemLanguage
	case strings.TrimSpace(code) == "":
		return "", problemNoCode
	}
	return code, ""
}

// pythons are the names that Python goes by, without a version.
var pythons = []string{"", "python", "py", "ipython", "tool_code"}

func isPython(language string) bool {
	language = strings.ToLower(strings.TrimSpace(language))
	return slices.Contains(pythons, strings.TrimRight(language, "0123456789. "))
}
