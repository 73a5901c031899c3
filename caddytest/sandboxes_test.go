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
	"context"
	"encoding/json"
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

// served stands for E2B: the embedded sandbox on a port, with a key. It counts
// what is asked of it.
var served e2bServer

type e2bServer struct {
	start sync.Once
	err   error
	url   string
	stop  func() error

	mu      sync.Mutex
	created int
}

// open starts the server with the first test that needs it.
func (s *e2bServer) open(t *testing.T) string {
	t.Helper()
	s.start.Do(func() { s.err = s.listen() })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.url
}

func (s *e2bServer) listen() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sandboxes, err := local.New(ctx, local.Config{APIKey: sandboxKey})
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, sandboxes.Close())
	}
	server := &http.Server{Handler: s.count(sandboxes), ReadHeaderTimeout: patience}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	s.url = "http://" + l.Addr().String()
	s.stop = func() error {
		err := errors.Join(server.Close(), sandboxes.Close())
		<-done // it says that it was closed
		return err
	}
	return nil
}

// close ends the server once those who used it have given their sandboxes back.
func (s *e2bServer) close() error {
	if s.stop == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	empty := until(ctx, func() bool {
		var n int
		n, err = s.alive(ctx)
		return n == 0 || err != nil
	})
	if !empty {
		err = errors.New("sandboxes are left at the server")
	}
	return errors.Join(err, s.stop())
}

func (s *e2bServer) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/sandboxes") {
			s.mu.Lock()
			s.created++
			s.mu.Unlock()
		}
		next.ServeHTTP(w, r)
	})
}

// creations is how many sandboxes were asked for so far.
func (s *e2bServer) creations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.created
}

// alive is how many sandboxes there are.
func (s *e2bServer) alive(ctx context.Context) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v2/sandboxes", http.NoBody)
	if err != nil {
		return 0, err
	}
	r.Header.Set("X-Api-Key", sandboxKey)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var list []any
	err = json.NewDecoder(resp.Body).Decode(&list)
	return len(list), err
}

// engine is a source of sandboxes in a Caddyfile.
type engine struct {
	name  string
	block func(t *testing.T) string
}

var (
	embedded = engine{"local", func(*testing.T) string { return "sandbox local {\n warm 0\n }" }}
	remote   = engine{"e2b", func(t *testing.T) string {
		t.Helper()
		url := served.open(t)
		return "sandbox e2b {\n api_key " + sandboxKey + "\n api_url " + url + "\n sandbox_url " + url + "\n }"
	}}
	engines = []engine{embedded, remote}
)

// forEngines runs a test with each source of sandboxes.
func forEngines(t *testing.T, test func(t *testing.T, e engine)) {
	t.Helper()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) { test(t, e) })
	}
}

// interpreter is the directive with further options.
func (e engine) interpreter(t *testing.T, options ...string) string {
	t.Helper()
	return "code_interpreter {\n" + e.block(t) + "\n" + strings.Join(options, "\n") + "\n}"
}
