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
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// fixture is a handler between a scripted upstream and sandboxes in memory, in
// a bubble: its time stands still unless everything waits.
type fixture struct {
	t         *testing.T
	h         *handler.Handler
	sandboxes *sandboxes
	upstream  *upstream
}

// inBubble runs a test with the product's defaults, edited.
func inBubble(t *testing.T, edit func(*handler.Config, *session.Limits), test func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		handler.Forget()
		f := &fixture{t: t, sandboxes: newSandboxes(), upstream: &upstream{t: t}}
		client, err := e2b.New(e2b.Config{
			APIKey: "test", APIURL: "http://api.test", SandboxURL: "http://box.test", Transport: f.sandboxes,
		})
		if err != nil {
			t.Fatal(err)
		}
		limits := session.Limits{
			Idle: 15 * time.Minute, ExecTimeout: time.Minute, SandboxTimeout: 30 * time.Second, QueueTimeout: time.Minute,
			MaxPerIdentity: 10, Max: 1000,
		}
		config := handler.Config{
			Logger: zap.NewNop(), ToolName: "run_python", MaxRounds: 16, RequestTimeout: 10 * time.Minute,
			Keepalive: 10 * time.Second, MaxOutput: 32 << 10, MaxBody: 64 << 20, MaxImages: 8 << 20, Show: true,
		}
		if edit != nil {
			edit(&config, &limits)
		}
		config.Pool = session.NewPool(session.Config{Client: client, Limits: limits, Secret: []byte("secret"), Fingerprint: "f"})
		f.h = handler.New(config)
		test(f)
		drain(t, config.Pool)
		if alive, _ := f.sandboxes.count(); alive != 0 {
			t.Errorf("%d sandboxes are left", alive)
		}
	})
}

func drain(t *testing.T, pool *session.Pool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if err := pool.Drain(ctx, false); err != nil {
		t.Errorf("drain: %v", err)
	}
}

// ask is a chat request with the tool. Fields override its members; a nil one
// removes it.
func ask(fields map[string]any) string {
	body := map[string]any{
		"model":    "m",
		"messages": []any{map[string]any{"role": "user", "content": "?"}},
		"tools":    []any{map[string]any{"type": "code_interpreter"}},
	}
	for name, value := range fields {
		if value == nil {
			delete(body, name)
		} else {
			body[name] = value
		}
	}
	return encode(body)
}

// inSession is the field that names a session.
func inSession(id string) map[string]any { return map[string]any{"session_id": id} }

// count counts a text in another.
func count(s, text string) int { return strings.Count(s, text) }

func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// request is a chat request of one client, as Caddy hands it to a handler.
func request(ctx context.Context, w http.ResponseWriter, body string, header ...string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions?q=1", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{})
}

// post sends a request with pairs of header fields and returns the answer.
func (f *fixture) post(body string, header ...string) *response {
	f.t.Helper()
	w := newResponse()
	f.serve(w, request(context.Background(), w, body, header...))
	return w
}

func (f *fixture) serve(w *response, r *http.Request) {
	f.t.Helper()
	w.err = f.h.ServeHTTP(w, r, f.upstream)
}

// stuck has a client send a request and read no further than a text of the
// answer. meanwhile is called when the gateway waits for it.
func stuck(f *fixture, at, body string, meanwhile func(), header ...string) {
	w := newResponse()
	w.stuckAt = at
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.serve(w, request(context.Background(), w, body, header...))
	}()
	defer func() {
		close(w.reads)
		<-done
	}()
	synctest.Wait()
	meanwhile()
}

// response is what a client gets, with the time of each write.
type response struct {
	header http.Header
	status int
	err    error // what the handler returned
	start  time.Time

	mu     sync.Mutex
	body   bytes.Buffer
	writes []written
	gone   bool // writes fail

	stuckAt string        // the client reads no further than a write with this text; "" for none
	reads   chan struct{} // closed when it does again
}

type written struct {
	after time.Duration
	text  string
}

func newResponse() *response {
	return &response{header: http.Header{}, start: time.Now(), reads: make(chan struct{})}
}

var errGone = errors.New("connection reset by peer")

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *response) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.WriteHeader(http.StatusOK)
	if w.stuckAt != "" && bytes.Contains(p, []byte(w.stuckAt)) {
		<-w.reads
	}
	if w.gone {
		return 0, errGone
	}
	w.writes = append(w.writes, written{time.Since(w.start), string(p)})
	return w.body.Write(p)
}

func (w *response) FlushError() error { return nil }

func (w *response) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.body.String()
}

// message is what a test looks at in an answer, in one piece or streamed.
type message struct {
	Content   string
	Finish    string
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	Executed []struct {
		Index  int     `json:"index"`
		Output *string `json:"output"`
	}
	Failure map[string]any // the error object
}

type wireMessage struct {
	Content   string          `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
	Executed  json.RawMessage `json:"executed_tools"`
}

type wireAnswer struct {
	Error   map[string]any `json:"error"`
	Choices []struct {
		Message wireMessage `json:"message"`
		Delta   wireMessage `json:"delta"`
		Finish  *string     `json:"finish_reason"`
	} `json:"choices"`
}

// read returns the message of the answer. Of a stream it checks what holds for
// each: one finish_reason, and [DONE] at the end.
func (w *response) read(t *testing.T) message {
	t.Helper()
	var m message
	if !strings.HasPrefix(w.header.Get("Content-Type"), "text/event-stream") {
		m.add(t, w.text())
		return m
	}
	done, finishes := false, 0
	for line := range strings.Lines(w.text()) {
		line = strings.TrimSuffix(line, "\n")
		data, isData := strings.CutPrefix(line, "data: ")
		switch {
		case line == "", strings.HasPrefix(line, ":"):
		case !isData:
			t.Errorf("a line that is neither data nor a comment: %q", line)
		case done:
			t.Errorf("after [DONE]: %q", data)
		case data == "[DONE]":
			done = true
		default:
			finishes += m.add(t, data)
		}
	}
	if !done || m.Failure == nil && finishes != 1 {
		t.Errorf("done %v, %d times a finish_reason, in the stream\n%s", done, finishes, w.text())
	}
	return m
}

func (m *message) add(t *testing.T, data string) (finishes int) {
	t.Helper()
	var a wireAnswer
	if err := json.Unmarshal([]byte(data), &a); err != nil {
		t.Fatalf("%v in %q", err, data)
	}
	if a.Error != nil {
		m.Failure = a.Error
	}
	for _, c := range a.Choices {
		m.Content += c.Message.Content + c.Delta.Content
		if c.Finish != nil {
			m.Finish = *c.Finish
			finishes++
		}
		for _, raw := range []json.RawMessage{c.Message.ToolCalls, c.Delta.ToolCalls} {
			if raw != nil && json.Unmarshal(raw, &m.ToolCalls) != nil {
				t.Errorf("tool calls %s", raw)
			}
		}
		for _, raw := range []json.RawMessage{c.Message.Executed, c.Delta.Executed} {
			if raw != nil && json.Unmarshal(raw, &m.Executed) != nil {
				t.Errorf("executed tools %s", raw)
			}
		}
	}
	return finishes
}

// says checks for an answer with status 200, a finish_reason and a text.
func (w *response) says(t *testing.T, finish, content string) message {
	t.Helper()
	if w.err != nil || w.status != http.StatusOK {
		t.Fatalf("status %d, error %v: %s", w.status, w.err, w.text())
	}
	m := w.read(t)
	if m.Finish != finish || m.Content != content || m.Failure != nil {
		t.Errorf("the answer is %q with finish %q and error %v, want %q with %q\n%s", m.Content, m.Finish, m.Failure, content, finish, w.text())
	}
	return m
}

// refuses checks for an error object with a status, of which the message or
// param contains a text.
func (w *response) refuses(t *testing.T, status int, text string) {
	t.Helper()
	if w.err != nil || w.status != status {
		t.Fatalf("status %d, error %v, want %d: %s", w.status, w.err, status, w.text())
	}
	m := w.read(t)
	if !strings.Contains(fmt.Sprint(m.Failure), text) {
		t.Errorf("the error is %v, want %q in it", m.Failure, text)
	}
}

var _ io.Writer = (*response)(nil)
