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

package codeinterpreter

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// fakeE2B is a server of sandboxes in memory, in which every program prints ok.
type fakeE2B struct {
	*httptest.Server
	created chan string // ids in order of creation
	deleted chan string // ids in order of deletion

	// output is what programs print, in lines of the protocol, unless answers
	// says it for each. Set both before the first request.
	output  []string
	answers func(code string) []string
	pauses  bool // whether it can pause

	mu      sync.Mutex
	live    map[string]bool
	marks   map[string]map[string]string // metadata
	refusal int                          // answered to creations instead of a sandbox
}

// refuse has every creation fail with a status.
func (f *fakeE2B) refuse(status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusal = status
}

func newFakeE2B(t *testing.T) *fakeE2B {
	t.Helper()
	f := &fakeE2B{created: make(chan string, 100), deleted: make(chan string, 100), live: make(map[string]bool), marks: make(map[string]map[string]string)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sandboxes", f.create)
	mux.HandleFunc("POST /sandboxes/{id}/timeout", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("DELETE /sandboxes/{id}", f.delete)
	mux.HandleFunc("GET /v2/sandboxes", f.list)
	mux.HandleFunc("POST /sandboxes/{id}/pause", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(map[bool]int{true: http.StatusNoContent, false: http.StatusNotImplemented}[f.pauses])
	})
	mux.HandleFunc("POST /sandboxes/{id}/connect", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"sandboxID": %q}`, r.PathValue("id"))
	})
	mux.HandleFunc("POST /execute", f.execute)
	f.output = []string{`{"type": "stdout", "text": "ok\n", "timestamp": "0"}`}
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeE2B) create(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Metadata map[string]string `json:"metadata"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refusal != 0 {
		w.WriteHeader(f.refusal)
		return
	}
	id := fmt.Sprintf("sandbox%d", len(f.live))
	f.live[id] = true
	f.marks[id] = request.Metadata
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"sandboxID": %q}`, id)
	f.created <- id
}

// list shows only what "doctor" has made: sessions are not found again here.
func (f *fakeE2B) list(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []map[string]any{}
	for id, mark := range f.marks {
		if f.live[id] && mark["kind"] == "doctor" {
			list = append(list, map[string]any{"sandboxID": id, "metadata": mark, "state": "running"})
		}
	}
	_ = json.NewEncoder(w).Encode(list)
}

func (f *fakeE2B) execute(w http.ResponseWriter, r *http.Request) {
	var program struct {
		Code string `json:"code"`
	}
	if err := json.NewDecoder(r.Body).Decode(&program); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	output := f.output
	if f.answers != nil {
		output = f.answers(program.Code)
	}
	fmt.Fprintln(w, `{"type": "number_of_executions", "execution_count": 1}`)
	for _, line := range output {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w, `{"type": "end_of_execution"}`)
}

func (f *fakeE2B) delete(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := r.PathValue("id")
	if !f.live[id] {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	f.live[id] = false
	w.WriteHeader(http.StatusNoContent)
	f.deleted <- id
}

// config returns the JSON of a handler that uses the server, with options of
// the sandbox and of sessions.
func (f *fakeE2B) config(t *testing.T, sandbox map[string]any, sessions map[string]any) string {
	t.Helper()
	e2b := map[string]any{"api_key": "e2b_test", "api_url": f.URL, "sandbox_url": f.URL}
	maps.Copy(e2b, sandbox)
	config, err := json.Marshal(map[string]any{"sandbox": map[string]any{"e2b": e2b}, "sessions": sessions})
	if err != nil {
		t.Fatal(err)
	}
	return string(config)
}

// chat returns a request for the tool.
func chat(session string) *http.Request {
	body := `{"messages": [{"role": "user", "content": "?"}], "tools": [{"type": "code_interpreter"}]}`
	if session != "" {
		body = body[:1] + fmt.Sprintf(`"metadata": {"session_id": %q}, `, session) + body[1:]
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer sk-alice")
	return r
}

// upstream is a model that runs one program and answers with its result.
type upstream struct {
	// before, if set, is called when the program has been asked for in the
	// first turn, and in the second one with its number.
	before func(turn int)
	turns  int
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) error {
	u.turns++
	if u.before != nil {
		u.before(u.turns)
	}
	var request struct {
		Messages []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		return err
	}
	message := map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
		"id": "call_1", "type": "function",
		"function": map[string]any{"name": "run_python", "arguments": `{"code": "print('ok')"}`},
	}}}
	reason := "tool_calls"
	if last := request.Messages[len(request.Messages)-1]; last.Role == "tool" {
		message, reason = map[string]any{"role": "assistant", "content": fmt.Sprint("result: ", last.Content)}, "stop"
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": reason}},
	})
}
