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

package e2b

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "e2b_0123456789abcdef"

// roundTripFunc is a transport in memory.
type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// reply is an answer of a fakeServer; without a status the server is not there.
type reply struct {
	status int
	body   string
	header map[string]string
}

// seenRequest is a request as a fakeServer saw it.
type seenRequest struct {
	call   string // method, host and path
	query  string
	header http.Header
	body   string
}

// fakeServer answers calls from a table in memory. Each call takes the next
// reply of its list and stays at the last one; a call without replies is a 404.
type fakeServer struct {
	mu      sync.Mutex
	replies map[string][]reply // "POST /sandboxes" or "POST host/path"
	seen    []seenRequest
}

func (s *fakeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, seenRequest{r.Method + " " + r.URL.Host + r.URL.Path, r.URL.RawQuery, r.Header.Clone(), string(body)})
	answer := s.next(r.Method+" "+r.URL.Host+r.URL.Path, r.Method+" "+r.URL.Path)
	if answer.status == 0 {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	recorder := httptest.NewRecorder()
	for k, v := range answer.header {
		recorder.Header().Set(k, v)
	}
	recorder.WriteHeader(answer.status)
	_, _ = recorder.WriteString(answer.body)
	return recorder.Result(), nil
}

func (s *fakeServer) next(keys ...string) reply {
	for _, key := range keys {
		list := s.replies[key]
		if len(list) > 1 {
			s.replies[key] = list[1:]
		}
		if len(list) > 0 {
			return list[0]
		}
	}
	return reply{status: http.StatusNotFound, body: `{"code":404,"message":"no such thing"}`}
}

// calls returns the calls seen, without hosts.
func (s *fakeServer) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := make([]string, 0, len(s.seen))
	for _, r := range s.seen {
		method, rest, _ := strings.Cut(r.call, " ")
		calls = append(calls, method+" "+rest[strings.IndexByte(rest, '/'):])
	}
	return calls
}

func (s *fakeServer) last() seenRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[len(s.seen)-1]
}

// newTestClient returns a client over a transport; change may alter its
// configuration.
func newTestClient(t *testing.T, rt http.RoundTripper, change func(*Config)) *Client {
	t.Helper()
	config := Config{APIKey: testKey, APIURL: "http://control.test", SandboxURL: "http://data.test", Transport: rt}
	if change != nil {
		change(&config)
	}
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// newTestSandbox returns a sandbox as a creation makes it.
func newTestSandbox(id, domain string) *Sandbox {
	sb := &Sandbox{ID: id}
	sb.access.Store(&access{domain: domain, token: "envd-secret", trafficToken: "traffic-secret"})
	return sb
}

// wantKind fails the test unless err is an Error of a kind.
func wantKind(t *testing.T, err error, want Kind) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("error is %T (%v), want *Error of kind %q", err, err, want)
	}
	if e.Kind != want {
		t.Fatalf("kind is %q (%v), want %q", e.Kind, err, want)
	}
	return e
}

const minute = time.Minute
