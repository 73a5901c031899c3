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
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxBody is how many bytes of a request the model reads.
const maxBody = 256 << 20

// Model is the upstream. The zero value is ready to use. A Model must not be
// changed while it serves; it is safe for concurrent use.
type Model struct {
	// APIKey is the key that requests must carry as a bearer token. Without
	// it every request is welcome.
	APIKey string

	// Name is the model that /v1/models lists; default "scripted". Requests
	// may name any model.
	Name string

	// Delay is the time between two chunks of a stream; default none.
	Delay time.Duration
}

// ServeHTTP answers POST .../chat/completions and GET .../models.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Request-Id", "req_"+strings.ToLower(rand.Text()))
	if !m.authorized(r) {
		code := "invalid_api_key"
		(&apiError{
			status: http.StatusUnauthorized, Message: "Incorrect API key provided.",
			Type: "invalid_request_error", Code: &code,
		}).write(w)
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions") && r.Method == http.MethodPost:
		m.chat(w, r)
	case strings.HasSuffix(r.URL.Path, "/models") && r.Method == http.MethodGet:
		m.models(w)
	default:
		e := invalid("", "Unknown request URL: %s %s.", r.Method, r.URL.Path)
		e.status = http.StatusNotFound
		e.write(w)
	}
}

func (m *Model) authorized(r *http.Request) bool {
	if m.APIKey == "" {
		return true
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(key), []byte(m.APIKey)) == 1
}

func (m *Model) models(w http.ResponseWriter) {
	name := m.Name
	if name == "" {
		name = "scripted"
	}
	writeJSON(w, map[string]any{
		"object": "list",
		"data":   []any{map[string]any{"id": name, "object": "model", "created": 1767225600, "owned_by": "scriptedmodel"}},
	})
}

func (m *Model) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		e := invalid("", "reading the request: %v", err)
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			e.status = http.StatusRequestEntityTooLarge
		}
		e.write(w)
		return
	}
	req, refusal := parse(body)
	if refusal != nil {
		refusal.write(w)
		return
	}
	a := answerTo(req)
	if a.faults.status != 0 {
		a.faults.write(w)
		return
	}
	if req.Stream {
		m.stream(r.Context(), w, req, a, usageOf(len(body), a))
		return
	}
	answerJSON(r.Context(), w, req, a, usageOf(len(body), a))
}

// write sends the answer of [status ...], [fail] or [html ...].
func (f faults) write(w http.ResponseWriter) {
	if f.html {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(f.status)
		_, _ = fmt.Fprintf(w, "<html><head><title>%d %s</title></head></html>\n", f.status, http.StatusText(f.status))
		return
	}
	scripted(f.status).write(w)
}

// scripted is the error that a message asked for.
func scripted(status int) *apiError {
	e := &apiError{status: status, Message: "The script asked for this error.", Type: "server_error"}
	if status < http.StatusInternalServerError {
		e.Type = "invalid_request_error"
	}
	return e
}

// answerJSON sends an answer in one piece.
func answerJSON(ctx context.Context, w http.ResponseWriter, req *request, a answer, u usage) {
	if !wait(ctx, a.faults.silent) {
		return
	}
	if a.faults.failStream {
		scripted(http.StatusInternalServerError).write(w)
		return
	}
	reply := replyMessage{Role: "assistant"}
	if a.text != "" || len(a.calls) == 0 {
		reply.Content = &a.text
	}
	for _, c := range a.calls {
		reply.ToolCalls = append(reply.ToolCalls, toolCall{
			ID: c.id, Type: "function", Function: &functionCall{Name: c.name, Arguments: c.arguments},
		})
	}
	out := completion{
		ID: newID(), Object: "chat.completion", Created: time.Now().Unix(), Model: req.Model,
		Choices: []choice{{Message: reply, FinishReason: a.finish}}, Usage: u,
	}
	if a.faults.cut {
		cut(w, encode(out))
	}
	writeJSON(w, out)
}

// cut announces the whole of body, sends half of it and breaks the connection.
func cut(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	_, _ = io.WriteString(w, body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, encode(v)) // the client may be gone; there is no one else to tell
}

func newID() string {
	return "chatcmpl-" + rand.Text()
}

// wait waits for d, or reports false when ctx ends before.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
