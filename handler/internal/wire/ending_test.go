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
	"strings"
	"testing"
)

// isWhole says of arguments in one piece whether they are a whole JSON value
// that ends as models end one: the words that Call.complete follows.
func isWhole(body []byte) bool {
	if closer := lastByte(body); strings.IndexByte("}]\"", closer) < 0 {
		return false
	}
	s, ok := unquote(quoted(body))
	return ok && strings.IndexByte("{[\"", firstByte(s)) >= 0 && json.Valid([]byte(s))
}

// Wherever arguments are cut, they are at their end exactly where the whole of
// what has come is a value.
func FuzzEndOfArguments(f *testing.F) {
	for _, plain := range []string{
		`{}`, ` {"a":[1,"}"]} `, "{\"a\":\"\\\"}\\\\\"}\n", `[]]`, `{}{}`, `"text \"}"`, `"a" b`, `12`, `null`, `}`, `{]`, "\t[{\n}]\r\n", `{"é":"\ud83d\ude00"}`,
	} {
		f.Add(strings.TrimSuffix(quote(plain)[1:], `"`), uint8(1))
		f.Add(plain, uint8(3)) // what is no body of a string
	}
	for _, body := range []string{`\u007b}`, `{\u007d`, `{\u007d }`, `{}\u0020\n`, `{}\b`, "{}\x01", "{\n}\\n", "{\\n}\n", `{\"\u0022:1}`, `{}\\n`, `{}\`, `\u00zz{}`, `{\x}`, `{\"\ud83d\u007d\"}`} {
		f.Add(body, uint8(1))
	}
	f.Fuzz(func(t *testing.T, body string, size uint8) {
		var c Call
		for rest := []byte(body); len(rest) > 0; {
			n := min(len(rest), 1+int(size))
			c.args, rest = append(c.args, rest[:n]...), rest[n:]
			if got, want := c.complete(), isWhole(c.args); got != want {
				t.Fatalf("%q is whole: %t, want %t", c.args, got, want)
			}
		}
	})
}

func TestEndOfArgumentsIsLookedForOnce(t *testing.T) {
	long := `{\"code\":\"` + strings.Repeat("}", 10_000)
	for name, args := range map[string]string{
		"not at their end":     long,
		"at their end":         long + `\"}`,
		"beyond it":            long + `\"}}`,
		"many, one by one":     strings.Repeat("{}", 10_000),
		"no value":             `{]` + long + "}",
		"a lot of white space": "{}" + strings.Repeat(`\n`, 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			c := Call{args: []byte(args)}
			want := c.complete()
			if c.end.read != len(args) {
				t.Errorf("%d bytes were read", c.end.read)
			}
			if n := testing.AllocsPerRun(10, func() {
				if c.complete() != want {
					t.Error("another answer")
				}
			}); n > 0 {
				t.Errorf("the arguments were decoded again: %v allocations", n)
			}
		})
	}
}
