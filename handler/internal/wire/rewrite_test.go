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
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire/bodies"
)

// rewritten returns a turn of a request as text.
func rewritten(t *testing.T, body string, o RewriteOptions, turn Turn) string {
	t.Helper()
	r, ok := Scan(NewBody([]byte(body)))
	if !ok {
		t.Fatalf("Scan(%s) cannot follow", body)
	}
	return string(r.Rewrite(o).Turn(turn).Bytes())
}

const fn = `{"type":"function","function":{"name":"run_python","description":"Runs Python code and returns what it prints (stdout and stderr) and the value of its last expression. ` +
	`Variables, imports and files stay from one call to the next. Use it for calculations, data analysis and plots, without asking for permission first.",` +
	`"parameters":{"type":"object","properties":{"code":{"type":"string","description":"The Python source code to run."}},"required":["code"]}}}`

func TestRewriteKeepsAllOtherBytes(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"nothing to do", ` { "model" : "m" , "tools":[ {"type":"function"} ] } `, ` { "model" : "m" , "tools":[ {"type":"function"} ] } `},
		{"the tool", `{"tools": [ {"type": "code_interpreter"} ], "x": 1.10}`, `{"tools": [ ` + fn + ` ], "x": 1.10}`},
		{"options of the tool go", `{"tools":[{"container":{"type":"auto"},"type":"code_interpreter"}]}`, `{"tools":[` + fn + `]}`},
		{"several of it become one", `{"tools":[{"type":"code_interpreter"}, {"type":"function"}, {"type":"code_interpreter"} ,{"type":"code_interpreter"} ]}`, `{"tools":[` + fn + `, {"type":"function"} ]}`},
		{"several in front", `{"tools":[{"type":"code_interpreter"}, {"type":"code_interpreter"}, {"a":1}]}`, `{"tools":[` + fn + `, {"a":1}]}`},
		{"session id alone, last", `{"a":1 , "metadata" : {"session_id":"s"} }`, `{"a":1 }`},
		{"session id alone, first", `{ "metadata":{"session_id":"s"}, "a":1}`, `{ "a":1}`},
		{"session id alone, only", `{ "metadata":{"session_id":"s"} }`, `{  }`},
		{"session id alone, between", `{"a":1, "metadata":{ "session_id" : null }, "b":2}`, `{"a":1, "b":2}`},
		{"session id first", `{"metadata":{"session_id":"s", "k":"v"}}`, `{"metadata":{"k":"v"}}`},
		{"session id last", `{"metadata":{"k":"v" , "session_id":"s" }}`, `{"metadata":{"k":"v" }}`},
		{"session id between", `{"metadata":{"k":"v", "session_id":{"a":[1]}, "l":"w"}}`, `{"metadata":{"k":"v", "l":"w"}}`},
		{"session id twice", `{"metadata":{"session_id":1,"session_id":2,"l":"w","session_id":3}}`, `{"metadata":{"l":"w"}}`},
		{"metadata twice", `{"metadata":{"session_id":1},"a":1,"metadata":{"session_id":2}}`, `{"a":1}`},
		{"escaped names", `{"m\u0065tadata":{"session\u005fid":"s"},"too\u006cs":[{"t\u0079pe":"code\u005finterpreter"}]}`, `{"too\u006cs":[` + fn + `]}`},
		{"an empty metadata of the client stays", `{"metadata":{}}`, `{"metadata":{}}`},
		{"deeper ones stay", `{"x":{"metadata":{"session_id":"s"},"tools":[{"type":"code_interpreter"}]}}`, `{"x":{"metadata":{"session_id":"s"},"tools":[{"type":"code_interpreter"}]}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rewritten(t, c.body, RewriteOptions{Name: "run_python"}, Turn{}); got != c.want {
				t.Errorf("rewritten:\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestRewriteTakesANameThatTheClientHasNot(t *testing.T) {
	function := func(name string) string { return `{"type":"function","function":{"name":"` + name + `"}}` }
	long := strings.Repeat("n", 64)
	for _, c := range []struct {
		name   string
		client []string
		want   string
	}{
		{"run_python", nil, "run_python"},
		{"run_python", []string{"f"}, "run_python"},
		{"run_python", []string{"run_python"}, "run_python_2"},
		{"run_python", []string{`run\u005fpython`}, "run_python_2"},
		{"run_python", []string{"run_python_2", "run_python", "run_python_3"}, "run_python_4"},
		{long, []string{long}, long[:62] + "_2"},
	} {
		tools := []string{`{"type":"code_interpreter"}`}
		for _, name := range c.client {
			tools = append(tools, function(name))
		}
		r := follow(t, `{"tools":[`+strings.Join(tools, ",")+`]}`)
		e := r.Rewrite(RewriteOptions{Name: c.name})
		if e.Name != c.want {
			t.Errorf("beside %q the tool is called %q, want %q", c.client, e.Name, c.want)
		}
		if got := string(e.Turn(Turn{}).Bytes()); !strings.Contains(got, `{"name":"`+c.want+`","description"`) {
			t.Errorf("beside %q the request is %s", c.client, got)
		}
	}
}

func TestRewriteLeavesTheRequestWithoutTheTool(t *testing.T) {
	for _, body := range []string{
		`{"messages":[1]}`,
		`{"messages":[1],"tools":[{"type":"function","function":{"name":"run_python"}}],"tool_choice":"required"}`,
		`{"tools":[{"type":"code_interpreter"}],"tools":[]}`,
	} {
		e := follow(t, body).Rewrite(RewriteOptions{Name: "run_python"})
		if got := string(e.Turn(Turn{Choice: NoTools}).Bytes()); e.Name != "" || e.Changed() || got != body {
			t.Errorf("%s became %s", body, got)
		}
	}
}

func TestRewriteOffersTheTool(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"no tools", `{"messages":[1] }`, `{"messages":[1] ,"tools":[` + fn + `]}`},
		{"nothing at all", `{ }`, `{ "tools":[` + fn + `]}`},
		{"nothing left", `{"metadata":{"session_id":"s"}}`, `{"tools":[` + fn + `]}`},
		{"null", `{"tools":null}`, `{"tools":[` + fn + `]}`},
		{"empty list", `{"tools":[ ]}`, `{"tools":[ ` + fn + `]}`},
		{"a list", `{"tools":[{"type":"function"} ],"a":1}`, `{"tools":[{"type":"function"} ,` + fn + `],"a":1}`},
		{"already there", `{"tools":[{"type":"code_interpreter"}]}`, `{"tools":[` + fn + `]}`},
		{"no place for it", `{"tools":{"a":1}}`, `{"tools":{"a":1}}`},
		{"ambiguous", `{"tools":[],"tools":[]}`, `{"tools":[],"tools":[]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rewritten(t, c.body, RewriteOptions{Name: "run_python", Offer: true}, Turn{}); got != c.want {
				t.Errorf("rewritten:\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestFunctionToolIsWhatUpstreamsAccept(t *testing.T) {
	var tool struct {
		Type     string
		Function struct {
			Name, Description string
			Parameters        struct {
				Type       string
				Properties map[string]struct{ Type, Description string }
				Required   []string
			}
		}
	}
	dec := json.NewDecoder(strings.NewReader(string(functionTool("a\"b"))))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&tool); err != nil {
		t.Fatal(err)
	}
	f := tool.Function
	if tool.Type != "function" || f.Name != "a\"b" || f.Description == "" || f.Parameters.Type != "object" ||
		f.Parameters.Properties["code"].Type != "string" || !slices.Equal(f.Parameters.Required, []string{"code"}) {
		t.Errorf("the tool is %+v", tool)
	}
}

func TestTurnForcesNoToolTwice(t *testing.T) {
	const (
		ours    = `{"type":"function","function":{"name":"run_python"}}`
		theirs  = `{"type":"function","function":{"name":"f"}}`
		allowed = `{"type":"allowed_tools","allowed_tools":{"mode":%s,"tools":[%s, %s]}}`
	)
	for _, c := range []struct{ asked, first, later string }{
		{`"auto"`, `"auto"`, `"auto"`},
		{`"none"`, `"none"`, `"none"`},
		{`null`, `null`, `null`},
		{`"required"`, `"required"`, `"auto"`},
		{`"any"`, `"any"`, `"auto"`},
		{`"else"`, `"else"`, `"auto"`},
		{`7`, `7`, `"auto"`},
		{`{"type":"code_interpreter"}`, ours, `"auto"`},
		{`{"type":"function","function":{"name":"code_interpreter"}}`, ours, `"auto"`},
		{`{"type":"function", "function":{"name":"run_python"}}`, ours, `"auto"`},
		{`{"type":"function","name":"run_python"}`, ours, `"auto"`},
		{theirs, theirs, `"auto"`},
		{
			fmt.Sprintf(allowed, `"required"`, theirs, `{"type":"code_interpreter"}`),
			fmt.Sprintf(allowed, `"required"`, theirs, ours),
			fmt.Sprintf(allowed, `"auto"`, theirs, ours),
		},
		{
			fmt.Sprintf(allowed, `"auto"`, `{"type":"function","function":{"name":"code_interpreter"}}`, theirs),
			fmt.Sprintf(allowed, `"auto"`, ours, theirs),
			fmt.Sprintf(allowed, `"auto"`, ours, theirs),
		},
		{
			`{"type":"allowed_tools","tools":[{"type":"code_interpreter"}],"mode":"required"}`,
			`{"type":"allowed_tools","tools":[` + ours + `],"mode":"required"}`,
			`"auto"`, // it allows all that there are
		},
		{`{"type":"allowed_tools"}`, `{"type":"allowed_tools"}`, `{"type":"allowed_tools"}`},
	} {
		body := func(choice string) string { return `{"tool_choice": ` + choice + ` ,"tools":[%s]}` }
		e := follow(t, fmt.Sprintf(body(c.asked), `{"type":"code_interpreter"}`)).Rewrite(RewriteOptions{Name: "run_python"})
		for choice, want := range map[TurnChoice]string{AsAsked: c.first, Unforced: c.later, NoTools: `"none"`} {
			if got, want := string(e.Turn(Turn{Choice: choice}).Bytes()), fmt.Sprintf(body(want), fn); got != want {
				t.Errorf("asked for %s, turn %v:\n got %s\nwant %s", c.asked, choice, got, want)
			}
		}
	}
}

func TestTurnAddsNoToolChoiceButNone(t *testing.T) {
	for body, want := range map[string]string{
		`{"tools":[{"type":"code_interpreter"}]}`:                                        `{"tools":[` + fn + `]%s}`,
		`{"tools":[{"type":"code_interpreter"}] , "metadata" : {"session_id" : "s"} }`:   `{"tools":[` + fn + `] %s}`,
		`{ "metadata" : {"session_id" : "s"} , "tools":[{"type":"code_interpreter"}]  }`: `{ "tools":[` + fn + `]  %s}`,
	} {
		e := follow(t, body).Rewrite(RewriteOptions{Name: "run_python"})
		for choice, added := range map[TurnChoice]string{AsAsked: "", Unforced: "", NoTools: `,"tool_choice":"none"`} {
			if got, want := string(e.Turn(Turn{Choice: choice}).Bytes()), fmt.Sprintf(want, added); got != want {
				t.Errorf("%s:\n got %s\nwant %s", body, got, want)
			}
		}
	}
	got := rewritten(t, `{}`, RewriteOptions{Name: "run_python", Offer: true}, Turn{Choice: NoTools})
	if want := `{"tools":[` + fn + `],"tool_choice":"none"}`; got != want {
		t.Errorf("offered:\n got %s\nwant %s", got, want)
	}
}

func TestTurnAppendsMessages(t *testing.T) {
	appended := [][]byte{[]byte(`{"a":1}`), []byte(`{"b":2}`), []byte(`{"c":3}`)}
	for _, c := range []struct{ body, want string }{
		{`{"messages":[]}`, `{"messages":[{"a":1},{"b":2},{"c":3}]}`},
		{`{"messages":[ ]}`, `{"messages":[ {"a":1},{"b":2},{"c":3}]}`},
		{`{"messages":[{"role":"user"} ],"x":1}`, `{"messages":[{"role":"user"} ,{"a":1},{"b":2},{"c":3}],"x":1}`},
		{`{"messages":"text"}`, `{"messages":"text"}`},
		{`{"x":1}`, `{"x":1}`},
	} {
		if got := rewritten(t, c.body, RewriteOptions{}, Turn{Appended: appended}); got != c.want {
			t.Errorf("%s became\n%s, want\n%s", c.body, got, c.want)
		}
	}
}

func TestTurnEditsMessagesInTheMiddle(t *testing.T) {
	r := follow(t, `{"tools":[{"type":"code_interpreter"}],"messages":[ {"role":"user"} , {"role":"assistant"} , {"role":"tool"} ],"metadata":{"session_id":"s"}}`)
	list := slices.Collect(r.Messages())
	raw := func(text string) []byte { return []byte(text) }
	turn := Turn{
		Appended: [][]byte{raw("9")},
		Edits: []Edit{
			insertAfter(list[2], raw("6"), raw("7")),
			insertBefore(list[2], raw("4"), raw("5")),
			ReplaceMessage(list[1], raw("1"), raw("2"), raw("3")),
			insertBefore(list[1], raw("0")),
		},
	}
	want := `{"tools":[` + fn + `],"messages":[ {"role":"user"} , 0,1,2,3 , 4,5,{"role":"tool"},6,7 ,9]}`
	if got := string(r.Rewrite(RewriteOptions{Name: "run_python"}).Turn(turn).Bytes()); got != want {
		t.Errorf("edited:\n got %s\nwant %s", got, want)
	}
}

func TestTurnCopiesNoHistory(t *testing.T) {
	appended := [][]byte{[]byte(`{"role":"assistant"}`), []byte(`{"role":"tool"}`)}
	for _, m := range bodies.Measured {
		r, _ := Scan(NewBody(m.WithTool()))
		e := r.Rewrite(RewriteOptions{Name: "run_python"})
		for _, choice := range []TurnChoice{AsAsked, Unforced} {
			turn := func() { e.Turn(Turn{Appended: appended, Choice: choice}) }
			if n := testing.AllocsPerRun(10, turn); n > 1 {
				t.Errorf("%s: a turn allocates %v times, want once for its list", m.Name, n)
			}
		}
		s := e.Turn(Turn{Appended: appended})
		if &s.list[0][0] != &r.body.blocks[0][0] || len(s.list) > fewSegments {
			t.Errorf("%s: a turn is no list of the client's own bytes", m.Name)
		}
	}
}

// insertBefore puts messages before m.
func insertBefore(m Message, raw ...[]byte) Edit {
	var text []byte
	for _, p := range raw {
		text = append(append(text, p...), ',')
	}
	return Edit{m.Start, m.Start, text}
}

// insertAfter puts messages after m.
func insertAfter(m Message, raw ...[]byte) Edit {
	var text []byte
	for _, p := range raw {
		text = append(append(text, ','), p...)
	}
	return Edit{m.End, m.End, text}
}
