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
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// sleeping runs a program that sleeps in a process of its own until the test
// wakes it, and says so.
const sleeping = "import subprocess\nsubprocess.run(['sleep', '300'])\nprint('awake')"

// asleep waits until the program of sleeping runs, and returns what wakes it.
func asleep(t *testing.T) (wake func()) {
	t.Helper()
	eventually(t, "the program sleeps", func() bool { return len(processes("sleep")) > 0 })
	return func() {
		for _, p := range processes("sleep") {
			p.kill(t)
		}
	}
}

// insist is ask for a client whose connection may go to the server of a
// configuration that is just ending, which closes it: Caddy does so with any
// handler, and clients try again.
func (c *client) insist(body any) *answer {
	c.t.Helper()
	for {
		s, err := c.try(body)
		switch {
		case err == nil:
			return s.end()
		case !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET):
			c.t.Fatal(err)
		}
	}
}

// perRequest is a proxy that keeps no connections, because Caddy leaves those
// of an old configuration to their timeout.
func (u *upstream) perRequest() string {
	return u.proxy() + " {\ntransport http {\nkeepalive off\n}\n}"
}

// reloadCount is how many reloads there are in a test; more by the environment variable
// RELOADS.
func reloadCount(t *testing.T) int {
	t.Helper()
	value := os.Getenv("RELOADS")
	if value == "" {
		return 30
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatalf("RELOADS is no number: %v", err)
	}
	return n
}

func TestReloadKeepsSessionsAndStreams(t *testing.T) {
	reloads := reloadCount(t)
	forEngines(t, func(t *testing.T, e engine) {
		u, other := newModel(t), newModel(t)
		g := start(t, e.interpreter(t)+"\n"+u.perRequest(), "respond one")
		c := g.client("Api-Key", "k")
		c.ask(run("x = 42", in("kept"))).says(t, "(no output)")
		s := c.open(run(sleeping, in("used"), streamed))
		s.next("executed_tools")
		wake := asleep(t)

		goroutines := 0
		for i := range reloads {
			block := e.interpreter(t, fmt.Sprintf("max_rounds %d\nsessions {\nidle %dm\nmax_per_identity %d\n}", 2+i%3, 10+i%5, 3+i%4))
			proxy, second := u.perRequest(), "respond two"
			if i%2 == 0 {
				proxy = other.perRequest()
			}
			if i%3 == 0 { // a second handler with the same sandboxes comes and goes
				second = block + "\n" + proxy
			}
			if err := g.load(block+"\n"+proxy, second); err != nil {
				t.Fatal(err)
			}
			if err := g.load(e.interpreter(t)+"\n"+proxy, "code_interpreter {\nsandbox local {\npython /nonexistent\n}\n}"); err == nil {
				t.Fatal("a configuration that cannot work was loaded")
			}
			c.insist(run("print(x)", in("kept"), map[bool]fields{true: streamed}[i%2 == 0])).says(t, "42")
			if i == reloads/3 {
				goroutines = runtime.NumGoroutine()
			}
		}
		wake()
		s.end().says(t, "awake")
		c.insist(run("print(x)", in("kept"))).says(t, "42")
		eventually(t, "goroutines of old configurations end", func() bool { return runtime.NumGoroutine() <= goroutines+5 })
	})
}

// Other sandboxes are another pool: the old one ends, but not under a request.
func TestReloadToOtherSandboxesLeavesRequestsAlone(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
	c := g.client("Api-Key", "k")
	c.ask(run("x = 42", in("idle"))).says(t, "(no output)")
	s := c.open(run(sleeping, in("used"), streamed))
	s.next("executed_tools")
	wake := asleep(t)
	if err := g.load("code_interpreter {\nsandbox local {\nwarm 0\nmemory 512MiB\n}\n}\n" + u.proxy()); err != nil {
		t.Fatal(err)
	}
	c.insist(run("print(x)", in("idle"))).says(t, "NameError")
	wake()
	s.end().says(t, "awake")
	eventually(t, "the sandbox of the old pool ends", func() bool { return sandboxes() == 1 })
}

// The handler may be gone from the configuration while its request goes on.
func TestReloadWithoutTheHandlerLeavesRequestsAlone(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
	s := g.client().open(knobs("[rounds 2]", sleeping, streamed))
	s.next("executed_tools")
	wake := asleep(t)
	if err := g.load(u.proxy()); err != nil {
		t.Fatal(err)
	}
	wake()
	s.next("awake")
	wake = asleep(t) // the second round
	wake()
	s.end().says(t, "awake")
	eventually(t, "every sandbox ends", func() bool { return sandboxes() == 0 })
}
