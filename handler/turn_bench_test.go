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
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// transportFunc is a transport in memory.
type transportFunc func(r *http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// instant is an E2B server in memory on which each program prints 42 at once.
func instant(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	switch {
	case r.URL.Path == "/execute":
		return answer(r, http.StatusOK, `{"type":"number_of_executions","execution_count":1}
{"type":"stdout","text":"42\n","timestamp":"2026-01-01T00:00:00Z"}
{"type":"end_of_execution"}
`), nil
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/sandboxes"):
		return answer(r, http.StatusCreated, `{"sandboxID":"box"}`), nil
	}
	return answer(r, http.StatusNoContent, ""), nil
}

// BenchmarkToolTurns shows what the gateway does itself for a request with the
// tool: the upstream and the sandbox are in memory and answer at once. What a
// further turn costs is an eighth of what nine cost more than one.
func BenchmarkToolTurns(b *testing.B) {
	for _, streamed := range []bool{false, true} {
		for _, turns := range []int{1, 9} {
			b.Run(fmt.Sprintf("stream=%t/turns=%d", streamed, turns), func(b *testing.B) { benchmarkToolTurns(b, turns, streamed) })
		}
	}
}

func benchmarkToolTurns(b *testing.B, turns int, streamed bool) {
	h := instantHandler(b)
	next := callsAtOnce(turns, streamed)
	body := ask(map[string]any{
		"stream": streamed, "metadata": inSession("s"),
		"messages": []any{map[string]any{"role": "user", "content": strings.Repeat("a", 1<<10)}},
	})
	b.ReportAllocs()
	for b.Loop() {
		w := newResponse()
		if err := h.ServeHTTP(w, request(context.Background(), w, body, "Authorization", "Bearer key"), next); err != nil {
			b.Fatal(err)
		}
		if !strings.Contains(w.text(), "42.") {
			b.Fatalf("the answer is %s", w.text())
		}
	}
}

// instantHandler is a handler whose sandboxes are instant.
func instantHandler(b *testing.B) *handler.Handler {
	client, err := e2b.New(e2b.Config{APIKey: "test", APIURL: "http://api.test", SandboxURL: "http://box.test", Transport: transportFunc(instant)})
	if err != nil {
		b.Fatal(err)
	}
	pool := session.NewPool(session.Config{Client: client, Secret: []byte("secret"), Fingerprint: "f", Limits: session.Limits{
		Idle: 15 * time.Minute, ExecTimeout: time.Minute, SandboxTimeout: 30 * time.Second, QueueTimeout: time.Minute, MaxPerIdentity: 10, Max: 1000,
	}})
	b.Cleanup(func() {
		if err := pool.Drain(context.Background(), false); err != nil {
			b.Error(err)
		}
	})
	return handler.New(handler.Config{
		Pool: pool, Logger: zap.NewNop(), ToolName: "run_python", MaxRounds: 16, RequestTimeout: 10 * time.Minute,
		Keepalive: 10 * time.Second, MaxOutput: 32 << 10, MaxBody: 64 << 20, MaxImages: 8 << 20,
	})
}

// callsAtOnce is a model in memory that runs code in as many turns and then
// says 42. It answers one request at a time.
func callsAtOnce(turns int, streamed bool) caddyhttp.HandlerFunc {
	written := func(t turn) string {
		t.usage = `{"prompt_tokens":20,"completion_tokens":10,"total_tokens":30}`
		if !streamed {
			return t.whole()
		}
		return "data: " + strings.Join(append(t.chunks(), "[DONE]"), "\n\ndata: ") + "\n\n"
	}
	call := written(turn{calls: []call{python("call_1", "values = [1, 2, 3]\nprint(sum(values) * 7)")}})
	text := written(turn{text: "42."})
	kind := "application/json"
	if streamed {
		kind = "text/event-stream"
	}
	seen := bytes.NewBuffer(make([]byte, 0, 64<<10))
	return func(w http.ResponseWriter, r *http.Request) error {
		seen.Reset()
		if _, err := seen.ReadFrom(r.Body); err != nil {
			return err
		}
		_ = r.Body.Close()
		w.Header().Set("Content-Type", kind)
		says := call
		if bytes.Count(seen.Bytes(), []byte(`"role":"tool"`)) >= turns {
			says = text
		}
		_, err := io.WriteString(w, says)
		return err
	}
}
