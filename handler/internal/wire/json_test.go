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
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// quotedByEncoder is what encoding/json makes of a string without escapes for
// HTML.
func quotedByEncoder(t *testing.T, s string) string {
	t.Helper()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(buf.String(), "\n")
}

func checkQuoted(t *testing.T, s string) {
	t.Helper()
	if got, want := string(appendQuoted([]byte("x"), s)), "x"+quotedByEncoder(t, s); got != want {
		t.Errorf("%q is quoted as %s, not %s", s, got[1:], want[1:])
	}
}

func TestStringsAreQuotedAsEncodingJSONQuotesThem(t *testing.T) {
	for b := range 256 {
		c := string([]byte{byte(b)})
		for _, s := range []string{c, "a" + c, c + "a", c + c, "\u00e4" + c + "\U0001F600", "\xe2\x80" + c} {
			checkQuoted(t, s)
		}
	}
	for r := range rune(0x11000) {
		checkQuoted(t, string(r))
	}
	checkQuoted(t, "")
	checkQuoted(t, "<a href=\"x\">&amp;</a>\u2028\u2029\ufffd\x7f")
}

func FuzzQuoted(f *testing.F) {
	f.Add("print(\"a\\n\")\n\t\u2028\xed\xa0\x80\xff")
	f.Fuzz(func(t *testing.T, s string) { checkQuoted(t, s) })
}

func TestCountsAreAddedLikeAnyNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 10_000 {
		a, b := digits(r), digits(r)
		x, _ := new(big.Int).SetString(a, 10)
		y, _ := new(big.Int).SetString(b, 10)
		if got, want := string(addNumbers(nil, []byte(a), []byte(b))), x.Add(x, y).String(); got != want {
			t.Fatalf("%s + %s is %s, not %s", a, b, got, want)
		}
	}
}

// digits is a whole number, of a length about which counts are added in other
// ways.
func digits(r *rand.Rand) string {
	var b strings.Builder
	if r.IntN(4) == 0 {
		b.WriteByte('-')
	}
	b.WriteByte(byte('1' + r.IntN(9)))
	for range r.IntN(24) {
		b.WriteByte(byte('0' + r.IntN(10)))
	}
	return b.String()
}

func BenchmarkQuoted(b *testing.B) {
	for _, c := range []struct{ name, s string }{
		{"name", "run_python"},
		{"code", strings.Repeat("print(f\"{x}\")\n", 100)},
	} {
		b.Run(c.name, func(b *testing.B) {
			dst := make([]byte, 0, 4096)
			b.ReportAllocs()
			for b.Loop() {
				dst = appendQuoted(dst[:0], c.s)
			}
		})
	}
}

func BenchmarkUsage(b *testing.B) {
	usage := []byte(`{"prompt_tokens":120,"completion_tokens":34,"total_tokens":154,"prompt_tokens_details":{"cached_tokens":64}}`)
	b.ReportAllocs()
	var u Usage
	for b.Loop() {
		u.Add(usage)
	}
}
