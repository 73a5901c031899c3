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
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire/bodies"
)

// follow scans a body that can be followed.
func follow(t testing.TB, body string) *Request {
	t.Helper()
	r, ok := Scan(NewBody([]byte(body)))
	if !ok {
		t.Fatalf("Scan(%.200q) cannot follow", body)
	}
	return r
}

func TestHasToolIsExact(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       bool
		duplicate  string
	}{
		{"plain", `{"tools":[{"type":"code_interpreter"}]}`, true, ""},
		{"among others", `{"tools":[{"type":"function","function":{"name":"f"}},{"container":{"type":"auto"},"type":"code_interpreter"},7]}`, true, ""},
		{"name only in text", `{"messages":[{"content":"{\"tools\":[{\"type\":\"code_interpreter\"}]}"}]}`, false, ""},
		{"nested tools", `{"x":{"tools":[{"type":"code_interpreter"}]}}`, false, ""},
		{"nested type", `{"tools":[{"x":{"type":"code_interpreter"}},[{"type":"code_interpreter"}]]}`, false, ""},
		{"escaped value", `{"tools":[{"type":"code\u005finterpreter"}]}`, true, ""},
		{"all of the value escaped", `{"tools":[{"type":"\u0063\u006f\u0064\u0065\u005f\u0069\u006e\u0074\u0065\u0072\u0070\u0072\u0065\u0074\u0065\u0072"}]}`, true, ""},
		{"escaped keys", `{"too\u006cs":[{"\u0074ype":"code_interpreter"}]}`, true, ""},
		{"key with an escape that is none", `{"too\lls":[{"type":"code_interpreter"}]}`, false, ""},
		{"value with an escape that is none", `{"tools":[{"type":"code\_interpreter"}]}`, false, ""},
		{"duplicate tools, last has it", `{"tools":[],"tools":[{"type":"code_interpreter"}]}`, true, "tools"},
		{"duplicate tools, first has it", `{"tools":[{"type":"code_interpreter"}],"tools":[]}`, true, "tools"},
		{"duplicate tools, one escaped", `{"tools":[{"type":"code_interpreter"}],"t\u006fols":null}`, true, "tools"},
		{"duplicate type, last is ours", `{"tools":[{"type":"function","type":"code_interpreter"}]}`, true, "tools.type"},
		{"duplicate type, first is ours", `{"tools":[{"type":"code_interpreter","type":"function"}]}`, true, "tools.type"},
		{"case of the key", `{"Tools":[{"type":"code_interpreter"}]}`, false, ""},
		{"case of type", `{"tools":[{"Type":"code_interpreter"}]}`, false, ""},
		{"case of the value", `{"tools":[{"type":"Code_Interpreter"}]}`, false, ""},
		{"tools is an object", `{"tools":{"type":"code_interpreter"}}`, false, ""},
		{"tools is an object with a list", `{"tools":{"tools":[{"type":"code_interpreter"}]}}`, false, ""},
		{"tools is null", `{"tools":null}`, false, ""},
		{"type is no string", `{"tools":[{"type":["code_interpreter"]}]}`, false, ""},
		{"type has a tail", `{"tools":[{"type":"code_interpreter_2"}]}`, false, ""},
		{"raw control character in a string", "{\"x\":\"a\nb\",\"tools\":[{\"type\":\"code_interpreter\"}]}", true, ""},
		{"bytes that are no UTF-8", "{\"x\":\"\xff\xc3\",\"tools\":[{\"type\":\"code_interpreter\"}]}", true, ""},
		{"very deep", `{"x":` + strings.Repeat(`[{"a":`, 100_000) + `0` + strings.Repeat(`}]`, 100_000) + `,"tools":[{"type":"code_interpreter"}]}`, true, ""},
		{"very long key", `{"` + strings.Repeat("k", 1000) + `":1,"tools":[{"` + strings.Repeat("k", 1000) + `":1,"type":"code_interpreter"}]}`, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := follow(t, c.body)
			if r.HasTool != c.want || r.Duplicate != c.duplicate {
				t.Errorf("HasTool %v, Duplicate %q, want %v, %q", r.HasTool, r.Duplicate, c.want, c.duplicate)
			}
		})
	}
}

func TestScanFollowsOnlyOneJSONObject(t *testing.T) {
	const good = `{"tools":[{"type":"code_interpreter"}],"x":[1,-0.5e+7,true,false,null,"\"",{}],"messages":[]}`
	follow(t, good)
	follow(t, " \t\r\n"+good+" \t\r\n")
	follow(t, `{}`)
	bad := make([]string, 0, 200)
	bad = append(bad,
		"\xef\xbb\xbf"+good, good+"x", good+"{}", good+"\x00", "", " ", "null", `"x"`, "7", "[]", "["+good+"]",
		"{", "}", `{"a"`, `{"a":`, `{"a":}`, `{"a" 1}`, `{"a":1,}`, `{,"a":1}`, `{"a":1 "b":2}`, `{"a":1,,"b":2}`, `{a:1}`, `{'a':1}`, `{"a":1:2}`,
		`{"a":[1,]}`, `{"a":[,1]}`, `{"a":[1 2]}`, `{"a":[1,,2]}`, `{"a":[}`, `{"a":[}]}`, `{"a":[1}}`, `{"a":{"b":1]}`, `{"a":{]}`, `{"a":[{"b":1,}]}`, `{"a":[{"b"}]}`, `{"a":["b":1]}`,
		`{"a":tru}`, `{"a":True}`, `{"a":truex}`, `{"a":nul}`, `{"a":NaN}`, `{"a":Infinity}`, `{"a":-}`, `{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":1e+}`, `{"a":+1}`, `{"a":0x1}`, `{"a":--1}`,
		`{"a":"b}`, `{"a":"b\"}`, `{"a":"b\\\"}`, "{\"a\":\v1}", "{\"a\":\u00a01}",
		`{"tools":[{"type":"code_interpreter"}`, `{"tools":[{"type":"code_interpreter"`, `{"tools":[{"type":"code_interpreter"}},"x":1}`, `{"tools":[{"type":"code_interpreter"},]}`, `{"metadata":{"session_id":"s",}}`,
	)
	for i := range good {
		bad = append(bad, good[:i])
	}
	for _, body := range bad {
		if _, ok := Scan(NewBody([]byte(body))); ok {
			t.Errorf("Scan(%q) follows", body)
		}
		if json.Valid([]byte(body)) && body[0] == '{' {
			t.Errorf("%q is valid, the test is wrong", body)
		}
	}
}

func TestSessionID(t *testing.T) {
	for _, c := range []struct {
		body, id string
		state    SessionState
	}{
		{`{}`, "", SessionAbsent},
		{`{"metadata":null}`, "", SessionAbsent},
		{`{"metadata":"session_id"}`, "", SessionAbsent},
		{`{"metadata":[{"session_id":"s"}]}`, "", SessionAbsent},
		{`{"metadata":{"a":{"session_id":"s"}}}`, "", SessionAbsent},
		{`{"session_id":"s"}`, "", SessionAbsent},
		{`{"metadata":{"Session_ID":"s"}}`, "", SessionAbsent},
		{`{"metadata":{"session_id":"s-1","a":"b"}}`, "s-1", SessionValid},
		{`{"metadata":{"session_id":""}}`, "", SessionInvalid},
		{`{"metadata":{"session_id":"` + strings.Repeat("x", 512) + `"}}`, strings.Repeat("x", 512), SessionValid},
		{`{"metadata":{"session_id":"` + strings.Repeat(`\u0078`, 512) + `"}}`, strings.Repeat("x", 512), SessionValid},
		{`{"metadata":{"session_id":"` + strings.Repeat("x", 513) + `"}}`, "", SessionInvalid},
		{`{"metadata":{"session_id":"` + strings.Repeat("x", 10_000) + `"}}`, "", SessionInvalid},
		{`{"metadata":{"session_id":"\u00E9\u00c9"}}`, "éÉ", SessionValid},
		{`{"metadata":{"a":"b","session\u005fid":"\u00e9\/\"\\\b\f\n\r\t\ud83d\ude00"}}`, "é/\"\\\b\f\n\r\t😀", SessionValid},
		{`{"metadata":{"session_id":"\ud83d"}}`, "\ufffd", SessionValid},
		{`{"metadata":{"session_id":"\ud83d\u0041"}}`, "\ufffdA", SessionValid},
		{`{"metadata":{"session_id":"a\qb"}}`, "", SessionInvalid},
		{`{"metadata":{"session_id":"a\u12g4"}}`, "", SessionInvalid},
		{`{"metadata":{"session_id":"a\u12"}}`, "", SessionInvalid},
		{`{"metadata":{"session_id":null}}`, "", SessionInvalid},
		{`{"metadata":{"session_id":7}}`, "", SessionInvalid},
		{`{"metadata":{"session_id":["s"]}}`, "", SessionInvalid},
	} {
		id, state := follow(t, c.body).SessionID()
		if id != c.id || state != c.state {
			t.Errorf("SessionID of %s is %q, %v, want %q, %v", c.body, id, state, c.id, c.state)
		}
	}
}

func TestDuplicateNamesTheFirst(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":1,"a":2}`: "",
		`{"tools":1,"messages":1,"stream":1,"metadata":1}`:     "",
		`{"messages":1,"messages":1,"tools":1,"tools":1}`:      "messages",
		`{"stream":true,"stream":true}`:                        "stream",
		`{"metadata":{},"metadata":{}}`:                        "metadata",
		`{"n":1,"n":2}`:                                        "n",
		`{"metadata":{"session_id":"a","session_id":"a"}}`:     "metadata.session_id",
		`{"metadata":{"session_id":"a","session\u005fid":""}}`: "metadata.session_id",
		`{"tool_choice":"auto","to\u006fl_choice":"auto"}`:     "tool_choice",
		`{"x":{"tools":1,"tools":2},"tools":3}`:                "",
	} {
		if got := follow(t, body).Duplicate; got != want {
			t.Errorf("Duplicate of %s is %q, want %q", body, got, want)
		}
	}
}

func TestChoice(t *testing.T) {
	const tools = `"tools":[{"type":"code_interpreter"},{"type":"function","function":{"name":"mine"}},{"type":"function","name":"flat"}]`
	for choice, want := range map[string]Choice{
		`null`:                        ChoiceUnset,
		`"auto"`:                      ChoiceAuto,
		`"none"`:                      ChoiceNone,
		`"n\u006fne"`:                 ChoiceNone,
		`"required"`:                  ChoiceRequired,
		`"any"`:                       ChoiceRequired,
		`"weird"`:                     ChoiceOther,
		`7`:                           ChoiceOther,
		`{}`:                          ChoiceOther,
		`{"type":"code_interpreter"}`: ChoiceOurs,
		`{"type":"function","function":{"name":"run_python"}}`:       ChoiceOurs,
		`{"function":{"name":"run_python"},"type":"function"}`:       ChoiceOurs,
		`{"type":"function","name":"run_python"}`:                    ChoiceOurs,
		`{"type":"function","function":{"name":"code_interpreter"}}`: ChoiceOurs,
		`{"type":"function","function":{"name":"mine"}}`:             ChoiceOther,
		`{"type":"custom","custom":{"name":"run_python"}}`:           ChoiceOther,
		`{"type":"allowed_tools","allowed_tools":{}}`:                ChoiceAllowed,
	} {
		r := follow(t, `{`+tools+`,"tool_choice":`+choice+`}`)
		if got := r.Choice("run_python"); got != want {
			t.Errorf("Choice of %s is %v, want %v", choice, got, want)
		}
	}
	if got := follow(t, `{`+tools+`}`).Choice("run_python"); got != ChoiceUnset {
		t.Errorf("Choice of none is %v", got)
	}
	for _, name := range []string{"mine", "flat"} {
		r := follow(t, `{`+tools+`,"tool_choice":{"type":"function","function":{"name":"`+name+`"}}}`)
		if got := r.Choice(name); got != ChoiceOther {
			t.Errorf("Choice of the client's tool %q is %v, want its own", name, got)
		}
	}
}

func TestDetailsOfTheRequest(t *testing.T) {
	for _, c := range []struct {
		name string
		got  func(*Request) bool
		yes  []string
		no   []string
	}{
		{
			"Stream", func(r *Request) bool { return r.Stream },
			[]string{`{"stream":true}`, `{"str\u0065am": true }`},
			[]string{`{}`, `{"stream":false}`, `{"stream":null}`, `{"stream":"true"}`, `{"x":{"stream":true}}`, `{"Stream":true}`},
		},
		{
			"IncludeUsage", (*Request).IncludeUsage,
			[]string{`{"stream_options":{"x":1,"include_usage":true}}`},
			[]string{`{}`, `{"stream_options":null}`, `{"stream_options":{}}`, `{"stream_options":{"include_usage":false}}`, `{"stream_options":{"x":{"include_usage":true}}}`, `{"stream_options":[true]}`},
		},
		{
			"ManyChoices", (*Request).ManyChoices,
			[]string{`{"n":2}`, `{"n":2.0}`, `{"n":1e2}`, `{"n":1.5}`, `{"n":"2"}`, `{"n":true}`, `{"n":[1]}`, `{"n":99999999999999999999999}`, `{"n":1e999}`},
			[]string{`{}`, `{"n":null}`, `{"n":1}`, `{"n":1.0}`, `{"n":0}`, `{"n":-3}`, `{"N":2}`},
		},
		{
			"FormattedResponse", (*Request).FormattedResponse,
			[]string{`{"response_format":{"type":"json_object"}}`, `{"response_format":{"json_schema":{"type":"text"},"type":"json_schema"}}`, `{"response_format":{}}`, `{"response_format":"json"}`},
			[]string{`{}`, `{"response_format":null}`, `{"response_format":{"type":"text"}}`},
		},
		{
			"LegacyFunctions", (*Request).LegacyFunctions,
			[]string{`{"functions":[]}`, `{"function_call":"auto"}`},
			[]string{`{}`, `{"functions":null,"function_call":null}`},
		},
		{
			"HasMessages", (*Request).HasMessages,
			[]string{`{"messages":[]}`, `{"messages":[1]}`},
			[]string{`{}`, `{"messages":null}`, `{"messages":{}}`, `{"messages":"[]"}`},
		},
	} {
		for _, body := range c.yes {
			if !c.got(follow(t, body)) {
				t.Errorf("%s of %s is false", c.name, body)
			}
		}
		for _, body := range c.no {
			if c.got(follow(t, body)) {
				t.Errorf("%s of %s is true", c.name, body)
			}
		}
	}
}

func TestClientToolsAreNamedByAllTheirForms(t *testing.T) {
	r := follow(t, `{"tools":[{"type":"function","function":{"name":"a\u005fb"}},{"type":"code_interpreter","name":"ours"},7,null,
		{"type":"custom","custom":{"name":"c"}},{"type":"function","name":"d"},{"type":"function"},{"function":"x"}],
		"functions":[{"name":"e"},{"name":5},null]}`)
	if got, want := slices.Sorted(maps.Keys(r.ClientTools())), []string{"a_b", "c", "d", "e"}; !slices.Equal(got, want) {
		t.Errorf("ClientTools are %q, want %q", got, want)
	}
}

func TestMessagesYieldsEachElementAsWritten(t *testing.T) {
	elements := []string{`{"role":"user","content":"a"}`, `{ "content" : [ {"role":"x"} ], "r\u006fle":"assistant" }`, `7`, `{}`, `{"role":1}`}
	roles := []string{"user", "assistant", "", "", ""}
	r := follow(t, `{"messages": [ `+strings.Join(elements, " , ")+` ], "x":1}`)
	i := 0
	for m := range r.Messages() {
		if got := string(r.Body().Bytes(m.Start, m.End)); got != elements[i] || m.Role != roles[i] {
			t.Errorf("message %d is %s of %q, want %s of %q", i, got, m.Role, elements[i], roles[i])
		}
		i++
	}
	if i != len(elements) {
		t.Errorf("%d messages, want %d", i, len(elements))
	}
	for range r.Messages() {
		break // stopping early is fine
	}
}

func TestScanIsTheSameForAnyDivisionIntoBlocks(t *testing.T) {
	data := []byte(` {"a":"x\\\\\"y\\","messages":[{"role":"us\u0065r","content":"\\\"" },-1.5e-3,true,null] ,"str\u0065am":true,"stream_options":{"include_usage":true},` +
		`"tools":[{"type":"function","function":{"name":"run\u005fpython"}},{"type":"code\u005finterpreter"}],"metadata":{"k":"v","session_id":"\u00e9\\s"},"n":1.0,` +
		`"tool_choice":{"type":"code_interpreter"}} `)
	turn := Turn{Appended: [][]byte{[]byte(`{"role":"tool"}`)}}
	whole := follow(t, string(data))
	want := whole.Rewrite(RewriteOptions{Name: "run_python"}).Turn(turn).Bytes()
	check := func(b *Body) {
		t.Helper()
		r, ok := Scan(b)
		if !ok {
			t.Fatal("cannot follow")
		}
		id, state := r.SessionID()
		if !r.HasTool || !r.Stream || !r.IncludeUsage() || r.ManyChoices() || id != `é\s` || state != SessionValid || r.Choice("x") != ChoiceOurs {
			t.Fatalf("the scan differs: %+v", r)
		}
		if got := r.Rewrite(RewriteOptions{Name: "run_python"}).Turn(turn).Bytes(); !bytes.Equal(got, want) {
			t.Fatalf("rewritten:\n got %s\nwant %s", got, want)
		}
	}
	for size := 1; size <= len(data); size++ {
		check(split(data, size))
	}
	for cut := range data {
		check(NewBody(data[:cut], data[cut:]))
	}
}

func TestScanOfHostileBodiesIsLinear(t *testing.T) {
	for name, body := range map[string]string{
		"brackets":      `{"a":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}`,
		"braces":        `{"a":` + strings.Repeat(`{"":`, 1<<19) + "1" + strings.Repeat("}", 1<<19) + `}`,
		"quotes":        `{"a":"` + strings.Repeat(`\"`, 1<<20) + `"}`,
		"backslashes":   `{"a":"` + strings.Repeat(`\`, 1<<21) + `"}`,
		"small strings": `{"a":[` + strings.Repeat(`"",`, 1<<19) + `""]}`,
		"tools":         `{"tools":[` + strings.Repeat(`{},`, 1<<17) + `{"type":"code_interpreter"}]}`,
		"names":         `{"tools":[{"type":"code_interpreter"}` + manyNames(1<<16) + `],"tool_choice":{"type":"allowed_tools","tools":[0` + manyNames(1<<16) + `]}}`,
		"session ids":   `{"metadata":{` + strings.Repeat(`"session_id":1,"a":1,`, 1<<16) + `"a":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := follow(t, body)
			got := r.Rewrite(RewriteOptions{Name: "run_python"}).Turn(Turn{}).Bytes()
			if bytes.Contains(got, []byte("session_id")) || !json.Valid(got) && name != "brackets" && name != "braces" {
				t.Error("rewritten wrongly")
			}
		})
	}
}

// manyNames returns elements of tools with names like those that ours may take.
func manyNames(n int) string {
	var b strings.Builder
	b.WriteString(`,{"type":"function","function":{"name":"run_python"}}`)
	for i := range n {
		fmt.Fprintf(&b, `,{"type":"function","function":{"name":"run_python_%d"}}`, i+2)
	}
	return b.String()
}

func TestScanAllocatesTheRequestOnly(t *testing.T) {
	for _, m := range bodies.Measured {
		for _, data := range [][]byte{m.Plain(), m.WithTool()} {
			for _, body := range []*Body{NewBody(data), split(data, 32<<10)} {
				if n := testing.AllocsPerRun(10, func() { Scan(body) }); n > 1 {
					t.Errorf("%s: the scan allocates %v times", m.Name, n)
				}
			}
		}
	}
}
