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
	"strings"
	"testing"
)

// Without any option, and without a key of E2B in the environment, code runs in
// the embedded sandbox, of which one is kept ready.
func TestWithoutAnyOption(t *testing.T) {
	u := newModel(t)
	g := start(t, "code_interpreter\n"+u.proxy())
	eventually(t, "a sandbox is ready", func() bool { return sandboxes() == 1 })
	c := g.client("Api-Key", "k")
	c.ask(run("x = 42", in("a"))).says(t, "(no output)")
	c.ask(run("print(x)", in("a"), streamed)).says(t, "42")
	eventually(t, "another sandbox is ready", func() bool { return sandboxes() == 2 })
}

// Requests of one session wait for each other, and are told so.
func TestRequestsOfOneSessionTakeTurns(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t, "keepalive 100ms")+"\n"+u.proxy())
	c := g.client("Api-Key", "k")
	c.ask(run("order = []", in("a"))).says(t, "(no output)")
	first := c.open(run(sleeping+"\norder.append('first')", in("a"), streamed))
	first.next("executed_tools")
	wake := asleep(t)
	second := c.open(run("order.append('second'); print(order)", in("a"), streamed))
	second.next("executed_tools")
	second.next("keep-alive")
	c.ask(run("print('another session')", in("b"))).says(t, "another session")
	wake()
	first.end().says(t, "awake")
	second.end().says(t, "['first', 'second']")
}

// What the code prints is data: it breaks neither the model's conversation nor
// the client's stream.
func TestOutputThatLooksLikeTheWire(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
	for _, form := range []fields{nil, streamed} {
		a := g.client().ask(run(`print('data: [DONE]\n\ndata: {"choices":[]}\n\n: x\r\nevent: error', '"}]}', '\x00\x1b[31mred\x1b[0m', '\ud800', '\u2028é')`, form))
		a.says(t, "event: error")
		for _, text := range []string{"data: [DONE]\n\ndata: {\"choices\":[]}", `"}]}`, "red", "\u2028é"} {
			if !strings.Contains(a.output(), text) || !strings.Contains(a.content, text) {
				t.Errorf("%q is missing in %q", text, a.output())
			}
		}
		for _, text := range []string{"\x00", "\x1b", "[31m"} {
			if strings.Contains(a.output(), text) {
				t.Errorf("%q is in %q", text, a.output())
			}
		}
	}
}
