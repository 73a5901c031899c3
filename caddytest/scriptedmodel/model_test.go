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

package scriptedmodel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	codeTool  = `{"type":"function","function":{"name":"run_it","parameters":{"type":"object","properties":{"code":{"type":"string"}},"required":["code"]}}}`
	otherTool = `{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city","days"]}}}`
)

// ask sends a body to a model and returns the status and the answer.
func ask(t *testing.T, m *Model, body string) (int, string) {
	t.Helper()
	rec := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
	m.ServeHTTP(rec, r)
	return rec.Code, rec.Body.String()
}

// body is a request with one user message and the given tools.
func body(user, tools, more string) string {
	return `{"model":"m","messages":[{"role":"user","content":` + encode(user) + `}],"tools":[` + tools + `]` + more + `}`
}

// reply is the part of an answer that the tests look at, joined from the
// chunks when it was streamed.
type reply struct {
	content, finish string
	roles, usages   int
	calls           []functionCall
	failed          string
	done            bool
}

func parseJSON(t *testing.T, s string) reply {
	t.Helper()
	var c completion
	if err := json.Unmarshal([]byte(s), &c); err != nil || len(c.Choices) != 1 {
		t.Fatalf("answer %s: %v", s, err)
	}
	msg := c.Choices[0].Message
	out := reply{finish: c.Choices[0].FinishReason, roles: 1, usages: 1, done: true}
	if msg.Content != nil {
		out.content = *msg.Content
	}
	for _, call := range msg.ToolCalls {
		out.calls = append(out.calls, *call.Function)
	}
	return out
}

func parseStream(t *testing.T, s string) reply {
	t.Helper()
	var out reply
	for event := range strings.SplitSeq(strings.TrimSuffix(s, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok || out.done {
			t.Fatalf("event %q in %s", event, s)
		}
		if data == "[DONE]" {
			out.done = true
			continue
		}
		var c struct {
			chunk
			Error *apiError `json:"error"`
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("event %q: %v", event, err)
		}
		if c.Error != nil {
			out.failed = c.Error.Message
		}
		if c.Usage != nil {
			out.usages++
		}
		for _, choice := range c.Choices {
			out.add(choice)
		}
	}
	return out
}

func (r *reply) add(c chunkChoice) {
	if c.Delta.Role != "" {
		r.roles++
	}
	if c.Delta.Content != nil {
		r.content += *c.Delta.Content
	}
	for _, call := range c.Delta.ToolCalls {
		if *call.Index == len(r.calls) {
			r.calls = append(r.calls, functionCall{Name: call.Function.Name})
		}
		r.calls[*call.Index].Arguments += call.Function.Arguments
	}
	if c.FinishReason != nil {
		r.finish += *c.FinishReason
	}
}

// eachForm runs a test with JSON and with a stream.
func eachForm(t *testing.T, user, tools string, check func(*testing.T, reply)) {
	t.Helper()
	t.Run("json", func(t *testing.T) {
		status, s := ask(t, new(Model), body(user, tools, ""))
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, s)
		}
		check(t, parseJSON(t, s))
	})
	t.Run("stream", func(t *testing.T) {
		status, s := ask(t, new(Model), body(user, tools, `,"stream":true,"stream_options":{"include_usage":true}`))
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, s)
		}
		r := parseStream(t, s)
		if r.roles != 1 || r.usages != 1 || !r.done {
			t.Errorf("%d roles, %d usages, done %v: want one of each", r.roles, r.usages, r.done)
		}
		check(t, r)
	})
}

func TestAsksForTheQuotedCode(t *testing.T) {
	for user, want := range map[string]string{
		"Run this: print(6*7)":                         "print(6*7)",
		"Run this:\nx = 1\nprint(x)":                   "x = 1\nprint(x)",
		"Run: `print(1)`":                              "print(1)",
		"Run: print('a: b')":                           "print('a: b')",
		"Please\n```python\nfor i in []:\n    i\n```!": "for i in []:\n    i",
		"Run this: ```\nprint(1)\n```\nand tell me":    "print(1)",
		"See http://example.org and run: print(2)":     "print(2)",
		"Umlauts: print('äöüäöüäöüäöü 🎈🎈🎈🎈🎈')":         "print('äöüäöüäöüäöü 🎈🎈🎈🎈🎈')",
		"Lists: x[loop]":                               "x[loop]",
	} {
		t.Run(user, func(t *testing.T) {
			eachForm(t, user, otherTool+","+codeTool, func(t *testing.T, r reply) {
				want := encode(map[string]string{"code": want})
				if len(r.calls) != 1 || r.calls[0].Name != "run_it" || r.calls[0].Arguments != want {
					t.Errorf("calls %+v, want run_it with %s", r.calls, want)
				}
				if r.finish != "tool_calls" || r.content != "" {
					t.Errorf("finish %q, content %q", r.finish, r.content)
				}
			})
		})
	}
}

func TestKnobsChooseTheCalls(t *testing.T) {
	for knob, want := range map[string][]string{
		"":             {"run_it"},
		"[both]":       {"run_it", "weather"},
		"[other]":      {"weather"},
		"[twice]":      {"run_it", "run_it"},
		"[talk]":       {"run_it"},
		"[unheard-of]": {"run_it"},
	} {
		t.Run(knob, func(t *testing.T) {
			eachForm(t, knob+" Run: print(1)", otherTool+","+codeTool, func(t *testing.T, r reply) {
				names := make([]string, 0, len(r.calls))
				for _, c := range r.calls {
					names = append(names, c.Name)
					if c.Name == "weather" && c.Arguments != `{"city":"example","days":1}` {
						t.Errorf("arguments of the client's tool: %s", c.Arguments)
					}
				}
				if !slices.Equal(names, want) {
					t.Errorf("calls %q, want %q", names, want)
				}
				if talked := r.content != ""; talked != (knob == "[talk]") {
					t.Errorf("content %q", r.content)
				}
			})
		})
	}
}

func TestAnswersInTextWithoutCodeOrTool(t *testing.T) {
	noTool := func(t *testing.T, r reply) {
		if r.finish != "stop" || len(r.calls) != 0 || !strings.Contains(r.content, "was not run:\nprint(1)") {
			t.Errorf("%+v", r)
		}
	}
	t.Run("no tool", func(t *testing.T) { eachForm(t, "Run: print(1)", otherTool, noTool) })
	t.Run("no code", func(t *testing.T) {
		eachForm(t, "Hello", codeTool, func(t *testing.T, r reply) {
			if r.finish != "stop" || len(r.calls) != 0 || !strings.HasPrefix(r.content, "Hello") {
				t.Errorf("%+v", r)
			}
		})
	})
	t.Run("tool choice none", func(t *testing.T) {
		_, s := ask(t, new(Model), body("Run: print(1)", codeTool, `,"tool_choice":"none"`))
		noTool(t, parseJSON(t, s))
	})
}

// afterRounds is a conversation in which the tool has answered n times.
func afterRounds(user string, n int) string {
	round := `,{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"run_it","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"42\n"}]}`
	return `{"model":"m","messages":[{"role":"system","content":"x"},{"role":"user","content":` + encode(user) + `}` +
		strings.Repeat(round, n) + `],"tools":[` + codeTool + `]}`
}

func TestReportsWhatTheToolReturned(t *testing.T) {
	_, s := ask(t, new(Model), afterRounds("Run: print(42)", 1))
	if r := parseJSON(t, s); r.content != "The tool returned: 42" || r.finish != "stop" {
		t.Errorf("%+v", r)
	}
}

func TestRoundsAndLoopAskAgain(t *testing.T) {
	for _, c := range []struct {
		knob   string
		rounds int
		calls  int
	}{{"[rounds 2]", 0, 1}, {"[rounds 2]", 1, 1}, {"[rounds 2]", 2, 0}, {"[loop]", 50, 1}} {
		_, s := ask(t, new(Model), afterRounds(c.knob+" Run: print(1)", c.rounds))
		if r := parseJSON(t, s); len(r.calls) != c.calls {
			t.Errorf("%s after %d rounds: %d calls, want %d", c.knob, c.rounds, len(r.calls), c.calls)
		}
	}
}

func TestFaultsComeInTheirTurn(t *testing.T) {
	for _, c := range []struct {
		knob         string
		first, after int
	}{
		{"[status 503]", 503, 200},
		{"[status 429 after]", 200, 429},
		{"[fail]", 500, 200},
		{"[html 502]", 502, 200},
		{"[fail-stream]", 500, 200},
	} {
		first, s := ask(t, new(Model), body(c.knob+" Run: print(1)", codeTool, ""))
		after, _ := ask(t, new(Model), afterRounds(c.knob+" Run: print(1)", 1))
		if first != c.first || after != c.after {
			t.Errorf("%s: status %d and then %d, want %d and %d", c.knob, first, after, c.first, c.after)
		}
		if html := strings.HasPrefix(s, "<html>"); html != (c.knob == "[html 502]") {
			t.Errorf("%s: body %s", c.knob, s)
		}
	}
}

func TestFailStreamSendsAnErrorInTheStream(t *testing.T) {
	status, s := ask(t, new(Model), body("[fail-stream] Run: print(1)", codeTool, `,"stream":true`))
	r := parseStream(t, s)
	if status != http.StatusOK || r.failed == "" || r.done || len(r.calls) != 1 || r.finish != "" {
		t.Errorf("status %d, %+v", status, r)
	}
}

func TestCutBreaksTheConnection(t *testing.T) {
	server := httptest.NewServer(new(Model))
	defer server.Close()
	for _, more := range []string{"", `,"stream":true`} {
		resp, err := server.Client().Post(server.URL+"/v1/chat/completions", "application/json",
			strings.NewReader(body("[cut] Run: print(1)", codeTool, more)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if !errors.Is(err, io.ErrUnexpectedEOF) || len(got) == 0 {
			t.Errorf("read %q and %v, want a part and an unexpected end", got, err)
		}
	}
}

// TestSilentStreamEndsWithItsClient also shows that the first chunk is sent at once.
func TestSilentStreamEndsWithItsClient(t *testing.T) {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		new(Model).ServeHTTP(w, r)
		close(ended)
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/chat/completions",
		strings.NewReader(body("[silent 3600] Hi", "", `,"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil || !strings.Contains(line, `"role":"assistant"`) {
		t.Fatalf("first line %q, %v", line, err)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the stream goes on without its client")
	}
}

func TestRefusesWhatTheRealAPIRefuses(t *testing.T) {
	call := `{"role":"assistant","tool_calls":[{"id":"a"}]}`
	for name, c := range map[string]struct{ body, param string }{
		"no JSON":           {`{`, ""},
		"no model":          {`{"messages":[{"role":"user","content":"x"}]}`, "model"},
		"no messages":       {`{"model":"m"}`, "messages"},
		"unknown tool type": {body("x", `{"type":"code_interpreter"}`, ""), "tools[0].type"},
		"unknown choice":    {body("x", codeTool, `,"tool_choice":{"type":"function","function":{"name":"nope"}}`), "tool_choice"},
		"call unanswered":   {`{"model":"m","messages":[` + call + `,{"role":"user","content":"x"}]}`, "messages"},
		"result uncalled":   {`{"model":"m","messages":[{"role":"tool","tool_call_id":"a","content":"x"}]}`, "messages.[0].role"},
		"content a number":  {`{"model":"m","messages":[{"role":"user","content":7}]}`, ""},
	} {
		status, s := ask(t, new(Model), c.body)
		var e struct{ Error apiError }
		if err := json.Unmarshal([]byte(s), &e); err != nil {
			t.Fatalf("%s: %s: %v", name, s, err)
		}
		param := ""
		if e.Error.Param != nil {
			param = *e.Error.Param
		}
		if status != http.StatusBadRequest || param != c.param || e.Error.Message == "" {
			t.Errorf("%s: status %d, %s", name, status, s)
		}
	}
}

func TestForcedFunctionIsNoReasonToFail(t *testing.T) {
	_, s := ask(t, new(Model), body("Run: 1", codeTool, `,"tool_choice":{"type":"function","function":{"name":"run_it"}}`))
	if r := parseJSON(t, s); len(r.calls) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestKeyIsRequiredWhereOneIsSet(t *testing.T) {
	m := &Model{APIKey: "sk-right", Name: "tiny"}
	for header, want := range map[string]int{"": 401, "Bearer sk-wrong": 401, "Basic sk-right": 401, "Bearer sk-right": 200, "bearer sk-right": 200} {
		rec := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/v1/models", nil)
		r.Header.Set("Authorization", header)
		m.ServeHTTP(rec, r)
		if rec.Code != want {
			t.Errorf("%q: status %d, want %d", header, rec.Code, want)
		}
		if want == 200 && !strings.Contains(rec.Body.String(), `"id":"tiny"`) {
			t.Errorf("models: %s", rec.Body)
		}
	}
}

func TestOtherPathsAreNotFound(t *testing.T) {
	rec := httptest.NewRecorder()
	new(Model).ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/v1/responses", nil))
	if rec.Code != http.StatusNotFound || !strings.Contains(rec.Body.String(), `"error"`) {
		t.Errorf("status %d: %s", rec.Code, rec.Body)
	}
}
