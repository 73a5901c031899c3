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
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if os.Getenv(gatewayVariable) != "" {
		os.Exit(beGateway())
	}
	if os.Getenv(orphanVariable) != "" {
		for { // until it is killed
			_ = unix.Pause()
		}
	}
	goleak.VerifyTestMain(m)
}

// client speaks E2B's protocol with a server, as far as the tests need it.
type client struct {
	t    testing.TB
	base string
	http *http.Client
}

// box is a sandbox as its creator knows it.
type box struct {
	ID      string `json:"sandboxID"`
	Token   string `json:"envdAccessToken"`
	Traffic string `json:"trafficAccessToken"`
}

// newServer starts a server that ends with the test.
func newServer(t testing.TB, cfg Config) *Server {
	t.Helper()
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v\n(the tests need Linux with bubblewrap, python3, and its matplotlib, pandas and PIL: "+
			"apt install bubblewrap python3 python3-matplotlib python3-pandas python3-pil)", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newClient returns a client of the server through its own transport.
func newClient(t testing.TB, s *Server) *client {
	return &client{t: t, base: "http://local", http: &http.Client{Transport: s.Transport()}}
}

// with returns the client for a subtest.
func (c *client) with(t testing.TB) *client { return &client{t: t, base: c.base, http: c.http} }

// call makes a call and returns status and body. b is nil on the control plane.
func (c *client) call(ctx context.Context, b *box, method, path string, body any) (int, string) {
	c.t.Helper()
	res := c.open(ctx, b, method, path, body)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatalf("%s %s: reading the answer: %v", method, path, err)
	}
	return res.StatusCode, string(text)
}

func (c *client) open(ctx context.Context, b *box, method, path string, body any) *http.Response {
	c.t.Helper()
	res, err := c.try(ctx, b, method, path, body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res
}

func (c *client) try(ctx context.Context, b *box, method, path string, body any) (*http.Response, error) {
	var text []byte
	switch body := body.(type) {
	case nil:
	case string:
		text = []byte(body)
	default:
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if b != nil {
		req.Header.Set("E2b-Sandbox-Id", b.ID)
		req.Header.Set("E2b-Sandbox-Port", codePort)
		req.Header.Set("X-Access-Token", b.Token)
	}
	return c.http.Do(req)
}

// create makes a sandbox.
func (c *client) create(body map[string]any) *box {
	c.t.Helper()
	all := map[string]any{"templateID": "code-interpreter-v1", "timeout": 300}
	maps.Copy(all, body)
	status, text := c.call(c.t.Context(), nil, "POST", "/sandboxes", all)
	if status != http.StatusCreated {
		c.t.Fatalf("create: %d %s", status, text)
	}
	var b box
	if err := json.Unmarshal([]byte(text), &b); err != nil || b.ID == "" || b.Token == "" {
		c.t.Fatalf("create answered %s (%v)", text, err)
	}
	return &b
}

// remove ends a sandbox.
func (c *client) remove(b *box) {
	c.t.Helper()
	if status, text := c.call(c.t.Context(), nil, "DELETE", "/sandboxes/"+b.ID, nil); status != http.StatusNoContent {
		c.t.Fatalf("delete: %d %s", status, text)
	}
}

// outcome is what one execution said.
type outcome struct {
	Count                  int
	Stdout, Stderr, Result string
	PNG                    string
	Error, Value, Trace    string
	Ended                  bool // end_of_execution came
	Err                    error
}

func (o outcome) String() string {
	return fmt.Sprintf("stdout %.500q stderr %.500q result %.200q error %q %.500q ended %v err %v",
		o.Stdout, o.Stderr, o.Result, o.Error, o.Value, o.Ended, o.Err)
}

// run executes code and gathers what it says.
func (c *client) run(b *box, code string) outcome {
	c.t.Helper()
	return c.runWith(c.t.Context(), b, map[string]any{"code": code})
}

func (c *client) runWith(ctx context.Context, b *box, body map[string]any) outcome {
	c.t.Helper()
	res, err := c.try(ctx, b, "POST", "/execute", body)
	if err != nil {
		return outcome{Err: err}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		return outcome{Err: fmt.Errorf("execute: %d %s", res.StatusCode, text)}
	}
	return gather(res.Body)
}

// gather reads a stream to its end.
func gather(r io.Reader) (o outcome) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return o
		}
		if err != nil {
			o.Err = err
			return o
		}
		o.add(line)
	}
}

func (o *outcome) add(line []byte) {
	var e struct {
		Type, Text, PNG, Name, Value, Traceback string
		ExecutionCount                          int `json:"execution_count"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		o.Err = fmt.Errorf("line %.100q: %w", line, err)
		return
	}
	switch e.Type {
	case "number_of_executions":
		o.Count = e.ExecutionCount
	case "stdout":
		o.Stdout += e.Text
	case "stderr":
		o.Stderr += e.Text
	case "result":
		o.Result, o.PNG = e.Text, e.PNG
	case "error":
		o.Error, o.Value, o.Trace = e.Name, e.Value, e.Traceback
	case "end_of_execution":
		o.Ended = true
	}
}

// want fails the test unless a run printed this and ended without an error.
func (c *client) want(b *box, code, stdout string) {
	c.t.Helper()
	o := c.run(b, code)
	if o.Err != nil || o.Error != "" || !o.Ended || strings.TrimSpace(o.Stdout+o.Result) != stdout {
		c.t.Fatalf("%.200q: got %v, want output %q", code, o, stdout)
	}
}

// within fails the test when f takes longer.
func within(t testing.TB, limit time.Duration, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > limit {
		t.Errorf("%s took %v, more than %v", what, took, limit)
	}
}

// awaitWarm waits until so many sandboxes are ready.
func awaitWarm(t testing.TB, s *Server, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		ready := len(s.warm)
		s.mu.Unlock()
		if ready >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d sandboxes are ready, want %d", ready, n)
		}
	}
}
