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
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// faults are what a model does wrong in the turn after a tool result.
var faults = []struct {
	words  string // knobs
	status int    // of a JSON answer
	text   string // in its error
}{
	{"[status 400 after]", http.StatusBadRequest, "The script asked for this error."},
	{"[status 500 after]", http.StatusInternalServerError, "The script asked for this error."},
	{"[status 503 after]", http.StatusServiceUnavailable, "The script asked for this error."},
	{"[fail-stream after]", http.StatusInternalServerError, "The script asked for this error."},
	{"[cut after]", http.StatusBadGateway, "broke off"},
}

// An error after code has run reaches the client with the upstream's words, and
// in a stream says what was executed.
func TestUpstreamThatFailsAfterTheCode(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
	for _, fault := range faults {
		t.Run(fault.words, func(t *testing.T) {
			g.client().ask(knobs(fault.words, "print(1)")).refuses(t, fault.status, fault.text)
			text := strings.Replace(fault.text, "broke off", "broke", 1)
			a := g.client().ask(knobs(fault.words, "print(1)", streamed))
			a.refuses(t, http.StatusOK, text)
			if a.output() != "1" {
				t.Errorf("the stream does not say what was executed:\n%s", a.body)
			}
		})
	}
	t.Run("HTML", func(t *testing.T) {
		a := g.client().ask(knobs("[html 502 after]", "print(1)"))
		if a.status != http.StatusBadGateway || !strings.Contains(a.body, "<html>") {
			t.Errorf("status %d: %s", a.status, a.body)
		}
		a = g.client().ask(knobs("[html 502 after]", "print(1)", streamed))
		a.refuses(t, http.StatusOK, "Bad Gateway")
		if strings.Contains(a.body, "<html>") {
			t.Errorf("a page is in the stream:\n%s", a.body)
		}
	})
}

func TestUpstreamThatFailsAtFirst(t *testing.T) {
	u := newModel(t)
	g := start(t, "encode gzip\n"+remote.interpreter(t)+"\n"+u.proxy())
	before := served.creations()
	for _, form := range []fields{nil, streamed} {
		for _, status := range []int{400, 404, 429, 500, 503} {
			g.client().ask(knobs(fmt.Sprintf("[status %d]", status), "print(1)", form)).refuses(t, status, "The script asked for this error.")
		}
		a := g.client().ask(knobs("[html 502]", "print(1)", form))
		if a.status != http.StatusBadGateway || !strings.Contains(a.body, "<html>") || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
			t.Errorf("status %d, %q: %s", a.status, a.header.Get("Content-Type"), a.body)
		}
	}
	g.client().ask(knobs("[cut]", "print(1)")).refuses(t, http.StatusBadGateway, "broke off")
	for _, words := range []string{"[talk] [cut]", "[talk] [fail-stream]"} {
		a := g.client().ask(knobs(words, "print(1)", streamed))
		a.refuses(t, http.StatusOK, "")
		if !strings.Contains(a.content, "Let me run that.") || a.begun != 0 {
			t.Errorf("%s: the stream is\n%s", words, a.body)
		}
	}
	if n := served.creations() - before; n != 0 {
		t.Errorf("%d sandboxes were created without any code", n)
	}
}

func TestUpstreamThatIsDown(t *testing.T) {
	for name, chain := range map[string]struct{ block, text string }{
		"down":              {"reverse_proxy 127.0.0.1:" + freePort(t), "could not be reached"},
		"missing":           {"", "reverse_proxy"},
		"not for this path": {"handle /other/* {\nrespond 404\n}\nhandle /more/* {\nrespond 404\n}", "reverse_proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t, embedded.interpreter(t)+"\n"+chain.block)
			for _, form := range []fields{nil, streamed} {
				g.client().ask(run("print(1)", form)).refuses(t, http.StatusBadGateway, chain.text)
			}
		})
	}
}

// The upstream checks the key: who has none gets its 401, and no sandbox.
func TestUpstreamThatKnowsTheKey(t *testing.T) {
	refusal := `{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`
	u := newUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.Header().Set("X-Request-Id", "req_1")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, refusal)
	}))
	g := start(t, remote.interpreter(t)+"\n"+u.proxy())
	before := served.creations()
	for _, form := range []fields{nil, streamed} {
		a := g.client("Authorization", "Bearer sk-wrong").ask(run("print(1)", in("a"), form))
		if a.status != http.StatusUnauthorized || a.body != refusal || a.header.Get("WWW-Authenticate") != "Bearer" || a.header.Get("X-Request-Id") != "req_1" {
			t.Errorf("status %d, header %v: %s", a.status, a.header, a.body)
		}
	}
	if n := served.creations() - before; n != 0 {
		t.Errorf("%d sandboxes were created", n)
	}
	if n := len(u.asked()); n != 2 {
		t.Errorf("the upstream was asked %d times", n)
	}
}

func TestUpstreamThatNeverAnswers(t *testing.T) {
	gate := newGate()
	u := newUpstream(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { gate.wait(r) }))
	g := start(t, embedded.interpreter(t, "request_timeout 1s")+"\n"+u.proxy())
	for _, form := range []fields{nil, streamed} {
		began := time.Now()
		g.client().ask(run("print(1)", form)).refuses(t, http.StatusGatewayTimeout, "longer than the 1s")
		within(t, time.Second, 20*time.Second, began)
		await(t, "the request to the model ends", gate.left)
	}
}

func TestRequestTimeoutWhileCodeRuns(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t, "request_timeout 1s", "exec_timeout 1s")+"\n"+u.proxy())
	for _, form := range []fields{nil, streamed} {
		began := time.Now()
		a := g.client().ask(run("while True: pass", form))
		if a.failure == nil && !strings.Contains(a.content, "timed out") {
			t.Errorf("status %d: %s", a.status, a.body)
		}
		within(t, time.Second, 30*time.Second, began)
	}
}

func TestCodeThatRunsForTooLong(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t, "exec_timeout 1s")+"\n"+u.proxy())
	c := g.client("Api-Key", "k")
	c.ask(run("x = 42", in("a")))
	c.ask(run("print('so far')\nwhile True: pass", in("a"))).says(t, "so far")
	c.ask(run("print(x)", in("a"))).says(t, "42")
}

func TestRequestsThatAreRefused(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t, "max_body 10KiB")+"\n"+u.proxy())
	good := encode(run("print(1)"))
	twice := func(member string) string { return "{" + member + "," + good[1:len(good)-1] + "," + member + "}" }
	for name, c := range map[string]struct {
		body   any
		status int
		text   string
	}{
		"n":                   {run("print(1)", fields{"n": 2}), http.StatusBadRequest, "param:n"},
		"two tools":           {twice(`"tools":[{"type":"code_interpreter"}]`), http.StatusBadRequest, "param:tools"},
		"two metadata":        {twice(`"metadata":{"session_id":"x"}`), http.StatusBadRequest, "param:metadata"},
		"session_id a number": {run("print(1)", fields{"metadata": fields{"session_id": 1}}), http.StatusBadRequest, "param:metadata.session_id"},
		"session_id long":     {run("print(1)", in(strings.Repeat("x", 512))), http.StatusBadRequest, "param:metadata.session_id"},
		"too large":           {run("print(1)", fields{"x": strings.Repeat("x", 10<<10)}), http.StatusRequestEntityTooLarge, "max_body"},
		"too large to pass":   {run("print(1)", fields{"x": strings.Repeat("x", 10<<10), "tools": nil}), http.StatusRequestEntityTooLarge, "max_body"},
	} {
		t.Run(name, func(t *testing.T) {
			g.client().ask(c.body).refuses(t, c.status, c.text)
		})
	}
	if seen := u.asked(); len(seen) != 0 {
		t.Errorf("the upstream was asked %d times", len(seen))
	}
}

// The model is told in plain words that no code can run, and the exchange goes
// on; what is wrong is for the operator.
func TestSandboxesThatCannotBeHad(t *testing.T) {
	u := newModel(t)
	down := "http://127.0.0.1:" + freePort(t)
	server := served.open(t)
	for name, c := range map[string]struct{ key, url string }{
		"down":      {sandboxKey, down},
		"wrong key": {"e2b_wrong", server},
		"no E2B":    {sandboxKey, u.URL + "/nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			block := "code_interpreter {\nsandbox_timeout 2s\nsandbox e2b {\napi_key " + c.key + "\napi_url " + c.url + "\nsandbox_url " + c.url + "\n}\n}"
			g := start(t, block+"\n"+u.proxy())
			for _, form := range []fields{nil, streamed} {
				a := g.client().ask(run("print(1)", in("a"), form)).says(t, "no Python sandbox is available")
				for _, secret := range []string{"127.0.0.1", "e2b", "key", "refused"} {
					if strings.Contains(a.body, secret) {
						t.Errorf("%q is in the answer: %s", secret, a.body)
					}
				}
			}
		})
	}
}

// raw sends bytes over a connection of its own, closes its half of it if
// wanted, and returns what comes back.
func (g *gateway) raw(request string, half bool) string {
	g.t.Helper()
	conn, err := new(net.Dialer).DialContext(g.t.Context(), "tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		g.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		g.t.Fatal(err)
	}
	if _, err := conn.Write([]byte(request)); err != nil {
		g.t.Fatal(err)
	}
	if half {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			g.t.Fatal(err)
		}
	}
	var answer strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		answer.Write(buffer[:n])
		if err != nil {
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
				g.t.Fatalf("no end after %q", answer.String())
			}
			return answer.String()
		}
	}
}

const rawHead = "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nConnection: close\r\n"

func TestBodyThatBreaksOff(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
	for name, request := range map[string]string{
		"short of its length": rawHead + "Content-Length: 1000\r\n\r\n{\"model\":",
		"a bad chunk":         rawHead + "Transfer-Encoding: chunked\r\n\r\n9\r\n{\"model\":\r\nZZ\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := g.raw(request, true)
			if !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.Contains(got, "could not be read") {
				t.Errorf("the answer is %q", got)
			}
		})
	}
	if seen := u.asked(); len(seen) != 0 {
		t.Errorf("the upstream was asked %d times", len(seen))
	}
}

func TestCaddysOwnBodyLimitIsCaddysError(t *testing.T) {
	u := newModel(t)
	g := start(t, "request_body {\nmax_size 1KB\n}\n"+embedded.interpreter(t)+"\n"+u.proxy())
	a := g.client().ask(run("print(1)", fields{"x": strings.Repeat("x", 2000)}))
	if a.status != http.StatusRequestEntityTooLarge || a.body != "" {
		t.Errorf("status %d: %q", a.status, a.body)
	}
}
