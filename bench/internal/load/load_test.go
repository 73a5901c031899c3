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

package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/upstream"
)

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func dial(t *testing.T, addr string, requests ...*Request) *Client {
	t.Helper()
	c, err := Dial(t.Context(), addr, requests)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestBodiesHaveTheirSizeAndParse(t *testing.T) {
	for _, tt := range []struct {
		content Content
		size    int
	}{{Text, 1 << 10}, {Text, 100 << 10}, {Images, 1 << 20}, {Code, 1 << 20}, {Fill, 100 << 10}} {
		c := Chat{Content: tt.content, Size: tt.size, Fill: 'Q'}
		body := c.Body()
		if !json.Valid(body) || !bytes.Equal(body, c.Body()) {
			t.Errorf("%v: no JSON, or not the same twice", tt)
		}
		if ratio := float64(len(body)) / float64(tt.size); ratio < 0.9 || ratio > 1.25 {
			t.Errorf("%v: the body has %d bytes", tt, len(body))
		}
	}
}

func TestRequestsArriveAsTheyWereMade(t *testing.T) {
	s := upstream.New()
	addr := serve(t, s)
	requests := []*Request{
		CheckedRequest(Chat{Content: Text, Size: 1 << 10}),
		CheckedRequest(Chat{Content: Images, Size: 1 << 20, Stream: true, Script: upstream.Script{Chunks: 3}}),
		ChatRequest(Chat{Content: Fill, Fill: 'Q', Size: 1 << 20, Script: upstream.Script{Early: true}}, "key"),
		ChatRequest(Chat{Content: Text, Size: 1 << 10, Tool: true, Session: "a"}, "key"),
		NewRequest(http.MethodGet, "/v1/models", nil, nil),
	}
	r := dial(t, addr, requests...).Run(t.Context(), 10*time.Millisecond)
	if r.Err != nil || r.Failed != 0 || r.Requests() < len(requests) || len(r.First) != r.Requests() {
		t.Errorf("%d requests, %d failed: %v", r.Requests(), r.Failed, r.Err)
	}
	if s.Wrong.Load() != 0 {
		t.Errorf("%d bodies were wrong", s.Wrong.Load())
	}
}

func TestHeadersCanBeAdded(t *testing.T) {
	got := ""
	addr := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Header.Get("X-Added") + " " + r.Header.Get("User-Agent") + " " + string(body)
	}))
	r := NewRequest(http.MethodPost, "/", []byte("body"), nil).With(http.Header{"X-Added": {"yes"}})
	if result := dial(t, addr, r).Once(t.Context()); result.Err != nil || got != "yes bench body" {
		t.Errorf("the server saw %q: %v", got, result.Err)
	}
}

func TestFailuresAreCountedAndTheLoadGoesOn(t *testing.T) {
	calls := 0
	addr := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			http.Error(w, "no luck", http.StatusBadGateway)
		}
	}))
	c := dial(t, addr, NewRequest(http.MethodGet, "/", nil, nil))
	r := c.Once(t.Context())
	r.Add(c.Once(t.Context()))
	if r.Failed != 1 || r.Requests() != 1 || r.Err == nil || !strings.Contains(r.Err.Error(), "no luck") {
		t.Errorf("%d failed, %d answered: %v", r.Failed, r.Requests(), r.Err)
	}
}

func TestHeldStreamsStayOpenUntilTheyAreReleased(t *testing.T) {
	s := upstream.New()
	script := upstream.Script{Chunks: 1 << 20, Pause: time.Millisecond}
	request := ChatRequest(Chat{Content: Text, Size: 1 << 10, Stream: true, Script: script}, "key")
	h, err := dial(t, serve(t, s), request, request, request).Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if open := s.Open.Load(); open != 3 {
		t.Errorf("%d streams are open, want 3", open)
	}
	h.Release() // closing the server waits for the ends of its handlers
}

func TestHoldFailsWhenAnAnswerDoesNotBegin(t *testing.T) {
	addr := serve(t, http.NotFoundHandler())
	if _, err := dial(t, addr, NewRequest(http.MethodGet, "/", nil, nil)).Hold(t.Context()); err == nil {
		t.Error("a 404 was held")
	}
}

func TestHoldGivesUpOnAnswersThatDoNotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{}
		defer c.Close()
		for range 2 {
			near, far := net.Pipe()
			defer far.Close()
			go io.Copy(io.Discard, far) // ends with the test
			c.conns = append(c.conns, &conn{net: near, in: bufio.NewReader(near), request: NewRequest(http.MethodGet, "/", nil, nil)})
		}
		if _, err := c.Hold(t.Context()); err == nil {
			t.Error("there is no answer to hold")
		}
	})
}
