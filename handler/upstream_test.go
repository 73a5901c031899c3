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

package handler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// upstream stands for what is behind the handler: it gives its turns one after
// the other and keeps what it was asked.
type upstream struct {
	t *testing.T

	mu    sync.Mutex
	turns []reply
	seen  []asked
	// always answers when there are no turns left.
	always reply
}

// reply answers one request like a handler of Caddy, whose errors it may return.
type reply func(w http.ResponseWriter, r *http.Request) error

// asked is a request of the gateway.
type asked struct {
	url    url.URL
	method string
	uri    string
	header http.Header
	length int64
	body   string
}

// then adds turns.
func (u *upstream) then(turns ...reply) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.turns = append(u.turns, turns...)
}

// asked returns the requests so far.
func (u *upstream) asked() []asked {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]asked(nil), u.seen...)
}

// wants checks how many requests there were.
func (u *upstream) wants(n int) {
	u.t.Helper()
	if got := len(u.asked()); got != n {
		u.t.Errorf("the upstream was asked %d times, want %d", got, n)
	}
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	u.mu.Lock()
	u.seen = append(u.seen, asked{*r.URL, r.Method, r.RequestURI, r.Header.Clone(), r.ContentLength, string(body)})
	turn := u.always
	if len(u.turns) > 0 {
		turn, u.turns = u.turns[0], u.turns[1:]
	}
	u.mu.Unlock()
	if turn == nil {
		u.t.Errorf("a request that was not expected: %s", body)
		return caddyhttp.Error(http.StatusTeapot, errors.New("no turn is left"))
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	return turn(w, r)
}

// member returns a member of the body, nil when it is not there.
func (a asked) member(t *testing.T, name string) any {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return body[name]
}

// messages returns the messages of the body.
func (a asked) messages(t *testing.T) []map[string]any {
	t.Helper()
	var body struct {
		Messages []map[string]any `json:"messages"`
	}
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return body.Messages
}

// call is a tool call of the model.
type call struct{ id, name, arguments string }

// python calls our tool.
func python(id, code string) call {
	return call{id, "run_python", encode(map[string]string{"code": code})}
}

// turn is what a model says; it is streamed when the request wants that.
type turn struct {
	text   string
	calls  []call
	extra  map[string]any // further members of the message
	finish string         // default: what fits
	usage  string         // an object; "" for none
	hang   bool           // a stream stays open after its finish_reason
}

// says is a turn with text alone.
func says(text string) reply { return turn{text: text}.reply() }

// calls is a turn that calls tools.
func calls(list ...call) reply { return turn{calls: list}.reply() }

// runs is a turn that runs a program.
func runs(code string) reply { return calls(python("call_1", code)) }

// runsOnce runs a program in the turn that answers the user, if it has the tool.
func runsOnce(code string) reply {
	return func(w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"role":"tool"`)) {
			return says("done")(w, r)
		}
		if !bytes.Contains(body, []byte("run_python")) {
			return says("hello")(w, r)
		}
		return runs(code)(w, r)
	}
}

// echoes runs the program in the user's message and says what came out.
func echoes(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var in struct {
		Messages []struct {
			Role, Content string
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	if last := in.Messages[len(in.Messages)-1]; last.Role == "tool" {
		return says(last.Content)(w, r)
	}
	return runs(in.Messages[0].Content)(w, r)
}

func (t turn) reply() reply {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body struct {
			Stream bool `json:"stream"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return err
		}
		if !body.Stream {
			return document(http.StatusOK, t.whole())(w, r)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, chunk := range t.chunks() {
			if err := sendEvent(w, chunk); err != nil {
				return err
			}
		}
		if t.hang {
			<-r.Context().Done()
			return nil
		}
		return sendEvent(w, "[DONE]")
	}
}

func sendEvent(w http.ResponseWriter, data string) error {
	if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil {
		panic(http.ErrAbortHandler) // as reverse_proxy does
	}
	return http.NewResponseController(w).Flush()
}

func (t turn) reason() string {
	switch {
	case t.finish != "":
		return t.finish
	case len(t.calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (t turn) toolCalls() []any {
	var list []any
	for i, c := range t.calls {
		list = append(list, map[string]any{
			"index": i, "id": c.id, "type": "function",
			"function": map[string]any{"name": c.name, "arguments": c.arguments},
		})
	}
	return list
}

func (t turn) message() map[string]any {
	m := map[string]any{"role": "assistant", "content": nil}
	if t.text != "" {
		m["content"] = t.text
	}
	if len(t.calls) > 0 {
		m["tool_calls"] = t.toolCalls()
	}
	maps.Copy(m, t.extra)
	return m
}

func (t turn) whole() string {
	a := map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
		"choices": []any{map[string]any{"index": 0, "message": t.message(), "finish_reason": t.reason()}},
	}
	if t.usage != "" {
		a["usage"] = json.RawMessage(t.usage)
	}
	return encode(a)
}

func (t turn) chunks() []string {
	chunk := func(delta map[string]any, finish any) string {
		return encode(map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	list := []string{chunk(t.message(), nil), chunk(map[string]any{}, t.reason())}
	if t.usage != "" {
		list = append(list, `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":`+t.usage+`}`)
	}
	return list
}

// document is an answer in JSON with pairs of header fields.
func document(status int, body string, header ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, err := io.WriteString(w, body)
		return err
	}
}

// fails is an error object with a status.
func fails(status int, header ...string) reply {
	return document(status, fmt.Sprintf(`{"error":{"message":"status %d of the upstream","type":"server_error"}}`, status), header...)
}

// unreachable is what reverse_proxy returns without an upstream.
func unreachable(http.ResponseWriter, *http.Request) error {
	return caddyhttp.Error(http.StatusBadGateway, errors.New("dial tcp 10.1.2.3:80: connection refused"))
}

// broken is what reverse_proxy does when the upstream dies in its answer.
func broken(part string) reply {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, part)
		panic(http.ErrAbortHandler)
	}
}

// silent is an upstream that never answers: reverse_proxy returns when the
// request ends.
func silent(_ http.ResponseWriter, r *http.Request) error {
	<-r.Context().Done()
	if errors.Is(r.Context().Err(), context.DeadlineExceeded) {
		return caddyhttp.Error(http.StatusGatewayTimeout, r.Context().Err())
	}
	return nil
}

// after is a turn that takes a while.
func after(d time.Duration, next reply) reply {
	return func(w http.ResponseWriter, r *http.Request) error {
		select {
		case <-time.After(d):
			return next(w, r)
		case <-r.Context().Done():
			return silent(w, r)
		}
	}
}

// nothing is an end of the chain: no handler answers.
func nothing(_ http.ResponseWriter, r *http.Request) error {
	caddyhttp.SetVar(r.Context(), "unhandled", true)
	return nil
}
