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
	trimmed := strings.Trim(s, " \t\r\n")
	if trimmed == "" {
		return "", problemNoCode
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
	case fields["code"] != nil:
		return r.code(fields["code"])
	}
	if name := fields.string("name"); name == "" || bareName(name) == bareName(r.tool) {
		for _, wrapper := range []string{"arguments", "parameters"} {
			if raw := fields[wrapper]; raw != nil && (raw[0] == '{' || raw[0] == '"') {
				return r.value(raw)
			}
		}
	}
	var found []byte
	for _, name := range synonyms {
		if raw := fields[name]; raw != nil && raw[0] == '"' {
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

// fields are the members of an object that are not null.
type fields map[string][]byte

// string returns the text of a member, "" when it is none.
func (f fields) string(name string) string {
	s, _ := unquote(f[name])
	return s
}

// arguments returns the members of an object. It is false when one that is
// looked at is there twice and not the same: parsers differ in which they take.
func arguments(v []byte) (fields, bool) {
	f := fields{}
	for _, m := range membersOf(v) {
		name, _ := unquote(m.name.of(v))
		value := m.value.of(v)
		if isNull(value) {
			continue
		}
		if have := f[name]; have != nil && string(have) != string(value) {
			return nil, false
		}
		f[name] = value
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
	if nested := strings.Trim(s, " \t\r\n"); isObject(nested) && json.Valid([]byte(nested)) {
		// A program may be an object too; one with a program in it is a call.
		if f, ok := arguments([]byte(nested)); !ok || f.string("code") != "" {
			return r.value([]byte(nested))
		}
	}
	if inner, language, ok := unfence(s); ok {
		return pythonOnly(inner, language)
	}
	return pythonOnly(s, "")
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
