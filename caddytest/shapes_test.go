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

package caddytest_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// shape is a way to write the Caddyfile. Every turn of the model must see the
// same request: path, and the header X-Turn.
type shape struct {
	name   string
	block  func(interpreter string, u *upstream) string
	base   string   // that clients use
	path   string   // that the model sees
	turn   []string // X-Turn
	header []string // of the client
}

const chatPath = "/v1/chat/completions"

// The passwords of alice and bob are their names.
const users = `basic_auth {
	alice $2a$04$hrNLdXYa1/jQX46MTPsEge0weMyrRW0Rmqpy8v8gq4or5TAtBaUCe
	bob $2a$04$p4VUlYezErsxj4eQkxUcluhSUdw4X5PVRpUwg6CaVTp7QjYtjk7fa
}`

var shapes = []shape{
	{
		name: "plain", base: "/v1", path: chatPath,
		block: func(ci string, u *upstream) string { return ci + "\n" + u.proxy() },
	},
	{
		name: "handle", base: "/v1", path: chatPath,
		block: func(ci string, u *upstream) string {
			return ci + "\nhandle /v1/* {\n" + u.proxy() + "\n}\nhandle {\nrespond 404\n}"
		},
	},
	{
		name: "handle and rewrite", base: "/api/v1", path: "/openai" + chatPath, turn: []string{"behind"},
		block: func(ci string, u *upstream) string {
			return ci + `
			handle /api/* {
				request_header +X-Turn behind
				uri strip_prefix /api
				reverse_proxy ` + u.address() + ` {
					rewrite /openai{path}
				}
			}
			handle {
				respond 404
			}`
		},
	},
	{
		name: "rewrite", base: "/api/v1", path: "/openai/api" + chatPath, turn: []string{"behind"},
		block: func(ci string, u *upstream) string {
			return ci + `
			handle_path /nothing/* {
				respond 404
			}
			handle {
				rewrite * /openai{uri}
				request_header +X-Turn behind
				` + u.proxy() + `
			}`
		},
	},
	{
		name: "route", base: "/v1", path: "/openai" + chatPath, turn: []string{"behind"},
		block: func(ci string, u *upstream) string {
			return "route {\n" + ci + "\nrequest_header +X-Turn behind\nrewrite * /openai{uri}\n" + u.proxy() + "\n}"
		},
	},
	{
		name: "encode and log", base: "/v1", path: chatPath, turn: []string{"before"},
		block: func(ci string, u *upstream) string {
			return "log\nencode zstd gzip\nheader X-Site one\nrequest_header +X-Turn before\n" + ci + "\n" + u.proxy()
		},
	},
	{
		name: "basic_auth", base: "/v1", path: chatPath, header: []string{"Authorization", "Basic YWxpY2U6YWxpY2U="},
		block: func(ci string, u *upstream) string {
			return users + "\n" + ci + "\n" + u.proxy() + " {\nheader_up -Authorization\n}"
		},
	},
}

func TestShapes(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			forEngines(t, func(t *testing.T, e engine) {
				u := newModel(t)
				g := start(t, s.block(e.interpreter(t), u))
				c := newClient(t, g.url+s.base, s.header...)
				for _, part := range conversation {
					t.Run(part.name, func(t *testing.T) {
						c.t = t
						part.test(t, c, u)
						s.check(t, u.asked())
					})
				}
			})
		})
	}
}

// check looks at what the model was asked.
func (s shape) check(t *testing.T, seen []asked) {
	t.Helper()
	if len(seen) == 0 {
		t.Error("the model was not asked")
	}
	for i, a := range seen {
		if a.path != s.path {
			t.Errorf("request %d went to %s, want %s", i+1, a.path, s.path)
		}
		if got := a.header["X-Turn"]; fmt.Sprint(got) != fmt.Sprint(s.turn) {
			t.Errorf("request %d has X-Turn %q, want %q", i+1, got, s.turn)
		}
		for _, text := range []string{"session_id", "code_interpreter", "executed_tools"} {
			if bytes.Contains(a.body, []byte(text)) {
				t.Errorf("request %d has %s in %s", i+1, text, a.body)
			}
		}
		if a.length != int64(len(a.body)) {
			t.Errorf("request %d has the length %d for %d bytes", i+1, a.length, len(a.body))
		}
	}
}

// conversation is what works in every shape.
var conversation = []struct {
	name string
	test func(t *testing.T, c *client, u *upstream)
}{
	{"json", func(t *testing.T, c *client, _ *upstream) {
		a := c.ask(run("print(6*7)")).says(t, "The tool returned: 42")
		a.ran(t, "print(6*7)", "42")
	}},
	{"stream", func(t *testing.T, c *client, _ *upstream) {
		a := c.ask(run("print(6*7)", streamed)).says(t, "The tool returned: 42")
		if a.begun != 1 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
			t.Errorf("%d executions were announced in %q", a.begun, a.header.Get("Content-Type"))
		}
		a.ran(t, "print(6*7)", "42")
	}},
	{"a session keeps its variables", func(t *testing.T, c *client, _ *upstream) {
		c.ask(run("x = 42", in("a"))).says(t, "(no output)")
		c.ask(run("print(x + 1)", in("a"), streamed)).says(t, "43")
		c.ask(run("print(x)", in("b"))).says(t, "NameError")
	}},
	{"a request without a session keeps to itself", func(t *testing.T, c *client, _ *upstream) {
		c.ask(run("y = 1; print(y)")).says(t, "1")
		c.ask(run("print(y)")).says(t, "NameError")
	}},
	{"a chart", func(t *testing.T, c *client, u *upstream) {
		a := c.ask(run("import matplotlib.pyplot as plt\nplt.bar(['a', 'b'], [1, 2])\nplt.show()", in("a"))).says(t, "[image/png")
		if len(a.executed) != 1 || len(a.executed[0].Results) != 1 {
			t.Fatalf("executed: %.500s", a.body)
		}
		r := a.executed[0].Results[0]
		if !strings.HasPrefix(r.PNG, "iVBORw0KGgo") || r.Chart["type"] != "bar" {
			t.Errorf("the picture is %.20q, the chart %v", r.PNG, r.Chart)
		}
		for _, a := range u.asked() {
			if bytes.Contains(a.body, []byte("iVBORw0KGgo")) {
				t.Error("the picture went to the model")
			}
		}
		c.ask(run("1")) // for the caller's look at the model
	}},
	{"an error in the code", func(t *testing.T, c *client, _ *upstream) {
		a := c.ask(run("def f():\n    return 1/0\nf()", in("a"))).says(t, "ZeroDivisionError: division by zero")
		if !strings.Contains(a.output(), "Traceback") || strings.Count(a.output(), "division by zero") != 1 {
			t.Errorf("the output is %q", a.output())
		}
	}},
	{"several rounds", func(t *testing.T, c *client, u *upstream) {
		u.asked()
		for _, form := range []fields{nil, streamed} {
			a := c.ask(knobs("[talk] [rounds 3]", "print(6*7)", in("a"), form)).says(t, "The tool returned: 42")
			if len(a.executed) != 3 || strings.Count(a.content, "Let me run that.") != 3 || strings.Count(a.content, "returned: 42") != 3 {
				t.Errorf("%d executions, and the model said %q", len(a.executed), a.content)
			}
			if a = c.ask(knobs("[twice]", "print(6*7)", in("a"), form)).says(t, "returned: 42"); len(a.executed) != 2 {
				t.Errorf("%d executions", len(a.executed))
			}
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		if len(u.seen) != 2*(4+2) {
			t.Errorf("the model was asked %d times", len(u.seen))
		}
	}},
	{"a model that never stops", func(t *testing.T, c *client, _ *upstream) {
		a := c.ask(knobs("[loop]", "print(6*7)", in("a"))).says(t, "returned: 42")
		if len(a.executed) != 16 {
			t.Errorf("%d executions", len(a.executed))
		}
	}},
	{"a long output", func(t *testing.T, c *client, _ *upstream) {
		a := c.ask(run("print('head' + 'x' * 100000 + 'tail')", in("a"))).says(t, "tail")
		if n := len(a.output()); n > 33000 || !strings.HasPrefix(a.output(), "head") {
			t.Errorf("%d characters", n)
		}
	}},
	{"a mixed turn", mixedTurn(nil)},
	{"a mixed turn, streamed", mixedTurn(streamed)},
	{"a forced choice", func(t *testing.T, c *client, u *upstream) {
		u.asked()
		c.ask(run("print(1)", fields{"tool_choice": fields{"type": "code_interpreter"}})).says(t, "1")
		u.mu.Lock()
		defer u.mu.Unlock()
		for i, want := range []string{`{"type":"function","function":{"name":"run_python"}}`, `"auto"`} {
			if got := u.seen[i].member(t, "tool_choice"); got != want {
				t.Errorf("turn %d: %s, want %s", i+1, got, want)
			}
		}
	}},
	{"usage", func(t *testing.T, c *client, _ *upstream) {
		for name, form := range map[string]fields{"json": nil, "stream": streamed} {
			one := c.ask(run("print(1)", form, fields{"tools": []any{}}))
			both := c.ask(run("print(1)", form))
			prompt := both.usage["prompt_tokens"].(float64)
			if prompt < 2*one.usage["prompt_tokens"].(float64) || both.usage["total_tokens"] != prompt+both.usage["completion_tokens"].(float64) {
				t.Errorf("%s: usage %v, and %v of one turn", name, both.usage, one.usage)
			}
		}
	}},
	{"without the tool", func(t *testing.T, c *client, _ *upstream) {
		for _, form := range []fields{nil, streamed} {
			a := c.ask(run("print(1)", in("a"), form, fields{"tools": nil})).says(t, "No tool of this request takes code")
			if len(a.executed) != 0 {
				t.Errorf("executed: %v", a.executed)
			}
		}
	}},
}

// ran checks the one execution of an answer.
func (a *answer) ran(t *testing.T, code, output string) {
	t.Helper()
	if len(a.executed) != 1 {
		t.Fatalf("executed: %s", a.body)
	}
	e := a.executed[0]
	if e.Index != 0 || e.Type != "python" || e.Arguments != encode(map[string]string{"code": code}) || strings.TrimSpace(*e.Output) != output {
		t.Errorf("executed: %+v with %q", e, *e.Output)
	}
}

// weather is a tool of the client.
var weather = fields{"type": "function", "function": fields{
	"name":       "weather",
	"parameters": fields{"type": "object", "properties": fields{"city": fields{"type": "string"}}, "required": []string{"city"}},
}}

// mixedTurn has the model call both tools in one turn.
func mixedTurn(form fields) func(*testing.T, *client, *upstream) {
	return func(t *testing.T, c *client, u *upstream) {
		body := knobs("[both]", "print(6*7)", in("a"), form, fields{"tools": []any{fields{"type": "code_interpreter"}, weather}})
		a := c.ask(body)
		if a.finish != "tool_calls" || len(a.calls) != 1 || a.calls[0].Function.Name != "weather" || a.calls[0].Index != 0 {
			t.Fatalf("the client got %s", a.body)
		}
		a.ran(t, "print(6*7)", "42")
		body["messages"] = append(body["messages"].([]any),
			fields{"role": "assistant", "content": nil, "tool_calls": a.calls},
			fields{"role": "tool", "tool_call_id": a.calls[0].ID, "content": "rain"})
		c.ask(body).says(t, "The tool returned: 42\nThe tool returned: rain")
	}
}
