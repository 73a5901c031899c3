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

// callWith returns a call of our tool whose arguments are the value of v in a
// chunk.
func callWith(t testing.TB, v string) *Call {
	t.Helper()
	var c Chunk
	var a Answer
	if !c.Parse([]byte(`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"run_python","arguments":` + v + `}}]}}]}`)) {
		t.Fatalf("no chunk with %s", v)
	}
	a.Observe(&c)
	a.Settle(map[string]bool{}, "run_python")
	if len(a.Calls()) != 1 {
		t.Fatalf("%d calls with %s", len(a.Calls()), v)
	}
	return a.Calls()[0]
}

const fenced = "```"

// readings are arguments, as text, and the program that they stand for.
var readings = []struct {
	name, args string
	code       string
	problem    string // part of it, when nothing is to be run
}{
	{"plain", `{"code": "print(6*7)"}`, "print(6*7)", ""},
	{"verbatim", `{"code": "\n  if x:\r\n\tpass\n\n"}`, "\n  if x:\r\n\tpass\n\n", ""},
	{"other members", `{"code": "1", "timeout": 5, "language": null}`, "1", ""},
	{"markup in a literal", `{"code": "print('</tool_call> data: [DONE] ` + fenced + `')"}`, "print('</tool_call> data: [DONE] " + fenced + "')", ""},
	{"fence in the code", `{"code": "` + fenced + `python\nprint(1)\n` + fenced + `"}`, "print(1)", ""},
	{"fence without a language in the code", `{"code": "` + fenced + `\nprint(1)\n` + fenced + `\n"}`, "print(1)", ""},
	{"fence with CRLF", `{"code": "` + fenced + `py\r\nif x:\r\n  y\r\n` + fenced + `"}`, "if x:\r\n  y", ""},
	{"fence that keeps indentation and blank lines", `{"code": "` + fenced + `python\n\n  x\n\n` + fenced + `"}`, "\n  x\n", ""},
	{"fence of another language", `{"code": "` + fenced + `bash\nls\n` + fenced + `"}`, "", "only Python"},
	{"two fences are no wrapping", `{"code": "` + fenced + `python\na\n` + fenced + `\n` + fenced + `python\nb\n` + fenced + `"}`, fenced + "python\na\n" + fenced + "\n" + fenced + "python\nb\n" + fenced, ""},
	{"fence around the arguments", fenced + "json\n{\"code\": \"1\"}\n" + fenced, "1", ""},
	{"fence without a language around the arguments", fenced + "\n{\"code\": \"1\"}\n" + fenced, "1", ""},
	{"fenced program", fenced + "python\nprint(1)\n" + fenced, "print(1)", ""},
	{"fenced program of another language", fenced + "javascript\nx\n" + fenced, "", "only Python"},
	{"the program itself", "print(6*7)", "print(6*7)", ""},
	{"the program itself, verbatim", "\n  x = {\"a\": 1}\n", "\n  x = {\"a\": 1}\n", ""},
	{"newlines and tabs as they are", "{\"code\": \"if 1:\n\tprint(1)\"}", "if 1:\n\tprint(1)", ""},
	{"other control characters", "{\"code\": \"'\x01'\"}", "'\x01'", ""},
	{"backslashes that start no escape", `{"code": "re.match('\d+\.\w', s)"}`, `re.match('\d+\.\w', s)`, ""},
	{"escape cut short", `{"code": "'\u12'"}`, `'\u12'`, ""},
	{"trailing comma", `{"code": "1",}`, "1", ""},
	{"backslash and n between tokens", `{"code": \n"1"\n}`, "1", ""},
	{"backslash and n before it", `\n\t {"code": "1"}\n`, "1", ""},
	{"backslash and n before it, inside", `{"code": "\\n{\"code\": \"1\"}"}`, "1", ""},
	{"byte order mark", "\ufeff{\"code\": \"1\"}", "1", ""},
	{"backslash and n before a program", `\nprint(1)`, `\nprint(1)`, ""},
	{"itself, with a newline as it is", `{"code": "{\"code\": \"x = 1\nprint(x)\"}"}`, "x = 1\nprint(x)", ""},
	{"itself, with a trailing comma", `{"code": "{\"code\": \"1\",}"}`, "1", ""},
	{"itself, not closed", `{"code": "{\"code\": \"print(6*7)"}`, "", "incomplete"},
	{"a program that begins like it", `{"code": "{\"code\": \"a\"}[\"code\"]"}`, `{"code": "a"}["code"]`, ""},
	{"closers too many", `{"code": "1"}]}`, "1", ""},
	{"closer missing", `{"code": "1"`, "1", ""},
	{"closer missing inside", `{"arguments": {"code": "1"}`, "1", ""},
	{"string not closed", `{"code": "1`, "", "incomplete"},
	{"cut after the member", `{"code":`, "", "incomplete"},
	{"quotes not escaped", `{"code": "print("42")"}`, "", "incomplete"},
	{"single quotes", `{'code': 'print(1)'}`, "", "incomplete"},
	{"text behind", `{"code": "1"}<|im_end|>`, "", "incomplete"},
	{"two objects", `{"code": "1"}{"code": "2"}`, "", "incomplete"},
	{"an object twice", `{"code": "1"}{"code": "1"}`, "1", ""},
	{"an object three times", "{\"code\": \"1\"}\n{\"code\": \"1\"}{\"code\": \"1\"}", "1", ""},
	{"an empty object before", `{}{"code": "1"}`, "1", ""},
	{"encoded twice", `"{\"code\": \"1\"}"`, "1", ""},
	{"a string", `"print(1)"`, "print(1)", ""},
	{"array of one", `[{"code": "1"}]`, "1", ""},
	{"array of two", `[{"code": "1"}, {"code": "2"}]`, "", "no program"},
	{"nested in itself", `{"code": "{\"code\": \"1\"}"}`, "1", ""},
	{"nested in itself as an object", `{"code": {"code": "1"}}`, "1", ""},
	{"a program that is an object", `{"code": "{\"a\": 1}"}`, `{"a": 1}`, ""},
	{"call in its arguments", `{"name": "run_python", "arguments": {"code": "1"}}`, "1", ""},
	{"call in its parameters", `{"name": "functions.run_python", "parameters": "{\"code\": \"1\"}"}`, "1", ""},
	{"call with a name beside the code", `{"name": "run_python", "code": "1"}`, "1", ""},
	{"another call in its arguments", `{"name": "rm", "arguments": {"code": "1"}}`, "", "no program"},
	{"calls in parallel", `{"tool_uses": [{"recipient_name": "functions.run_python", "parameters": {"code": "1"}}]}`, "", "no program"},
	{"synonym input", `{"input": "1"}`, "1", ""},
	{"synonym script", `{"script": "1"}`, "1", ""},
	{"synonym python", `{"python": "1"}`, "1", ""},
	{"synonym source", `{"source": "1"}`, "1", ""},
	{"synonym cmd", `{"cmd": "1"}`, "1", ""},
	{"synonym beside null", `{"code": null, "input": "1"}`, "1", ""},
	{"synonym beside code", `{"code": "1", "input": "2"}`, "1", ""},
	{"two synonyms", `{"script": "1", "input": "2"}`, "", "more than one"},
	{"another name", `{"query": "1"}`, "", "`code`"},
	{"another case", `{"Code": "1"}`, "", "`code`"},
	{"language", `{"language": "python", "code": "1"}`, "1", ""},
	{"language with a version", `{"language": "Python 3.12", "code": "1"}`, "1", ""},
	{"another language", `{"language": "bash", "code": "ls"}`, "", "only Python"},
	{"two programs under one name", `{"code": "1", "code": "2"}`, "", "more than one"},
	{"two programs under one name, one escaped", `{"code": "1", "c\u006fde": "2"}`, "", "more than one"},
	{"one program twice", `{"code": "1", "code": "1"}`, "1", ""},
	{"nothing", "", "", "`code`"},
	{"white space", " \n", "", "`code`"},
	{"empty object", `{}`, "", "`code`"},
	{"null in a string", `null`, "", "`code`"},
	{"empty array", `[]`, "", "`code`"},
	{"a number", `7`, "", "`code`"},
	{"true", `true`, "", "`code`"},
	{"code null", `{"code": null}`, "", "`code`"},
	{"code empty", `{"code": ""}`, "", "`code`"},
	{"code of white space", `{"code": " \n"}`, "", "`code`"},
	{"code as lines", `{"code": ["a", "b"]}`, "", "`code`"},
	{"code as a number", `{"code": 7}`, "", "`code`"},
	{"deep", strings.Repeat(`{"code":`, 20000) + `"1"` + strings.Repeat("}", 20000), "", "incomplete"},
	{"wrapped too often", strings.Repeat(`{"code":`, 9) + `"1"` + strings.Repeat("}", 9), "", "`code`"},
}

func TestArguments(t *testing.T) {
	for _, c := range readings {
		t.Run(c.name, func(t *testing.T) {
			p := callWith(t, quote(c.args)).Program()
			if p.Code != c.code || !strings.Contains(p.Problem, c.problem) || (c.problem == "") != (p.Problem == "") {
				t.Errorf("code %q, problem %q; want %q, %q", p.Code, p.Problem, c.code, c.problem)
			}
			checkEcho(t, p, c.args)
		})
	}
}

// checkEcho checks that what goes back is an object in a string: as it came
// where that was one, else with the program, else without anything.
func checkEcho(t testing.TB, p Program, args string) {
	t.Helper()
	var echo string
	var object map[string]json.RawMessage // numbers may be beyond any type
	if json.Unmarshal(p.Echo, &echo) != nil || json.Unmarshal([]byte(echo), &object) != nil {
		t.Fatalf("echo %s holds no object", p.Echo)
	}
	var came map[string]json.RawMessage
	switch {
	case json.Unmarshal([]byte(args), &came) == nil && came != nil:
		if echo != args {
			t.Errorf("echo %q of %q", echo, args)
		}
	case p.Problem != "" && len(object) != 0 && !strings.Contains(args, echo):
		t.Errorf("echo %q though nothing runs", echo)
	}
}

func TestArgumentsThatAreNoString(t *testing.T) {
	for _, c := range []struct{ value, code, echo string }{
		{`{"code": "1"}`, "1", `{"code": "1"}`},
		{`[{"code": "1"}]`, "1", `{"code":"1"}`},
		{`{"code": ["1"]}`, "", `{"code": ["1"]}`},
		{`["x=1"]`, "x=1", `{"code":"x=1"}`},
		{`["1","2"]`, "", `{}`},
		{`7`, "", `{}`},
		{`true`, "", `{}`},
		{`null`, "", `{}`},
	} {
		p := callWith(t, c.value).Program()
		if p.Code != c.code || string(p.Echo) != quote(c.echo) || (p.Problem == "") != (c.code != "") {
			t.Errorf("%s: code %q, echo %s, problem %q", c.value, p.Code, p.Echo, p.Problem)
		}
	}
}

func TestEchoedArgumentsKeepTheirBytes(t *testing.T) {
	for _, body := range []string{
		`{\"code\":\"a<b>&c\"}`, `{\u0022code\u0022: \"\\ud83d\\ude00 \u00e9\/\"}`, `{\"code\" :\t\"x\", \"n\": 1.10}`,
	} {
		if p := callWith(t, `"`+body+`"`).Program(); string(p.Echo) != `"`+body+`"` {
			t.Errorf("echo %s of %s", p.Echo, body)
		}
	}
}

func TestForeignArgumentsGoBackAsObjects(t *testing.T) {
	for _, c := range []struct{ value, echo string }{
		{`"{\"city\":\"Oslo\"}"`, `"{\"city\":\"Oslo\"}"`},
		{`{"city":"Oslo"}`, `"{\"city\":\"Oslo\"}"`},
		{`"{\"city\":\"Oslo\"}{\"city\":\"Oslo\"}"`, `"{\"city\":\"Oslo\"}"`},
		{`"{\"city\":"`, `"{}"`},
		{`"Oslo"`, `"{}"`},
		{`[1]`, `"{}"`},
		{`null`, `"{}"`},
	} {
		if p := callWith(t, c.value).Foreign(); string(p.Echo) != c.echo {
			t.Errorf("%s: echo %s, want %s", c.value, p.Echo, c.echo)
		}
	}
}

// A raw tab in the text of a chunk is no JSON; what it is meant to be is clear.
func TestArgumentsWithRawControlCharacters(t *testing.T) {
	p := callWith(t, "\"{\\\"code\\\": \\\"if 1:\\n\tprint(1)\\\"}\"").Program()
	if p.Code != "if 1:\n\tprint(1)" {
		t.Errorf("code %q, problem %q", p.Code, p.Problem)
	}
}
