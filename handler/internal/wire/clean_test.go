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
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCleanText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "a\tb\nc é 😀\n", "a\tb\nc é 😀\n"},
		{"colours", "\x1b[0;31mZeroDivisionError\x1b[0m: x", "ZeroDivisionError: x"},
		{"other sequences", "\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b(Bc\x1b=d\x1bPq\x1b\\e", "abcde"},
		{"a sequence of 8 bits", "a\u009b31mb", "ab"},
		{"a sequence cut off", "a\x1b[31", "a"},
		{"a title cut off", "a\x1b]0;title\nb", "a\nb"},
		{"escape alone", "a\x1b\nb\x1b", "a\nb"},
		{"sequences in each other", "\x1b\x1b[31m[32mx", "[32mx"},
		{"redraws", " 10%\r 20%\r100%\nok\n", "100%\nok\n"},
		{"a redraw that ends", "50%\r100%\r\nok\r\n", "100%\nok\n"},
		{"redraws with colours", "\x1b[32m10%\x1b[0m\r\x1b[K100%\n", "100%\n"},
		{"NUL", "a\x00b", "a\uFFFDb"},
		{"bytes that are no UTF-8", "a\xff\xc3\xed\xa0\x80b", "a\uFFFDb"},
		{"other controls", "a\x07\x08\x7f\u0085b", "ab"},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := CleanText(c.in); got != c.want || CleanText(got) != got {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCapTextKeepsHeadAndTail(t *testing.T) {
	long := strings.Repeat("é", 3000)
	for _, c := range []struct {
		name, in string
		limit    int
		same     bool
	}{
		{"short", "abc", 3, true},
		{"many bytes, few characters", strings.Repeat("😀", 100), 100, true},
		{"long", "HEAD" + long + "TAIL", 1000, false},
		{"one too many", strings.Repeat("x", 1001), 1000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := CapText(c.in, c.limit)
			if c.same != (got == c.in) {
				t.Errorf("got %q", got)
			}
			if !utf8.ValidString(got) || utf8.RuneCountInString(got) > c.limit {
				t.Errorf("%d characters for a limit of %d", utf8.RuneCountInString(got), c.limit)
			}
			if !c.same && (got[:4] != c.in[:4] || !strings.HasSuffix(got, c.in[len(c.in)-4:]) || !strings.Contains(got, "characters omitted")) {
				t.Errorf("got %q", got)
			}
		})
	}
	got := CapText(strings.Repeat("x", 5000), 1000)
	kept := strings.Count(got, "x")
	if !strings.Contains(got, "[... 4064 characters omitted ...]") || kept != 936 {
		t.Errorf("%d kept: %q", kept, got)
	}
}
