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

package handler_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
)

// passing is a handler for requests without the tool, which need no sandbox.
func passing() *handler.Handler {
	return handler.New(handler.Config{Logger: zap.NewNop(), ToolName: "run_python", MaxBody: 64 << 20})
}

// send gives a request to the handler with a next one that has its body.
func send(t testing.TB, h *handler.Handler, body string, next func(r *http.Request)) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	err := h.ServeHTTP(httptest.NewRecorder(), r, caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
		next(r)
		return nil
	}))
	if err != nil {
		t.Error(err)
	}
}

// filled is a request of the given size with as good as one letter.
func filled(letter string, size int) string {
	return `{"messages":[{"role":"user","content":"` + strings.Repeat(letter, size) + `"}]}`
}

// An upstream may answer before it has read the request, of which a transport
// then sends the rest while other requests come.
func TestBodyReadAfterTheAnswerIsTheRequestsOwn(t *testing.T) {
	const requests = 60
	h := passing()
	var all sync.WaitGroup
	for i := range requests {
		body := filled(fmt.Sprint(i%10), 1000+i%3*50_000)
		send(t, h, body, func(r *http.Request) {
			again, err := r.GetBody()
			if err != nil {
				t.Error(err)
				return
			}
			for _, reader := range []io.ReadCloser{r.Body, again} {
				all.Go(func() {
					got, err := io.ReadAll(reader)
					if err != nil || string(got) != body {
						t.Errorf("request %d: other bytes were read, or %v", i, err)
					}
					_, _ = reader.Close(), reader.Close()
				})
			}
		})
	}
	all.Wait()
}

// The server begins to watch a client's connection with the end of its body,
// which wakes a thread. That is to be where it is with any other handler: when
// the transport sends the body.
func TestEndOfASmallPassedBodyIsReadByTheNextHandler(t *testing.T) {
	for _, size := range []int{10, 1000, 4000} {
		body := filled("a", size)
		client := &watched{left: body}
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", client)
		r.ContentLength = int64(len(body))
		r.Header.Set("Content-Type", "application/json")
		err := passing().ServeHTTP(httptest.NewRecorder(), r, caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
			if client.ended {
				t.Errorf("%d bytes: the body was read to its end before", size)
			}
			got, err := io.ReadAll(r.Body)
			if string(got) != body || !client.ended {
				t.Errorf("%d bytes: %d were read, to the end: %v", size, len(got), client.ended)
			}
			return err
		}))
		if err != nil {
			t.Error(err)
		}
	}
}

// watched is a body like that of a server, which ends with its last byte.
type watched struct {
	left  string
	ended bool
}

func (w *watched) Read(p []byte) (int, error) {
	n := copy(p, w.left)
	if w.left = w.left[n:]; w.left == "" {
		w.ended = true
		return n, io.EOF
	}
	return n, nil
}

// A large body is here before the next handler is called, whatever deadlines
// there are for reading it, and whoever leaves while it comes.
func TestLargeBodyIsReadBeforeTheNextHandler(t *testing.T) {
	body := filled("a", 100_000)
	client := &watched{left: body}
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", client)
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Type", "application/json")
	err := passing().ServeHTTP(httptest.NewRecorder(), r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
		if !client.ended {
			t.Error("a part of the body is left")
		}
		return nil
	}))
	if err != nil {
		t.Error(err)
	}
}

// A client that leaves before the last byte of its body has sent no request.
func TestClientThatLeavesBeforeItsLastByte(t *testing.T) {
	for name, body := range map[string]string{
		"small": filled("a", 100), "large": filled("a", 100_000),
		"with the tool": `{"tools":[{"type":"code_interpreter"}],"messages":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			served := make(chan error, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var read error
				err := passing().ServeHTTP(w, r, caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
					if _, read = io.ReadAll(r.Body); read == nil {
						t.Error("the next handler got a whole request")
					}
					return read
				}))
				served <- err
			}))
			defer server.Close()
			c, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_, err = fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				len(body), body[:len(body)-1])
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
			if err := <-served; name == "small" && !errors.Is(err, io.ErrUnexpectedEOF) || name != "small" && err != nil {
				t.Errorf("the handler returned %v", err)
			}
		})
	}
}

// What was not read when one handler failed is there for the next one, as it
// is with handle_errors.
func TestUnreadBodyCanBeReadLater(t *testing.T) {
	h := passing()
	body := filled("a", 100_000)
	var failed *http.Request
	send(t, h, body, func(r *http.Request) { failed = r })
	for range 5 {
		send(t, h, filled("b", 100_000), func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	}
	if got, err := io.ReadAll(failed.Body); err != nil || string(got) != body {
		t.Errorf("other bytes were read, or %v", err)
	}
}

func TestRequestsWithoutTheToolReuseTheirMemory(t *testing.T) {
	const times, size = 100, 100_000
	h := passing()
	body := filled("a", size)
	p := make([]byte, 32<<10)
	read := func(r *http.Request) {
		for {
			if _, err := r.Body.Read(p); err != nil {
				break
			}
		}
		_ = r.Body.Close()
	}
	send(t, h, body, read)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		send(t, h, body, read)
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / times; n > size/4 {
		t.Errorf("%d bytes allocated for a request of %d", n, size)
	}
}

func BenchmarkPass(b *testing.B) {
	h := passing()
	for _, size := range []int{1 << 10, 100 << 10, 5 << 20} {
		b.Run(fmt.Sprintf("body=%dKB", size>>10), func(b *testing.B) {
			body := filled("a", size)
			p := bytes.NewBuffer(make([]byte, 0, len(body)+bytes.MinRead))
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				send(b, h, body, func(r *http.Request) {
					p.Reset()
					_, _ = p.ReadFrom(r.Body)
					_ = r.Body.Close()
				})
			}
		})
	}
}
