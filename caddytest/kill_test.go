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
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func (p process) kill(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		t.Errorf("killing %v: %v", p, err)
	}
}

// outer returns the bubblewrap processes that this one has started: one for
// each sandbox.
func outer() []process {
	var list []process
	for _, p := range processes("bwrap") {
		if p.parent == os.Getpid() {
			list = append(list, p)
		}
	}
	return list
}

// sandboxes is how many embedded sandboxes there are.
func sandboxes() int { return len(outer()) }

// Whatever dies in the middle of a run, the client gets an answer long before
// its deadline, and the session goes on.
func TestKillingASandboxInTheMiddleOfARun(t *testing.T) {
	forEngines(t, func(t *testing.T, e engine) {
		u := newModel(t)
		g := start(t, e.interpreter(t)+"\n"+u.proxy())
		for name, kill := range map[string]func(t *testing.T){
			"bubblewrap": func(t *testing.T) {
				t.Helper()
				for _, p := range outer() {
					p.kill(t)
				}
			},
			"python": func(t *testing.T) {
				t.Helper()
				for _, p := range processes("python") {
					p.kill(t)
				}
			},
			"the interpreter alone": func(t *testing.T) {
				t.Helper()
				all := processes("python")
				all[len(all)-1].kill(t)
			},
		} {
			t.Run(name, func(t *testing.T) {
				for _, form := range []fields{nil, streamed} {
					c := g.client("Api-Key", name)
					c.ask(run("x = 42", in("a"))).says(t, "(no output)")
					answered := make(chan *answer, 1)
					go func() {
						s, err := c.try(run("import subprocess\nprint('before', flush=True)\nsubprocess.run(['sleep', '300'])", in("a"), form))
						if err != nil {
							t.Error(err)
							close(answered)
							return
						}
						a, err := s.rest()
						if err != nil {
							t.Error(err)
						}
						answered <- a
					}()
					asleep(t)
					began := time.Now()
					kill(t)
					a := await(t, "the client is answered", answered)
					within(t, 0, 30*time.Second, began)
					if a == nil {
						t.FailNow()
					}
					a.says(t, "lost")
					if !strings.Contains(a.content, "before") {
						t.Errorf("the output so far is missing: %q", a.content)
					}
					for _, p := range processes("sleep") { // an orphan of the interpreter
						p.kill(t)
					}
					c.ask(run("print(1)", in("a"))).says(t, "1")
					c.ask(run("print(x)", in("a"))).says(t, "NameError")
				}
			})
		}
	})
}

func TestCodeThatEndsItsInterpreter(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
	c := g.client("Api-Key", "k")
	c.ask(run("open('file', 'w').write('kept'); x = 42", in("a")))
	c.ask(run("import os\nos.kill(os.getpid(), 9)", in("a"))).says(t, "lost")
	c.ask(run("print(open('file').read())", in("a"))).says(t, "kept")
	c.ask(run("print(x)", in("a"))).says(t, "NameError")
}

func TestKillingTheUpstreamInTheMiddle(t *testing.T) {
	for _, form := range []fields{nil, streamed} {
		u := newModel(t)
		g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
		answered := make(chan *answer, 1)
		go func() {
			defer close(answered)
			s, err := g.client().try(run(sleeping, form))
			if err != nil {
				t.Error(err)
				return
			}
			a, err := s.rest()
			if err != nil {
				t.Error(err)
			}
			answered <- a
		}()
		wake := asleep(t)
		u.CloseClientConnections()
		u.Close()
		began := time.Now()
		wake()
		a := await(t, "the client is answered", answered)
		within(t, 0, 30*time.Second, began)
		status := http.StatusBadGateway
		if form != nil {
			status = http.StatusOK
		}
		a.refuses(t, status, "could not be reached")
		if form != nil && !strings.Contains(a.output(), "awake") {
			t.Errorf("the stream does not say what was executed:\n%s", a.body)
		}
	}
}

// A connection that breaks while the model thinks is made anew.
func TestConnectionToTheUpstreamThatBreaks(t *testing.T) {
	gate := newGate()
	turns := make(chan int, 10)
	n := 0
	model := newModel(t).Config.Handler
	u := newUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++ // one request at a time
		turns <- n
		if n == 2 && !gate.wait(r) {
			return
		}
		model.ServeHTTP(w, r)
	}))
	g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
	s := g.client().open(run("print(6*7)", streamed))
	for await(t, "the model is asked", turns) < 2 {
	}
	u.CloseClientConnections()
	a := s.end().says(t, "returned: 42")
	if len(a.executed) != 1 || n != 3 {
		t.Errorf("%d executions, %d turns:\n%s", len(a.executed), n, a.body)
	}
}
