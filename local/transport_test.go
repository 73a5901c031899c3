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
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

// bare returns a transport over a handler alone: no test here needs a sandbox.
func bare(t *testing.T, h http.HandlerFunc) (*http.Client, *Server) {
	t.Helper()
	s := &Server{log: zap.NewNop(), cfg: Config{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	t.Cleanup(func() { s.work.Wait(); s.cancel() })
	return &http.Client{Transport: &transport{server: s, handler: h}}, s
}

func get(ctx context.Context, t *testing.T, c *http.Client) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://local/path?q=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Do(req)
}

func TestHeadersAreVisibleAtTheFirstFlush(t *testing.T) {
	release := make(chan struct{})
	c, _ := bare(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Early", "yes")
		w.WriteHeader(http.StatusAccepted)
		w.Header().Set("X-Late", "no")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
		<-release
	})
	res, err := get(t.Context(), t, c)
	if err != nil {
		t.Fatal(err)
	}
	close(release)
	if res.StatusCode != http.StatusAccepted || res.Header.Get("X-Early") != "yes" || res.Header.Get("X-Late") != "" {
		t.Errorf("got %d %v", res.StatusCode, res.Header)
	}
	if body, err := io.ReadAll(res.Body); err != nil || len(body) != 0 {
		t.Errorf("body %q, %v", body, err)
	}
	res.Body.Close()
}

func TestEachWriteIsReadableAtOnceAndWaitsUntilRead(t *testing.T) {
	wrote := make(chan int, 3)
	c, _ := bare(t, func(w http.ResponseWriter, r *http.Request) {
		for i, part := range []string{"one", "two", "three"} {
			if _, err := io.WriteString(w, part); err != nil {
				t.Errorf("write: %v", err)
			}
			wrote <- i
		}
	})
	res, err := get(t.Context(), t, c)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	buf := make([]byte, 100)
	for i, part := range []string{"one", "two", "three"} {
		select {
		case <-wrote:
			t.Fatal("a write returned before it was read")
		default:
		}
		n, err := res.Body.Read(buf)
		if err != nil || string(buf[:n]) != part {
			t.Fatalf("read %q, %v; want %q", buf[:n], err, part)
		}
		if got := <-wrote; got != i {
			t.Fatalf("write %d returned, want %d", got, i)
		}
	}
	if _, err := res.Body.Read(buf); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestClosingTheBodyCancelsTheHandler(t *testing.T) {
	ended := make(chan error, 1)
	c, s := bare(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "x")
		<-r.Context().Done()
		_, err := io.WriteString(w, "y")
		ended <- err
	})
	res, err := get(t.Context(), t, c)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if err := <-ended; err == nil {
		t.Error("a write after the client's end succeeded")
	}
	s.work.Wait() // what Close waits for
}

func TestCancelledRequestUnblocksReaderAndWriter(t *testing.T) {
	ended := make(chan error, 1)
	c, _ := bare(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		var err error
		for err == nil { // the reader may still take one
			_, err = io.WriteString(w, "nobody reads this")
		}
		ended <- err
	})
	ctx, cancel := context.WithCancel(t.Context())
	res, err := get(ctx, t, c)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := io.ReadAll(res.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v, want the context's end", err)
	}
	<-ended
}

func TestCancelledBeforeTheHandlerAnswers(t *testing.T) {
	c, _ := bare(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if res, err := get(ctx, t, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, %v", res, err)
	}
}

func TestPanicBreaksTheBody(t *testing.T) {
	for name, value := range map[string]any{"abort": http.ErrAbortHandler, "bug": "oops"} {
		t.Run(name, func(t *testing.T) {
			c, _ := bare(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					_, _ = io.WriteString(w, "half")
				}
				panic(value)
			})
			res, err := get(t.Context(), t, c)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); err == nil || string(body) != "half" {
				t.Errorf("body %q, %v; want half of it and an error", body, err)
			}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://local/", strings.NewReader("x"))
			if _, err := c.Do(req); !errors.Is(err, errBrokenAnswer) {
				t.Errorf("before the headers: %v", err)
			}
		})
	}
}

func TestHandlerSeesAServersRequest(t *testing.T) {
	c, _ := bare(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if r.RequestURI != "/path?q=1" || r.Host != "local" || r.RemoteAddr == "" || string(body) != "sent" || err != nil {
			t.Errorf("got %q on %q from %q with %q, %v", r.RequestURI, r.Host, r.RemoteAddr, body, err)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	sent := &closeRecorder{Reader: strings.NewReader("sent")}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://local/path?q=1", sent)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); res.StatusCode != http.StatusNoContent || res.ContentLength != 0 || len(body) != 0 || err != nil {
		t.Errorf("got %v with %q, %v", res, body, err)
	}
	res.Body.Close()
}

type closeRecorder struct{ io.Reader }

func (*closeRecorder) Close() error { return nil }

func TestClosedServerTakesNoRequests(t *testing.T) {
	c, s := bare(t, func(http.ResponseWriter, *http.Request) { t.Error("served") })
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if _, err := get(t.Context(), t, c); !errors.Is(err, errEngineClosed) {
		t.Errorf("got %v", err)
	}
}
