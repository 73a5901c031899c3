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
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const (
	startLine     = `{"type":"number_of_executions","execution_count":1}` + "\n"
	keepaliveLine = `{"type":"keepalive"}` + "\n"
	outLine       = `{"type":"stdout","text":"a"}` + "\n"
	endLine       = `{"type":"end_of_execution"}` + "\n"
)

// stream is a transport whose answer is written by a function while it is read.
// The function's w fails once the body was closed; ctx is the request's.
func stream(write func(ctx context.Context, w *io.PipeWriter)) roundTripFunc {
	return func(r *http.Request) (*http.Response, error) {
		pr, pw := io.Pipe()
		go write(r.Context(), pw)
		return &http.Response{StatusCode: http.StatusOK, Body: pr, Header: http.Header{}, Request: r}, nil
	}
}

// execute runs an execution and returns the types of its events.
func execute(ctx context.Context, c *Client, ex Execution) (types []EventType, err error) {
	err = c.Execute(ctx, newTestSandbox("sb1", ""), ex, func(e Event) { types = append(types, e.Type) })
	return types, err
}

// forever writes keep-alives until the body is closed, and says when that was.
func forever(closed chan<- time.Time) roundTripFunc {
	return stream(func(_ context.Context, w *io.PipeWriter) {
		_, err := io.WriteString(w, startLine)
		for err == nil {
			time.Sleep(5 * time.Second) // the bubble's clock
			_, err = io.WriteString(w, keepaliveLine)
		}
		closed <- time.Now()
	})
}

func TestKeepalivesDoNotExtendTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan time.Time, 1)
		c := newTestClient(t, forever(closed), nil)
		start := time.Now()
		types, err := execute(t.Context(), c, Execution{Code: "while True: pass", Timeout: 12 * time.Second})
		e := wantKind(t, err, TimedOut)
		if took := time.Since(start); took != 12*time.Second {
			t.Errorf("ended after %v", took)
		}
		if e.Err != nil || e.Status != 200 {
			t.Errorf("%+v", e)
		}
		if want := []EventType{NumberOfExecutions, Keepalive, Keepalive}; !slices.Equal(types, want) {
			t.Errorf("events %q, want %q", types, want)
		}
		<-closed // the server sees that nobody reads any more
	})
}

func TestTheDeadlineCountsWhileTheServerIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(t, stream(func(_ context.Context, w *io.PipeWriter) {
			_, _ = io.WriteString(w, keepaliveLine+`{"type":"stdout","te`)
		}), nil)
		_, err := execute(t.Context(), c, Execution{Timeout: time.Second})
		wantKind(t, err, TimedOut)
	})
}

func TestTheDeadlineCountsBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(t, roundTripFunc(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), nil)
		_, err := execute(t.Context(), c, Execution{Timeout: time.Second})
		wantKind(t, err, TimedOut)
	})
}

func TestTheCallersContextEndsAnExecution(t *testing.T) {
	for _, test := range []struct {
		want error
		make func(context.Context) (context.Context, context.CancelFunc)
	}{
		{context.Canceled, func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(3*time.Second, cancel)
			return ctx, cancel
		}},
		{context.DeadlineExceeded, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 3*time.Second)
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			closed := make(chan time.Time, 1)
			c := newTestClient(t, forever(closed), nil)
			ctx, cancel := test.make(t.Context())
			defer cancel()
			start := time.Now()
			_, err := execute(ctx, c, Execution{Timeout: time.Minute})
			if wantKind(t, err, Interrupted); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v in it", err, test.want)
			}
			if took := time.Since(start); took != 3*time.Second {
				t.Errorf("ended after %v", took)
			}
			<-closed
		})
	}
}

// A body closed at once after its last line would look like a caller that went
// away, and one that stays open must not hold up the caller.
func TestTheEndOfTheBodyIsWaitedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closedEarly error
		c := newTestClient(t, stream(func(_ context.Context, w *io.PipeWriter) {
			_, _ = io.WriteString(w, startLine+endLine)
			time.Sleep(drainTime / 2) // the bubble's clock
			_, closedEarly = io.WriteString(w, "\n")
			w.Close()
		}), nil)
		start := time.Now()
		if _, err := execute(t.Context(), c, Execution{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != drainTime/2 || closedEarly != nil {
			t.Errorf("ended after %v, the server saw %v", took, closedEarly)
		}

		closed := make(chan time.Time, 1)
		c = newTestClient(t, stream(func(ctx context.Context, w *io.PipeWriter) {
			_, _ = io.WriteString(w, startLine+endLine)
			<-ctx.Done()
			closed <- time.Now()
		}), nil)
		start = time.Now()
		if _, err := execute(t.Context(), c, Execution{}); err != nil {
			t.Fatal(err)
		}
		if at := <-closed; at.Sub(start) != drainTime {
			t.Errorf("the body was given up after %v", at.Sub(start))
		}
	})
}

// together is a body whose only read has the end too.
type together struct {
	text string
	more int // reads after that one
}

func (b *together) Read(p []byte) (int, error) {
	if b.text == "" {
		b.more++
		return 0, io.EOF
	}
	n := copy(p, b.text)
	b.text = ""
	return n, io.EOF
}

func (b *together) Close() error { return nil }

func TestAnEndThatCameWithTheLastLineIsNotWaitedFor(t *testing.T) {
	body := &together{text: startLine + outLine + endLine}
	c := newTestClient(t, roundTripFunc(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: body, Header: http.Header{}, Request: r}, nil
	}), nil)
	types, err := execute(t.Context(), c, Execution{Code: "1"})
	if err != nil || !slices.Equal(types, []EventType{NumberOfExecutions, Stdout, EndOfExecution}) {
		t.Errorf("events %v, error %v", types, err)
	}
	if body.more != 0 {
		t.Errorf("read %d times behind the end", body.more)
	}
}

func TestABodyWithoutEndIsInterrupted(t *testing.T) {
	for _, body := range []string{"", keepaliveLine, startLine, startLine + outLine, outLine, "<html>"} {
		s := &fakeServer{replies: map[string][]reply{"POST /execute": {{status: 200, body: body}}}}
		_, err := execute(t.Context(), newTestClient(t, s, nil), Execution{})
		if e := wantKind(t, err, Interrupted); e.Status != 200 {
			t.Errorf("%q: %+v", body, e)
		}
	}
}

func TestStatusesOfTheDataPlane(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		want   Kind
	}{
		{"context lost", 404, "Context 9f not found", ContextGone},
		{"sandbox lost", 404, `{"message":"sandbox not found"}`, Gone},
		{"no words", 404, "", Gone},
		{"sandbox lost, 502", 502, `{"sandboxId":"sb1","message":"The sandbox was not found","code":502}`, Gone},
		{"sandbox lost, 502 in HTML", 502, "<!DOCTYPE html><h1>Sandbox Not Found</h1>", Gone},
		{"port closed", 502, `{"sandboxId":"sb1","message":"The sandbox is running but port is not open","port":49999,"code":502}`, NotReady},
		{"port closed in HTML", 502, "<!DOCTYPE html><h1>Closed Port Error</h1>", NotReady},
		{"a proxy's page", 502, "<html><head><title>502 Bad Gateway</title></head></html>", NotReady},
		{"a proxy's words", 502, "upstream connect error or disconnect/reset before headers", Interrupted},
		{"a silent 502", 502, "", Interrupted},
		{"no kernel", 500, "Failed to create context: {}", Interrupted},
		{"unavailable", 503, "", Interrupted},
		{"gateway timeout", 504, "<html></html>", Interrupted},
		{"no token", 401, "", Unauthorized},
		{"wrong token", 403, "", Unauthorized},
		{"too many", 429, "", RateLimited},
		{"both context and language", 400, "Only one of context_id or language can be provided", Refused},
		{"redirect", 302, "", BadAnswer},
		{"permanent redirect", 308, "", BadAnswer},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &fakeServer{replies: map[string][]reply{"POST /execute": {{
				status: test.status, body: test.body, header: map[string]string{"Location": "http://elsewhere.test/", "Retry-After": "3"},
			}}}}
			types, err := execute(t.Context(), newTestClient(t, s, nil), Execution{})
			e := wantKind(t, err, test.want)
			if e.Status != test.status || e.RetryAfter != 3*time.Second || types != nil {
				t.Errorf("%+v, events %q", e, types)
			}
			if got := s.calls(); len(got) != 1 {
				t.Errorf("calls %q, want one", got)
			}
		})
	}
}

// What a transport reports, and whether the code can have started.
func TestLostConnections(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 443}, Err: syscall.ECONNREFUSED}
	for _, test := range []struct {
		err  error
		want Kind
	}{
		{dial, NotReady},
		{&url.Error{Op: "Post", URL: "http://secret.test", Err: dial}, NotReady},
		{&net.DNSError{Name: "secret.test", Err: "no such host"}, NotReady},
		{&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, Interrupted},
		{io.EOF, Interrupted},
		{errors.New("http2: server sent GOAWAY, secret.test"), Interrupted},
	} {
		c := newTestClient(t, roundTripFunc(func(*http.Request) (*http.Response, error) { return nil, test.err }), nil)
		_, err := execute(t.Context(), c, Execution{})
		wantKind(t, err, test.want)
		for _, hidden := range []string{"secret", "10.1.2.3"} {
			for cause := err; cause != nil; cause = errors.Unwrap(cause) {
				if strings.Contains(cause.Error(), hidden) {
					t.Errorf("%q names a host", cause)
				}
			}
		}
	}
}

func TestTooMuchOutputIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan time.Time, 1)
		c := newTestClient(t, stream(func(_ context.Context, w *io.PipeWriter) {
			_, err := io.WriteString(w, startLine)
			for err == nil {
				_, err = io.WriteString(w, outLine)
			}
			closed <- time.Now()
		}), func(config *Config) { config.MaxRead = 1000 })
		types, err := execute(t.Context(), c, Execution{Timeout: time.Minute})
		wantKind(t, err, TooLarge)
		if want := (1000 - len(startLine)) / len(outLine); len(types) != 1+want {
			t.Errorf("%d events, want the %d that fit", len(types), 1+want)
		}
		<-closed
	})
}

func compressed(t *testing.T, body string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCompressedAnswersAreBoundedToo(t *testing.T) {
	bomb := startLine + `{"type":"stdout","text":"` + strings.Repeat("A", 1<<20) + `"}` + "\n" + endLine
	// Empty blocks: bytes on the wire that decompress to nothing.
	idle := compressed(t, startLine)[:10] + strings.Repeat("\x00\x00\x00\xff\xff", 1<<16)
	tests := []struct {
		name, encoding, body string
		want                 Kind
	}{
		{"honest", "gzip", compressed(t, startLine+endLine), 0},
		{"identity", "identity", startLine + endLine, 0},
		{"bomb", "gzip", compressed(t, bomb), TooLarge},
		{"nothing for ever", "gzip", idle, TooLarge},
		{"no gzip", "gzip", startLine, Interrupted},
		{"cut", "x-gzip", compressed(t, startLine)[:12], Interrupted},
		{"not asked for", "br", "...", BadAnswer},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &fakeServer{replies: map[string][]reply{"POST /execute": {{status: 200, body: test.body, header: map[string]string{"Content-Encoding": test.encoding}}}}}
			c := newTestClient(t, s, func(config *Config) { config.MaxRead = 64 << 10 })
			if _, err := execute(t.Context(), c, Execution{}); KindOf(err) != test.want {
				t.Errorf("error %v, want kind %q", err, test.want)
			}
		})
	}
}

func TestAPanicInEmitClosesTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan time.Time, 1)
		c := newTestClient(t, forever(closed), nil)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = c.Execute(t.Context(), newTestSandbox("sb1", ""), Execution{}, func(Event) { panic("reader") })
		}()
		<-closed
	})
}

func TestCertificatesAreNamedWithoutTheirHosts(t *testing.T) {
	err := scrub(fmt.Errorf("wrapped: %w", x509.HostnameError{Host: "secret.test", Certificate: &x509.Certificate{}}))
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
