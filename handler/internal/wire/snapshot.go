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
	"io"
	"strings"
)

// lastSnapshot finds out whether the arguments came more than once: as the
// same value twice, once more after their parts, or in pieces of which each is
// the one before and more. pieces are still escaped.
func lastSnapshot(plain string, pieces [][]byte) (string, bool) {
	if once, ok := repeatedValue(plain); ok {
		return once, true
	}
	if len(pieces) < 2 {
		return "", false
	}
	last, ok := unquote(quoted(pieces[len(pieces)-1]))
	if !ok || !isObject(last) || !json.Valid([]byte(last)) {
		return "", false
	}
	if growing(pieces) || strings.HasPrefix(last, plain[:max(0, len(plain)-len(last))]) {
		return last, true
	}
	return "", false
}

// repeatedValue takes objects that are one after the other for one when they
// are the same. Empty ones before others do not count: some upstreams open a
// call with one.
func repeatedValue(plain string) (string, bool) {
	if !isObject(plain) {
		return "", false
	}
	var once json.RawMessage
	for d := json.NewDecoder(strings.NewReader(plain)); ; {
		var v json.RawMessage
		switch err := d.Decode(&v); {
		case err == io.EOF:
			return string(once), once != nil
		case err != nil || v[0] != '{':
			return "", false
		case once == nil || string(once) == "{}":
			once = v
		case !bytes.Equal(once, v):
			return "", false
		}
	}
}

// growing says whether each piece is the one before and more.
func growing(pieces [][]byte) bool {
	for i := 1; i < len(pieces); i++ {
		if bytes.HasPrefix(pieces[i], pieces[i-1]) {
			continue
		}
		before, known := unquote(quoted(pieces[i-1]))
		after, ok := unquote(quoted(pieces[i]))
		if !known || !ok || !grown(before, after) {
			return false
		}
	}
	return true
}

// grown says whether an object is another one whose last string goes on.
func grown(before, after string) bool {
	open, ends := strings.CutSuffix(strings.TrimRight(before, space+"}"), `"`)
	return ends && len(after) > len(before) && strings.HasPrefix(after, open) &&
		isObject(before) && isObject(after) && json.Valid([]byte(before)) && json.Valid([]byte(after))
}
