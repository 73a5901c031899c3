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
	"slices"
	"strconv"
	"strings"
	"testing"
)

// merged returns the member x of a message whose chunks have the values.
func merged(t testing.TB, name string, values ...string) string {
	t.Helper()
	var a Answer
	for _, v := range values {
		var c Chunk
		if !c.Parse([]byte(`{"choices":[{"delta":{"` + name + `":` + v + `}}]}`)) {
			t.Fatalf("no chunk with %s", v)
		}
		a.Observe(&c)
	}
	p := a.message.get(name)
	if p == nil {
		t.Fatalf("no member %s", name)
	}
	return string(p.appendValue(nil))
}

func TestPiecesOfAMessageAreJoined(t *testing.T) {
	for _, c := range []struct {
		name, member string
		values       []string
		want         string
	}{
		{"strings", "reasoning_content", []string{`"a"`, `""`, `"b\u00e9"`, `null`, `"\ud83d"`, `"\ude00"`}, `"ab\u00e9\ud83d\ude00"`},
		{"an empty string stays", "reasoning_content", []string{`""`}, `""`},
		{"null stays", "reasoning_content", []string{`null`, `null`}, `null`},
		{"null, then a string", "content", []string{`null`, `""`, `"a"`}, `"a"`},
		{"a constant", "type", []string{`"message"`, `"message"`}, `"message"`},
		{"numbers", "x", []string{`1`, `2`}, `2`},
		{"objects", "provider_specific_fields", []string{`{"a":"x"}`, `{"b":{"c":1}}`, `{"a":"y","b":{"d":[1]}}`, `{"b":{"d":[2],"c":null}}`}, `{"a":"y","b":{"c":1,"d":[1,2]}}`},
		{"an escaped name", "x", []string{`{"a\u0062":1}`, `{"ab":2}`}, `{"ab":2}`},
		{"arrays", "annotations", []string{`[{"type":"url","url":"a"}]`, `[{"type":"url","url":"b"}]`}, `[{"type":"url","url":"a"},{"type":"url","url":"b"}]`},
		{"arrays of strings", "citations", []string{`["a"]`, `["b","a"]`}, `["a","b","a"]`},
		{
			"reasoning_details by index", "reasoning_details",
			[]string{
				`[{"type":"reasoning.text","text":"a","format":"f","index":0}]`,
				`[{"type":"reasoning.text","text":"x","index":1},{"type":"reasoning.text","text":"b","index":0}]`,
				`[{"type":"reasoning.text","text":"","signature":"S","format":"f","index":0}]`,
			},
			`[{"type":"reasoning.text","text":"ab","format":"f","index":0,"signature":"S"},{"type":"reasoning.text","text":"x","index":1}]`,
		},
		{
			"another type at the same index", "reasoning_details",
			[]string{
				`[{"type":"reasoning.summary","summary":"a","index":0}]`, `[{"type":"reasoning.encrypted","data":"E","index":0}]`, `[{"type":"reasoning.summary","summary":"b","index":0}]`,
			},
			`[{"type":"reasoning.summary","summary":"ab","index":0},{"type":"reasoning.encrypted","data":"E","index":0}]`,
		},
		{
			"encrypted blocks stay apart", "reasoning_details",
			[]string{`[{"type":"reasoning.encrypted","data":"E"}]`, `[{"type":"reasoning.encrypted","data":"F"}]`},
			`[{"type":"reasoning.encrypted","data":"E"},{"type":"reasoning.encrypted","data":"F"}]`,
		},
		{
			"thinking_blocks, closed by a signature", "thinking_blocks",
			[]string{
				`[{"type":"thinking","thinking":"a","signature":""}]`, `[{"type":"thinking","thinking":"b"}]`, `[{"type":"thinking","thinking":"","signature":"S"}]`,
				`[{"type":"thinking","thinking":"c"}]`, `[{"type":"redacted_thinking","data":"R"}]`,
			},
			`[{"type":"thinking","thinking":"ab","signature":"S"},{"type":"thinking","thinking":"c"},{"type":"redacted_thinking","data":"R"}]`,
		},
		{
			"parts of one delta stay apart", "content",
			[]string{`[{"type":"text","text":"a"}]`, `[{"type":"text","text":"b"},{"type":"text","text":"c"}]`},
			`[{"type":"text","text":"ab"},{"type":"text","text":"c"}]`,
		},
		{
			"thinking, then text in strings", "content",
			[]string{
				`[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]`, `[{"type":"thinking","thinking":[{"type":"text","text":"b"}]}]`, `"c"`, `"d"`,
			},
			`[{"type":"thinking","thinking":[{"type":"text","text":"ab"}]},{"type":"text","text":"cd"}]`,
		},
		{
			"text, then parts", "content",
			[]string{`""`, `"a"`, `[{"type":"image_url","image_url":{"url":"u"}}]`},
			`[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}}]`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := merged(t, c.member, c.values...); got != c.want {
				t.Errorf("joined to\n%s, want\n%s", got, c.want)
			}
		})
	}
}

// Members of a call come whole, and may come with each fragment.
func TestMembersOfACallAreReplaced(t *testing.T) {
	p := play(t, calling(`{"index":0,"id":"a","thought_signature":"S","extra_content":{"google":{"thought_signature":"T"}},"function":{"name":"run_python","arguments":"{\"code\":","x":1}}`)+
		calling(`{"index":0,"id":"a","thought_signature":"S","extra_content":{"google":{"more":[1]}},"function":{"arguments":"\"1\"}"}}`)+
		calling(`{"index":0,"status":"completed"}`)+finished+streamEnd, 0, testTools)
	echo := string(echoOf(p.answer, Dropped{}))
	want := `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"run_python","arguments":"{\"code\":\"1\"}","x":1},` +
		`"thought_signature":"S","extra_content":{"google":{"thought_signature":"T","more":[1]}},"status":"completed"}]}`
	if echo != want {
		t.Errorf("echo\n%s, want\n%s", echo, want)
	}
}

// Values nested without end take no time without end.
func TestDeepValuesAreNotJoinedForever(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	if got := merged(t, "x", deep, deep, deep); got != deep {
		t.Error("the same value thrice is another one")
	}
	deep = strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	if got := merged(t, "x", deep, deep); len(got) < len(deep) {
		t.Error("an array got shorter")
	}
}

// numbered returns n values, of which each has its number in place of %d.
func numbered(n int, format string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = strings.ReplaceAll(format, "%d", strconv.Itoa(i))
	}
	return strings.Join(list, ",")
}

func TestAnswerOfTooManyPartsIsDamaged(t *testing.T) {
	const (
		over     = maxParts + 1
		searched = 1 << 15 // members that are looked for among each other
		indexed  = 1 << 13 // and elements
		usual    = 4000
	)
	deltas := func(list ...string) []string { return list }
	each := func(n int, format string) []string {
		return strings.Split(strings.TrimSuffix(numbered(n, format), "|"), "|,")
	}
	var grown []string // each event tells all that came before
	for i := range usual / 40 {
		grown = append(grown, `"x":[`+numbered(5*i+1, `{"type":"url_citation","url":"https://example.com/%d"}`)+`]`)
	}
	for _, c := range []struct {
		name   string
		deltas []string
		good   bool
	}{
		{"members", deltas(numbered(searched, `"n%d":1`)), false},
		{"members of an object", deltas(`"x":{"a":1}`, `"x":{`+numbered(searched, `"n%d":1`)+`}`), false},
		{"members of many objects", deltas(`"x":[1]`, `"x":[`+numbered(over/2, `{"n%d":1,"m":2}`)+`]`), false},
		{"elements with an index", deltas(`"x":[{"index":-1}]`, `"x":[`+numbered(indexed, `{"index":%d}`)+`]`), false},
		{"elements of the array before", deltas(`"x":[`+numbered(over, `%d`)+`]`, `"x":[1]`), false},
		{"fragments", deltas(`"tool_calls":[` + numbered(searched, `{"name":"a"}`) + `]`), false},
		{"members of a call", deltas(`"tool_calls":[{"id":"a",` + numbered(searched, `"n%d":1`) + `}]`), false},
		{"members of a function_call", deltas(`"function_call":{"name":"a",` + numbered(searched, `"n%d":1`) + `}`), false},

		{"one member, told again and again", deltas(numbered(over, `"n":1`)), true},
		{"elements with one index", deltas(`"x":[{"index":0}]`, `"x":[`+numbered(over, `{"index":0}`)+`]`), true},
		{"elements with an index, in many events", each(usual, `"x":[{"type":"reasoning.text","text":"a","format":"b","index":%d}]|`), true},
		{"elements in many events", each(10*usual, `"token_ids":[%d]|`), true},
		{"elements, told again and again", grown, true},
		{"an object as it came", deltas(`"x":{` + numbered(over, `"n%d":1`) + `}`), true},
		{"an array as it came", deltas(`"x":[` + numbered(over, `%d`) + `]`), true},
		{"pieces of the same elements", slices.Repeat(deltas(`"content":"a","x":[{"type":"reasoning.text","text":"b","index":0}]`), usual), true},
		{"fragments of the same call", slices.Repeat(deltas(`"tool_calls":[{"index":0,"x":{"a":1},"function":{"arguments":"a","y":1}}]`), usual), true},
		{"many calls", deltas(`"tool_calls":[` + numbered(1000, `{"index":%d,"id":"a%d","x":"y","extra_content":{"google":{}},"function":{"name":"a","arguments":"{}"}}`) + `]`), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var a Answer
			var chunk Chunk
			for _, delta := range c.deltas {
				if !chunk.Parse([]byte(`{"choices":[{"index":0,"delta":{` + delta + `}}]}`)) {
					t.Fatalf("no chunk with %.100s", delta)
				}
				a.Observe(&chunk)
			}
			if a.Damaged == c.good {
				t.Errorf("damaged: %t", a.Damaged)
			}
			if n := max(len(a.message), a.tally.held, a.calls.tally.held, a.legacy.tally.held, a.CallCount()); n > over {
				t.Errorf("%d parts are held", n)
			}
		})
	}
}
