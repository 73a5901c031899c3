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
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// chunkOf is an event with a piece of text.
func chunkOf(text string) string {
	return `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"` +
		text + `"},"finish_reason":null}]}`
}

const finished = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// sendEvents writes server-sent events, each at once.
func sendEvents(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, data := range events {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data) // a client that is gone is seen by its context
		_ = http.NewResponseController(w).Flush()
	}
}

// gate is a model whose stream goes on when the test says so.
type gate struct {
	open chan struct{}
	left chan struct{} // gets one when a request was given up
}

func newGate() *gate { return &gate{open: make(chan struct{}), left: make(chan struct{}, 10)} }

func (g *gate) wait(r *http.Request) bool {
	select {
	case <-g.open:
		return true
	case <-r.Context().Done():
		g.left <- struct{}{}
		return false
	}
}

// The model sends nothing before the client has what it sent before: anything
// that holds a stream back would hang.
func TestStreamArrivesAsTheModelSendsIt(t *testing.T) {
	for _, s := range shapes {
		for _, encoding := range []string{"", "gzip"} {
			t.Run(s.name+" "+encoding, func(t *testing.T) {
				g := newGate()
				u := newUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					for i := range 5 {
						sendEvents(w, chunkOf(fmt.Sprint("piece ", i, ".")))
						if !g.wait(r) {
							return
						}
					}
					sendEvents(w, finished, "[DONE]")
				}))
				gw := start(t, s.block(embedded.interpreter(t), u))
				c := newClient(t, gw.url+s.base, s.header...)
				if encoding != "" { // else the transport asks for gzip and decodes it
					c.header.Set("Accept-Encoding", "identity")
				}
				answer := c.open(run("none", streamed))
				for i := range 5 {
					answer.next(fmt.Sprint("piece ", i, "."))
					g.open <- struct{}{}
				}
				answer.end().says(t, "piece 4.")
				for _, a := range u.asked() {
					if got := a.header.Get("Accept-Encoding"); got != "gzip" { // the transport's own
						t.Errorf("Accept-Encoding %q went upstream", got)
					}
				}
			})
		}
	}
}

func TestKeepAlivesDuringASilentRun(t *testing.T) {
	u := newModel(t)
	g := start(t, "encode gzip\nlog\n"+embedded.interpreter(t, "keepalive 100ms")+"\n"+u.proxy())
	for _, body := range []fields{
		run("import time; time.sleep(1); print('done')", streamed),
		knobs("[silent 1 after]", "print('done')", streamed),
	} {
		began := time.Now()
		a := g.client().ask(body).says(t, "done")
		if most := int(time.Since(began) / (100 * time.Millisecond)); a.comments < 3 || a.comments > most {
			t.Errorf("%d keep-alives in %v\n%s", a.comments, time.Since(began), a.body)
		}
	}
	if a := g.client().ask(run("import time; time.sleep(0.5); print('slept')")).says(t, "slept"); strings.Contains(a.body, "keep-alive") {
		t.Errorf("a keep-alive in JSON: %s", a.body)
	}
}

func TestClientThatLeavesCancelsTheUpstream(t *testing.T) {
	for _, form := range []fields{nil, streamed} {
		gate := newGate()
		began := make(chan struct{}, 1)
		u := newUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if form != nil {
				sendEvents(w, chunkOf("half"))
			}
			began <- struct{}{}
			gate.wait(r)
		}))
		g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
		if form == nil {
			ctx, leave := context.WithCancel(context.Background())
			answered := make(chan error, 1)
			go func() {
				_, err := g.client().send(ctx, strings.NewReader(encode(run("print(1)"))))
				answered <- err
			}()
			await(t, "the model is asked", began)
			leave()
			if err := await(t, "the client gives up", answered); err == nil {
				t.Error("the client got an answer")
			}
		} else {
			s := g.client().open(run("print(1)", form))
			s.next("half")
			s.leave()
			_ = s.resp.Body.Close()
		}
		await(t, "the request to the model ends", gate.left)
	}
}

func TestClientThatLeavesCancelsTheRun(t *testing.T) {
	forEngines(t, func(t *testing.T, e engine) {
		u := newModel(t)
		g := start(t, e.interpreter(t)+"\n"+u.proxy())
		c := g.client("Api-Key", "k")
		c.ask(run("x = 42", in("a"))).says(t, "(no output)")
		u.asked()
		s := c.open(run("import subprocess\nsubprocess.run(['sleep', '300'])", in("a"), streamed))
		s.next("executed_tools")
		eventually(t, "the program runs", func() bool { return len(processes("sleep")) > 0 })
		s.leave()
		_ = s.resp.Body.Close()
		eventually(t, "the program ends", func() bool { return len(processes("sleep")) == 0 })
		began := time.Now()
		c.ask(run("print(x)", in("a"))).says(t, "42")
		within(t, 0, 30*time.Second, began)
		if n := len(u.asked()); n != 3 {
			t.Errorf("the model was asked %d times, want one for the request that ended and two for the next", n)
		}
	})
}

// Bytes of a client that reads slowly do not pile up for ever, and what it
// reads in the end is complete.
func TestSlowReaderGetsEverything(t *testing.T) {
	const events = 500
	piece := strings.Repeat("x", 4000)
	u := newUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range events {
			sendEvents(w, chunkOf(piece))
		}
		sendEvents(w, finished, "[DONE]")
	}))
	g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
	s := g.client().open(run("none", streamed))
	s.next(piece)
	a := s.end().says(t, piece)
	if len(a.content) != events*len(piece) {
		t.Errorf("%d bytes of text, want %d", len(a.content), events*len(piece))
	}
}
