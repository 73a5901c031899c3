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
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/caddytest/scriptedmodel"
)

// upstream is a server of a model that keeps what it was asked.
type upstream struct {
	*httptest.Server
	t *testing.T

	mu   sync.Mutex
	seen []asked
}

// asked is a request of the gateway.
type asked struct {
	method, path, proto string
	header              http.Header
	length              int64
	chunked             bool
	body                []byte
}

// newModel starts the scripted model.
func newModel(t *testing.T) *upstream {
	t.Helper()
	return newUpstream(t, new(scriptedmodel.Model))
}

func newUpstream(t *testing.T, model http.Handler) *upstream {
	t.Helper()
	u := &upstream{t: t}
	u.Server = httptest.NewUnstartedServer(u.recording(model))
	u.Config.Protocols = new(http.Protocols)
	u.Config.Protocols.SetHTTP1(true)
	u.Config.Protocols.SetUnencryptedHTTP2(true)
	u.Start()
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) recording(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the gateway gave the request up
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		u.mu.Lock()
		u.seen = append(u.seen, asked{
			r.Method, r.URL.RequestURI(), r.Proto, r.Header.Clone(), r.ContentLength, slices.Contains(r.TransferEncoding, "chunked"), body,
		})
		u.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// address is where reverse_proxy finds it.
func (u *upstream) address() string { return strings.TrimPrefix(u.URL, "http://") }

// proxy is the directive that leads to it.
func (u *upstream) proxy() string { return "reverse_proxy " + u.address() }

// asked returns the requests since the last call.
func (u *upstream) asked() []asked {
	u.mu.Lock()
	defer u.mu.Unlock()
	seen := u.seen
	u.seen = nil
	return seen
}

// member returns a member of the body as JSON, "" when it is not there.
func (a asked) member(t *testing.T, name string) string {
	t.Helper()
	var body map[string]json.RawMessage
	if err := json.Unmarshal(a.body, &body); err != nil {
		t.Fatalf("%v in %.300s", err, a.body)
	}
	return string(body[name])
}
