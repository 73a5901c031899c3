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
	"bufio"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/caddytest/scriptedmodel"
)

// zipped is a model whose answers are compressed, asked for or not.
type zipped struct {
	model   scriptedmodel.Model
	always  bool
	encoded int
}

func (z *zipped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !z.always && !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		z.model.ServeHTTP(w, r)
		return
	}
	z.encoded++
	w.Header().Set("Content-Encoding", "gzip")
	out := gzip.NewWriter(w)
	z.model.ServeHTTP(&zippedWriter{w, out}, r)
	_ = out.Close() // the client may be gone
}

type zippedWriter struct {
	http.ResponseWriter
	out *gzip.Writer
}

func (z *zippedWriter) Write(p []byte) (int, error) { return z.out.Write(p) }

func (z *zippedWriter) FlushError() error {
	if err := z.out.Flush(); err != nil {
		return err
	}
	return http.NewResponseController(z.ResponseWriter).Flush()
}

func TestCompressedUpstream(t *testing.T) {
	for _, always := range []bool{false, true} {
		model := &zipped{always: always}
		u := newUpstream(t, model)
		g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
		for _, encoding := range []string{"", "gzip", "identity"} {
			for _, form := range []fields{nil, streamed} {
				c := g.client()
				if encoding == "gzip" {
					encoding = "gzip;q=0, identity" // one that this test can read
				}
				if encoding != "" {
					c.header.Set("Accept-Encoding", encoding)
				}
				c.ask(run("print(6*7)", form)).says(t, "returned: 42").ran(t, "print(6*7)", "42")
			}
		}
		if model.encoded == 0 {
			t.Error("nothing was compressed")
		}
	}
}

func TestH2CUpstream(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t)+"\nreverse_proxy h2c://"+u.address())
	for _, form := range []fields{nil, streamed} {
		g.client().ask(run("print(6*7)", form)).says(t, "returned: 42")
	}
	for _, a := range u.asked() {
		if a.proto != "HTTP/2.0" {
			t.Errorf("the model was asked over %s", a.proto)
		}
	}
}

func TestHTTP2Client(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
	c := g.client("Api-Key", "k")
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	c.http.Transport = transport
	for _, form := range []fields{nil, streamed} {
		s := c.open(run("print(6*7)", in("a"), form))
		if s.resp.Proto != "HTTP/2.0" {
			t.Errorf("the answer came over %s", s.resp.Proto)
		}
		s.end().says(t, "returned: 42")
	}
	// Leaving resets the stream and not the connection.
	s := c.open(run("import subprocess\nsubprocess.run(['sleep', '300'])", in("a"), streamed))
	s.next("executed_tools")
	eventually(t, "the program runs", func() bool { return len(processes("sleep")) > 0 })
	s.leave()
	_ = s.resp.Body.Close()
	eventually(t, "the program ends", func() bool { return len(processes("sleep")) == 0 })
	c.ask(run("print(1)", in("a"))).says(t, "1")
}

func TestChunkedRequest(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
	for _, form := range []fields{nil, streamed} {
		body := encode(run("print(6*7)", form))
		s, err := g.client().send(context.Background(), io.MultiReader(strings.NewReader(body[:10]), strings.NewReader(body[10:])))
		if err != nil {
			t.Fatal(err)
		}
		s.end().says(t, "returned: 42")
	}
	for _, a := range u.asked() {
		if a.chunked || a.length != int64(len(a.body)) {
			t.Errorf("the model was asked with chunked %v, length %d", a.chunked, a.length)
		}
	}
}

// head is the beginning of a request without its length.
func head(version string, more ...string) string {
	return "POST /v1/chat/completions HTTP/" + version + "\r\nHost: gateway\r\nContent-Type: application/json\r\n" + strings.Join(more, "\r\n") + "\r\n"
}

func rawAnswer(t *testing.T, raw string) *answer {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(raw)), nil)
	if err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	s := &stream{t: t, resp: resp, lines: bufio.NewScanner(resp.Body), leave: func() {}}
	s.status, s.header, s.ids = resp.StatusCode, resp.Header, map[string]bool{}
	return s.end()
}

func TestHTTP10Client(t *testing.T) {
	u := newModel(t)
	g := start(t, "encode gzip\n"+embedded.interpreter(t)+"\n"+u.proxy())
	for _, form := range []fields{nil, streamed} {
		body := encode(run("print(6*7)", form))
		raw := g.raw(head("1.0", "Content-Length: "+strconv.Itoa(len(body)), "")+body, false)
		if strings.Contains(raw, "Transfer-Encoding") {
			t.Errorf("HTTP/1.0 has no chunks: %s", raw)
		}
		rawAnswer(t, raw).says(t, "returned: 42").ran(t, "print(6*7)", "42")
	}
}

func TestExpectContinue(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
	for _, form := range []fields{nil, streamed} {
		c := g.client("Expect", "100-continue")
		transport := c.http.Transport.(*http.Transport)
		transport.ExpectContinueTimeout = patience // the body does not go out by itself
		c.ask(run("print(6*7)", form)).says(t, "returned: 42")
	}
	for _, a := range u.asked() {
		if a.header.Get("Expect") != "" {
			t.Errorf("Expect went upstream: %v", a.header)
		}
	}
	t.Run("too large", func(t *testing.T) {
		g := start(t, embedded.interpreter(t, "max_body 1KiB")+"\n"+u.proxy())
		raw := g.raw(rawHead+"Expect: 100-continue\r\nContent-Length: 1000000\r\n\r\n", false)
		if !strings.HasPrefix(raw, "HTTP/1.1 413 ") {
			t.Errorf("the answer is %q", raw)
		}
	})
}
