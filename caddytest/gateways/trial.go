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

// Package gateways puts several gateways to the test, each a process of its own,
// that share sessions through a storage.
package gateways

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/caddytest/scriptedmodel"
)

// workers are how many requests are under way at a time.
const workers = 8

// environment is that of the go command, whose cache is in the home directory,
// before a TestMain gives itself another one.
var environment = os.Environ()

// Build compiles the program of a package for a test.
func Build(t *testing.T, pkg string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "caddy")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, pkg)
	cmd.Env = environment
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, out)
	}
	return binary
}

// Trial is a test of two gateways with one storage and one server of sandboxes.
type Trial struct {
	Binary   string // a Caddy with this module and the storage's
	Storage  string // the global option of the Caddyfile
	Requests int
	Callers  int
	Sessions int // of each caller
}

// Full returns the trial in full size if the environment variable SOAK_SHARED is
// set: 2,000 requests over 100 sessions.
func (tr Trial) Full() Trial {
	if os.Getenv("SOAK_SHARED") != "" {
		tr.Requests, tr.Callers, tr.Sessions = 2000, 10, 10
	}
	return tr
}

// Run sends requests of all sessions to both gateways at random. Half-way one of
// them dies and another one takes its place; later the other one is restarted in
// order. Each program counts in a variable of its session: none may be lost.
func (tr Trial) Run(t *testing.T) {
	t.Helper()
	boxes := serveSandboxes(t)
	model := httptest.NewServer(new(scriptedmodel.Model))
	t.Cleanup(model.Close)
	f := &fleet{t: t, trial: tr, boxes: boxes, upstream: model.URL, counts: make(map[session]*count)}
	for range 2 {
		f.members = append(f.members, f.boot(freePort(t)))
	}
	// The events come in the middle of requests: who sends one does not wait.
	var events sync.WaitGroup
	jobs := make(chan int)
	var work sync.WaitGroup
	for range workers {
		work.Go(func() {
			for i := range jobs {
				f.request(session{caller: i % tr.Callers, id: rand.IntN(tr.Sessions)}) //nolint:gosec // no secret
			}
		})
	}
	for i := range tr.Requests {
		switch i {
		case tr.Requests / 2:
			events.Go(func() { f.replace(0, syscall.SIGKILL) })
		case tr.Requests * 3 / 4:
			events.Go(func() { f.replace(1, syscall.SIGTERM) })
		}
		jobs <- i
	}
	close(jobs)
	work.Wait()
	events.Wait()
	f.verify()
	for _, g := range f.members {
		g.end(t, syscall.SIGTERM)
	}
}

// session is one of a caller's.
type session struct {
	caller, id int
}

// count is what the programs of a session have counted.
type count struct {
	seen  map[int]bool
	tries int // requests, those without an answer included
}

// fleet is the gateways and what is known of the sessions.
type fleet struct {
	t        *testing.T
	trial    Trial
	boxes    *sandboxes
	upstream string

	mu      sync.Mutex
	members []*gateway
	counts  map[session]*count
}

func (f *fleet) boot(port string) *gateway {
	return launch(f.t, f.trial.Binary, port, fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	storage %s
	log {
		level DEBUG
	}
}
http://:%s {
	bind 127.0.0.1
	code_interpreter {
		sandbox e2b {
			api_key %s
			api_url %s
			sandbox_url %s
		}
		sessions {
			shared
			max_per_identity %d
		}
		exec_timeout 20s
	}
	reverse_proxy %s
}
`, f.trial.Storage, port, sandboxKey, f.boxes.url, f.boxes.url, f.trial.Sessions, f.upstream))
}

// replace ends a gateway and starts another one in its place.
func (f *fleet) replace(i int, signal syscall.Signal) {
	f.mu.Lock()
	old := f.members[i]
	f.mu.Unlock()
	old.end(f.t, signal)
	next := f.boot(old.port)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members[i] = next
}

// request counts once in a session, at one gateway or, if that does not answer,
// at the other.
func (f *fleet) request(s session) {
	late := time.Now().Add(patience)
	for try := rand.IntN(2); ; try++ { //nolint:gosec // no secret
		f.mu.Lock()
		g := f.members[try%len(f.members)]
		c := f.counts[s]
		if c == nil {
			c = &count{seen: make(map[int]bool)}
			f.counts[s] = c
		}
		c.tries++
		f.mu.Unlock()
		n, err := g.count(s)
		if errors.Is(err, errNoAnswer) && time.Now().Before(late) {
			time.Sleep(100 * time.Millisecond) // it is being replaced
			continue
		}
		if err != nil {
			f.t.Errorf("session %v: %v", s, err)
			return
		}
		f.note(s, n)
		return
	}
}

func (f *fleet) note(s session, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.counts[s]
	if c.seen[n] {
		f.t.Errorf("session %v has counted to %d a second time: its variables were lost", s, n)
	}
	c.seen[n] = true
}

// verify looks at what is left when all is done.
func (f *fleet) verify() {
	f.t.Helper()
	for s, c := range f.counts {
		highest := 0
		for n := range c.seen {
			highest = max(highest, n)
		}
		if highest < len(c.seen) || highest > c.tries {
			f.t.Errorf("session %v has counted to %d in %d programs, of which %d were answered", s, highest, c.tries, len(c.seen))
		}
	}
	created, deleted := f.boxes.calls()
	if created != len(f.counts) || deleted != 0 {
		f.t.Errorf("%d sandboxes were created for %d sessions, and %d deleted", created, len(f.counts), deleted)
	}
	f.t.Logf("%d requests over %d sessions, %d sandboxes created", f.trial.Requests, len(f.counts), created)
}
