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

package local

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestServedOnAPortAsksForTheKey(t *testing.T) {
	s := newServer(t, Config{APIKey: "the-key"})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()

	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	stranger := &client{t: t, base: "http://" + l.Addr().String(), http: &http.Client{Transport: transport}}
	status, text := stranger.call(t.Context(), nil, "POST", "/sandboxes", map[string]any{"templateID": "x"})
	if status != http.StatusUnauthorized || !strings.Contains(text, `"code":401`) {
		t.Fatalf("without the key: %d %s", status, text)
	}
	c := &client{t: t, base: stranger.base, http: &http.Client{Transport: withKey{transport, "the-key"}}}
	b := c.create(nil)
	c.want(b, "print('over a port')", "over a port")
}

// withKey sends the API key as E2B's clients do.
type withKey struct {
	next http.RoundTripper
	key  string
}

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-API-Key", k.key)
	return k.next.RoundTrip(r)
}

// TestClientThatDoesNotReadHoldsNothing lets clients stop reading in the middle of
// an execution, on a connection and in process.
func TestClientThatDoesNotReadHoldsNothing(t *testing.T) {
	s := newServer(t, Config{APIKey: "the-key"})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for name, c := range map[string]*client{
		"on a connection": {t: t, base: "http://" + l.Addr().String(), http: &http.Client{Transport: withKey{transport, "the-key"}}},
		"in process":      {t: t, base: "http://local", http: &http.Client{Transport: withKey{s.Transport(), "the-key"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := c.with(t)
			b := c.create(nil)
			res := c.open(t.Context(), b, "POST", "/execute", map[string]any{"code": "while True: print('x' * 10000)"})
			defer res.Body.Close()
			if _, err := res.Body.Read(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			awaitFull(t, s.find(b.ID).driver)
			within(t, 3*lastWordsTimeout, "removing its sandbox", func() { c.remove(b) })
			within(t, 3*lastWordsTimeout, "the end of the answer", func() {
				if _, err := io.Copy(io.Discard, res.Body); err == nil {
					t.Error("the answer has an ordinary end")
				}
			})
		})
	}
	b := newClient(t, s)
	b.http = &http.Client{Transport: withKey{s.Transport(), "the-key"}}
	res := b.open(t.Context(), b.create(nil), "POST", "/execute", map[string]any{"code": "while True: print('x' * 10000)"})
	defer res.Body.Close()
	within(t, 4*lastWordsTimeout, "closing the server", func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	stop()
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// awaitFull waits until a run's events are no longer taken.
func awaitFull(t *testing.T, d *driver) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		d.mu.Lock()
		for _, r := range d.runs {
			if len(r.events) == cap(r.events) {
				d.mu.Unlock()
				return
			}
		}
		d.mu.Unlock()
	}
	t.Fatal("somebody reads everything")
}

func TestServeRefusesToRunWithoutAKey(t *testing.T) {
	s := newServer(t, Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), l); err == nil || !strings.Contains(err.Error(), "API key") {
		t.Fatalf("Serve without a key: %v", err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("the listener is still open")
	}
}
