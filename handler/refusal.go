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

package handler

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// refusal is an answer of our own, in the form of the OpenAI API.
type refusal struct {
	status     int
	message    string
	param      string // the field that is at fault, "" for none
	retryAfter time.Duration
}

func refuse(status int, param, format string, args ...any) *refusal {
	return &refusal{status: status, param: param, message: fmt.Sprintf(format, args...)}
}

// object returns the error as clients read it.
func (e *refusal) object() []byte {
	kind, code := "invalid_request_error", any(nil)
	switch {
	case e.status == http.StatusTooManyRequests:
		kind, code = "rate_limit_error", "sessions_busy"
	case e.status == http.StatusUnauthorized:
		kind = "authentication_error"
	case e.status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	var param any
	if e.param != "" {
		param = e.param
	}
	// Strings, numbers and nil can always be encoded.
	v, _ := json.Marshal(map[string]any{"error": map[string]any{
		"message": e.message, "type": kind, "param": param, "code": code,
	}})
	return v
}

// answer answers with the error.
func (e *refusal) answer(w http.ResponseWriter) error { return e.write(w, e.object()) }

// write answers with the error as a body that says more than the error alone.
func (e *refusal) write(w http.ResponseWriter, body []byte) error {
	if e.retryAfter > 0 {
		seconds := int((e.retryAfter + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	return writeJSON(w, e.status, body)
}

// writeJSON answers with a JSON body. That the client is gone is no error of
// ours: Caddy notices it too.
func writeJSON(w http.ResponseWriter, status int, body []byte) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err := w.Write(body)
	return err
}
