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
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Wherever the pieces of a stream end, its events are the same, and those that
// a simple parser finds.
func FuzzSplitter(f *testing.F) {
	for _, c := range streams {
		f.Add(c.stream, uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream string, cut uint8) {
		want := simpleEvents(stream)
		for _, n := range []int{0, 1, int(cut)} {
			if got := eventsOf(t, stream, n); !slices.Equal(got, want) {
				t.Errorf("cut at %d: %q, want %q", n, got, want)
			}
		}
	})
}

// Whatever a stream holds, the client gets one stream of good form, the same
// one wherever the pieces end.
func FuzzAnswer(f *testing.F) {
	for _, c := range turns {
		f.Add(c.turn, uint8(7))
	}
	for _, c := range identities {
		f.Add(strings.Join(c.turn, "")+finished+streamEnd, uint8(5))
	}
	f.Fuzz(func(t *testing.T, stream string, cut uint8) {
		whole := play(t, stream, 0, testTools)
		cutUp := play(t, stream, int(cut), testTools)
		if !slices.Equal(whole.ran, cutUp.ran) || len(whole.answer.Calls()) != len(cutUp.answer.Calls()) {
			t.Fatalf("ran %q, cut up %q", whole.ran, cutUp.ran)
		}
		echo := echoOf(whole.answer, Dropped{})
		if !goodEvents(stream) {
			return
		}
		checkClientStream(t, whole.client)
		if !json.Valid(echo) || !utf8.Valid(echo) {
			t.Errorf("echo is no JSON: %s", echo)
		}
	})
}

// goodEvents says whether all of the events of a stream that look like JSON
// are.
func goodEvents(stream string) bool {
	good := utf8.ValidString(stream)
	for _, ev := range simpleEvents(stream) {
		_, data, _ := strings.Cut(ev, "> ") // behind a name, as show writes it
		for _, v := range []string{ev, data} {
			good = good && (!isObject(v) || json.Valid([]byte(v)))
		}
	}
	return good
}

// checkClientStream checks what holds for each stream to a client.
func checkClientStream(t *testing.T, stream []byte) {
	t.Helper()
	events := strings.Split(string(stream), "\n\n")
	if n := len(events); n < 2 || events[n-1] != "" || events[n-2] != "data: [DONE]" {
		t.Fatalf("no [DONE] at the end of %q", stream)
	}
	id, finished, failed := "", 0, false
	for _, event := range events[:len(events)-2] {
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok || strings.ContainsAny(data, "\r\n") || !json.Valid([]byte(data)) {
			t.Fatalf("event %q is no JSON in a data line", event)
		}
		var c Chunk
		if c.Parse([]byte(data)); c.Failed() {
			failed = true
			continue
		}
		if !c.hasChoice {
			continue
		}
		if got := string(c.id.of(c.data)); got == "" || id != "" && got != id {
			t.Fatalf("id %s after %s", got, id)
		}
		id = string(c.id.of(c.data))
		if c.finish.present() {
			finished++
		}
		if c.odd || c.whole {
			t.Fatalf("chunk %s is not of the form that clients know", data)
		}
	}
	if finished != 1 && !failed {
		t.Fatalf("%d finish reasons in\n%s", finished, stream)
	}
}

// Two programs in fragments, told apart in any of the ways that leave no doubt
// and mixed as those ways allow, are run as they were written.
func FuzzAssembler(f *testing.F) {
	f.Add("print(6*7)", "x = {'a': \"}\"}\n", []byte{0, 1, 2, 3, 4, 5, 6, 7}, uint8(0))
	f.Add("print('\U0001F600')", "\tif x:\r\n\\", []byte{1, 1, 1, 0, 9, 0, 200}, uint8(1))
	f.Add("a", "b", []byte{}, uint8(2))
	f.Add("{\"a\":1}", "[]", []byte{255, 0, 255, 0}, uint8(3))
	f.Add("same", "same", []byte{3, 3, 3}, uint8(4))
	f.Fuzz(func(t *testing.T, first, second string, order []byte, scheme uint8) {
		if strings.TrimSpace(first) == "" || strings.TrimSpace(second) == "" || !utf8.ValidString(first+second) || strings.Contains(first+second, fenced) {
			return
		}
		sent := [2]string{program(first), program(second)}
		if callWith(t, quote(sent[0])).Program().Code != first || callWith(t, quote(sent[1])).Program().Code != second {
			return // a call within the call
		}
		var rest [2]string
		var turn strings.Builder
		opened := [2]bool{}
		copy(rest[:], sent[:])
		for i := 0; rest[0] != "" || rest[1] != ""; i++ {
			which, size := 0, 1<<20
			if i < len(order) {
				which, size = int(order[i]&1), int(order[i]>>1)
			}
			inTurns := scheme%4 < 2 // indexes that tell the calls apart
			if !inTurns || rest[which] == "" {
				which = 0
			}
			if rest[which] == "" {
				which = 1
			}
			n := min(size, len(rest[which]))
			for n < len(rest[which]) && !utf8.RuneStart(rest[which][n]) {
				n++
			}
			args := rest[which][:n]
			rest[which] = rest[which][n:]
			turn.WriteString(calling(fragmentOf(scheme, which, !opened[which], args)))
			opened[which] = true
		}
		p := play(t, turn.String()+finished+streamEnd, 0, testTools)
		want := []string{first, second}
		if !opened[0] || turn.String() != "" && firstOpened(turn.String()) == 1 {
			want = []string{second, first}
		}
		if !slices.Equal(p.ran, want) {
			t.Errorf("ran %q, want %q, of\n%s", p.ran, want, turn.String())
		}
	})
}

// fragmentOf is a fragment under one of the ways to tell calls apart.
func fragmentOf(scheme uint8, which int, opening bool, args string) string {
	index, id, name := fmt.Sprint(which), fmt.Sprintf("call_%d", which), "run_python"
	switch {
	case scheme%4 == 1: // id and name in each fragment
	case opening && scheme%4 == 2:
		index = "0"
	case scheme%4 == 2: // one index for all
		index, id, name = "0", "", ""
	case opening && scheme%4 == 3:
		index = ""
	case scheme%4 == 3: // no indexes
		index, id, name = "", "", ""
	case !opening:
		id, name = "", ""
	}
	return piece(index, id, name, args)
}

// firstOpened returns which call a turn opens first.
func firstOpened(turn string) int {
	if a, b := strings.Index(turn, "call_0"), strings.Index(turn, "call_1"); b >= 0 && b < a {
		return 1
	}
	return 0
}

// No program is run that does not stand as a whole in the arguments: as the
// text, in a fence, or in a string, however often that is wrapped. What goes
// back is always an object in a string.
func FuzzArguments(f *testing.F) {
	for _, c := range readings {
		if len(c.args) < 1000 {
			f.Add(c.args, uint8(0))
			f.Add(c.args, uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, args string, cut uint8) {
		if !utf8.ValidString(args) || len(args) > 1000 {
			return
		}
		var turn strings.Builder
		turn.WriteString(calling(piece("0", "a", "run_python", "")))
		for rest := []rune(args); len(rest) > 0; {
			n := len(rest)
			if cut > 0 {
				n = min(int(cut), n)
			}
			turn.WriteString(calling(piece("0", "", "", string(rest[:n]))))
			rest = rest[n:]
		}
		call := play(t, turn.String(), 0, testTools).answer.Calls()
		if args == "" {
			return
		}
		p := call[0].Program()
		if (p.Code == "") == (p.Problem == "") {
			t.Errorf("code %q and problem %q", p.Code, p.Problem)
		}
		texts := wholeTexts{}
		texts.add(args, 2*maxNesting)
		if p.Code != "" && !texts[p.Code] {
			t.Errorf("code %q is in none of the strings of %q", p.Code, args)
		}
		checkEcho(t, p, args)
		checkEcho(t, call[0].Foreign(), args)
	})
}

// wholeTexts are the texts that stand in arguments as a whole, however wrapped.
type wholeTexts map[string]bool

func (w wholeTexts) add(s string, depth int) {
	if w[s] {
		return
	}
	w[s] = true
	if depth == 0 {
		return
	}
	if inner, _, ok := unfence(s); ok {
		w.add(inner, depth-1)
	}
	// A string of JSON begins at a quote; which of them, is not known here.
	for i := range len(s) {
		if s[i] != '"' {
			continue
		}
		if body, _, closed := repairString([]byte(s[i+1:])); closed {
			if text, ok := unquote(quoted(body)); ok {
				w.add(text, depth-1)
			}
		}
	}
}

// Cleaned output is UTF-8 without control characters, cleaning it again
// changes nothing, and capping it keeps it so and within the limit.
func FuzzCleanText(f *testing.F) {
	for _, s := range []string{"a\tb\n", "\x1b[0;31mx\x1b[0m", "\x1b]0;t\x07a\x1b\\", "10%\r20%\r\n", "a\x00\xff\u009b1mb\r\r\n", "\x1b\x1b[[31m"} {
		f.Add(s, uint16(100))
	}
	f.Fuzz(func(t *testing.T, s string, limit uint16) {
		clean := CleanText(s)
		if !utf8.ValidString(clean) || CleanText(clean) != clean {
			t.Errorf("%q is cleaned to %q, and that to %q", s, clean, CleanText(clean))
		}
		for _, r := range clean {
			if r < ' ' && r != '\n' && r != '\t' || 0x7f <= r && r <= 0x9f {
				t.Errorf("%q is left in %q", r, clean)
			}
		}
		n := max(int(limit), 64)
		if short := CapText(clean, n); !utf8.ValidString(short) || utf8.RuneCountInString(short) > n {
			t.Errorf("%d characters for a limit of %d: %q", utf8.RuneCountInString(short), n, short)
		}
	})
}

// The sum of two usages is JSON, with each of their members.
func FuzzUsage(f *testing.F) {
	f.Add(`{"total_tokens":1,"d":{"x":0.1}}`, `{"total_tokens":2,"d":{"x":0.2,"y":null}}`)
	f.Add(`{"n":1e5,"a":"x"}`, `{"n":-1E-2,"a":[1]}`)
	f.Add(`7`, `{}`)
	f.Fuzz(func(t *testing.T, total, turn string) {
		sum := sumOf(total, turn)
		if !json.Valid([]byte(total)) || !json.Valid([]byte(turn)) {
			return
		}
		if !isObject(total) || !isObject(turn) || isEmpty([]byte(total)) && isEmpty([]byte(turn)) {
			return // there is nothing to add
		}
		if !json.Valid(sum) {
			t.Fatalf("sum of %s and %s is %s", total, turn, sum)
		}
		for _, have := range []string{total, turn} {
			for quoted := range membersOf([]byte(have)) {
				if name, _ := unquote(quoted); !hasMember(sum, name) {
					t.Errorf("sum %s has no %q", sum, name)
				}
			}
		}
	})
}

func hasMember(object []byte, name string) bool {
	for quoted := range membersOf(object) {
		if have, _ := unquote(quoted); have == name {
			return true
		}
	}
	return false
}

// Errors of any form become an object that clients can read.
func FuzzFailureOf(f *testing.F) {
	for _, s := range []string{`{"error":{"message":"m"}}`, `[{"error":"m"}]`, `overloaded`, `{"detail":[[[{"message":"m"}]]]}`, `"m"`, `{"error":[]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(bytes.TrimSpace(body)) == 0 {
			return
		}
		object := FailureOf(body)
		var failure struct{ Error json.RawMessage }
		if err := json.Unmarshal(object, &failure); err != nil || len(failure.Error) == 0 {
			t.Errorf("%v: %s of %q", err, object, body)
		}
	})
}
