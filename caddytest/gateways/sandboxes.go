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

package gateways

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/local"
)

// sandboxKey is the key of the server that stands for E2B.
const sandboxKey = "e2b_for_the_tests"

// sandboxes is the embedded sandbox on a port. It counts what is asked of it.
type sandboxes struct {
	url string

	mu               sync.Mutex
	created, deleted int
}

func serveSandboxes(t *testing.T) *sandboxes {
	t.Helper()
	server, err := local.New(t.Context(), local.Config{APIKey: sandboxKey})
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(errors.Join(err, server.Close()))
	}
	s := &sandboxes{url: "http://" + l.Addr().String()}
	listener := &http.Server{Handler: s.counting(server), ReadHeaderTimeout: patience}
	done := make(chan error, 1)
	go func() { done <- listener.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(listener.Close(), server.Close()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return s
}

func (s *sandboxes) counting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &answer{ResponseWriter: w}
		next.ServeHTTP(answer, r)
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/sandboxes") && answer.status == http.StatusCreated:
			s.created++
		case r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/sandboxes/"):
			s.deleted++
		}
	})
}

// answer keeps the status.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the server flush.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (s *sandboxes) calls() (created, deleted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.created, s.deleted
}
