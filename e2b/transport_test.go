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
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// interpreter is a server that runs every execution at once.
func interpreter(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, startLine+outLine)
	w.(http.Flusher).Flush()
	_, _ = io.WriteString(w, endLine)
}

// newServer starts a server on a port and returns it with a client whose own
// transport speaks to it on both planes.
func newServer(t *testing.T, h http.HandlerFunc, start func(*httptest.Server)) (*httptest.Server, *Client) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that end early are part of the tests
	start(server)
	t.Cleanup(server.Close)
	c := newTestClient(t, nil, func(config *Config) { config.APIURL, config.SandboxURL = server.URL, server.URL })
	if c.own == nil {
		t.Fatal("the client has no transport of its own")
	}
	if server.TLS != nil {
		c.own.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		c.own.TLSClientConfig.NextProtos = nil
	}
	return server, c
}

func http2(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }

func TestConnectionsAreReused(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){"HTTP/1.1": (*httptest.Server).Start, "HTTP/2.0": http2} {
		t.Run(name, func(t *testing.T) {
			var connections atomic.Int32
			var proto atomic.Value
			_, c := newServer(t, func(w http.ResponseWriter, r *http.Request) {
				proto.Store(r.Proto)
				interpreter(w, r)
			}, func(s *httptest.Server) {
				s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
					if state == http.StateNew {
						connections.Add(1)
					}
				}
				start(s)
			})
			for range 20 {
				if _, err := execute(t.Context(), c, Execution{Code: "1"}); err != nil {
					t.Fatal(err)
				}
			}
			if proto.Load() != name || connections.Load() != 1 {
				t.Errorf("%d connections of %v, want one of %s", connections.Load(), proto.Load(), name)
			}
		})
	}
}

func TestManyExecutionsAtOnce(t *testing.T) {
	_, c := newServer(t, interpreter, http2)
	sb := newTestSandbox("sb1", "")
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			events := 0
			err := c.Execute(t.Context(), sb, Execution{Code: "1", Timeout: time.Minute}, func(Event) { events++ })
			if err != nil || events != 3 {
				t.Errorf("%d events, error %v", events, err)
			}
		})
	}
	wg.Wait()
}

// The server interrupts the code when the connection breaks: it must see that.
func TestAServerSeesAnAbandonedExecution(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){"HTTP/1.1": (*httptest.Server).Start, "HTTP/2.0": http2} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan struct{})
			_, c := newServer(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, startLine)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				close(seen)
			}, start)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := c.Execute(ctx, newTestSandbox("sb1", ""), Execution{Code: "1"}, func(Event) { cancel() })
			if wantKind(t, err, Interrupted); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			<-seen
		})
	}
}

func TestRedirectsAreFollowedOnNeitherPlane(t *testing.T) {
	var elsewhere atomic.Int32
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer target.Close()
	_, c := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.URL, http.StatusTemporaryRedirect)
	}, (*httptest.Server).Start)
	_, err := execute(t.Context(), c, Execution{Code: "1"})
	wantKind(t, err, BadAnswer)
	_, err = c.Create(t.Context(), minute, nil)
	wantKind(t, err, BadAnswer)
	_, err = c.List(t.Context(), nil)
	wantKind(t, err, BadAnswer)
	wantKind(t, c.Delete(t.Context(), "sb1"), BadAnswer)
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

func TestHeadersWithoutEndAreGivenUp(t *testing.T) {
	_, c := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("a", 2*maxHeader))
		_, _ = io.WriteString(w, startLine+endLine)
	}, (*httptest.Server).Start)
	_, err := execute(t.Context(), c, Execution{Code: "1"})
	wantKind(t, err, Interrupted)
}

// listen accepts connections and gives each to a function.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

// Whether the code can have started when a connection fails: the client must
// not say no when the answer is maybe.
func TestWhetherCodeCanHaveStarted(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	noTLS := listen(t, func(c net.Conn) { _, _ = io.WriteString(c, "this is no TLS at all\n") })
	hangUp := listen(t, func(net.Conn) {})
	dropped := listen(t, func(c net.Conn) { _, _ = http.ReadRequest(bufio.NewReader(c)) })
	cut := listen(t, func(c net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(c))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"typ")
	})
	untrusted := httptest.NewUnstartedServer(http.HandlerFunc(interpreter))
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0) // the failed handshake is meant
	untrusted.StartTLS()
	defer untrusted.Close()
	tests := []struct {
		name, url string
		want      Kind
	}{
		{"nothing listens", "http://" + closed.Addr().String(), NotReady},
		{"no TLS", "https://" + noTLS, NotReady},
		{"the TLS handshake is cut", "https://" + hangUp, NotReady},
		{"a certificate of nobody", untrusted.URL, NotReady},
		{"cut before the answer", "http://" + dropped, Interrupted},
		{"cut in the answer", "http://" + cut, Interrupted},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newTestClient(t, nil, func(config *Config) { config.SandboxURL = test.url })
			_, err := execute(t.Context(), c, Execution{Code: "1"})
			e := wantKind(t, err, test.want)
			for cause := error(e); cause != nil; cause = errors.Unwrap(cause) {
				if strings.Contains(cause.Error(), "127.0.0.1") {
					t.Errorf("%q names an address", cause)
				}
			}
		})
	}
}

func TestTheOwnTransportIsTuned(t *testing.T) {
	transport := newTransport()
	if transport.Proxy == nil || !transport.ForceAttemptHTTP2 || transport.MaxIdleConnsPerHost < 16 || transport.HTTP2.SendPingTimeout == 0 {
		t.Errorf("%+v", transport)
	}
	if transport.TLSClientConfig != nil && transport.TLSClientConfig.MinVersion != 0 && transport.TLSClientConfig.MinVersion < tls.VersionTLS12 {
		t.Error("TLS below 1.2 is allowed")
	}
}
