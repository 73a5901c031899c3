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
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// What each program of the load prints: the sandbox's own name, how many
// programs ran in it, and what this request asked for.
const counting = `
try:
    name
except NameError:
    import uuid
    name, count = uuid.uuid4().hex, 0
count += 1
print(name, count, %q)
`

const (
	loadAtOnce   = 100
	loadSessions = 50
	loadCallers  = 10
)

// loadRequests is how many requests each engine gets.
var loadRequests = map[string]int{embedded.name: 1000, remote.name: 500}

// tally is what the answers of one session said.
type tally struct {
	mu     sync.Mutex
	names  map[string]bool
	counts map[string]bool
}

// take checks an answer.
func (y *tally) take(a *answer, token string) error {
	if err := a.said(token); err != nil {
		return err
	}
	if len(a.executed) != 1 {
		return fmt.Errorf("%d executions in %s", len(a.executed), a.body)
	}
	words := strings.Fields(a.output())
	if len(words) != 3 || words[2] != token {
		return fmt.Errorf("the output is %q, want the token %q", a.output(), token)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.names[words[0]] = true
	y.counts[words[1]] = true
	return nil
}

func TestLoad(t *testing.T) {
	forEngines(t, func(t *testing.T, e engine) {
		e.block(t) // starts the server that stands for E2B, which stays
		before := goleak.IgnoreCurrent()
		requests := loadRequests[e.name]
		u := newModel(t)
		g := start(t, e.interpreter(t, fmt.Sprintf("sessions {\nidle 2m\nmax %d\n}\nqueue_timeout 5m", 2*loadSessions))+"\n"+u.proxy())
		created := served.creations()
		sessions := make([]*tally, loadSessions)
		for i := range sessions {
			sessions[i] = &tally{names: map[string]bool{}, counts: map[string]bool{}}
		}
		transport := &http.Transport{MaxIdleConnsPerHost: loadAtOnce}
		jobs := make(chan int)
		var workers sync.WaitGroup
		for range loadAtOnce {
			workers.Go(func() {
				for i := range jobs {
					c := g.client("Authorization", fmt.Sprint("Bearer sk-", i%loadCallers))
					c.http.Transport = transport
					token := fmt.Sprint("token-", i)
					s, err := c.try(run(fmt.Sprintf(counting, token), in(fmt.Sprint(i%loadSessions)), map[bool]fields{true: streamed}[i/loadSessions%2 == 0]))
					if err == nil {
						var a *answer
						if a, err = s.rest(); err == nil {
							err = sessions[i%loadSessions].take(a, token)
						}
					}
					if err != nil {
						t.Errorf("request %d: %v", i, err)
					}
				}
			})
		}
		began := time.Now()
		for i := range requests {
			jobs <- i
		}
		close(jobs)
		workers.Wait()
		t.Logf("%d requests in %v", requests, time.Since(began).Round(time.Millisecond))
		transport.CloseIdleConnections()

		for i, y := range sessions {
			if len(y.names) != 1 || len(y.counts) != requests/loadSessions {
				t.Errorf("session %d had %d sandboxes and counted to %d, want 1 and %d", i, len(y.names), len(y.counts), requests/loadSessions)
			}
		}
		if n := served.creations() - created; e.name == remote.name && n != loadSessions {
			t.Errorf("%d sandboxes were created for %d sessions", n, loadSessions)
		}
		if n := sandboxes(); e.name == embedded.name && n != loadSessions {
			t.Errorf("%d sandboxes live for %d sessions", n, loadSessions)
		}
		// With a shorter life, which holds for those that there are, all expire.
		if err := g.load(e.interpreter(t, "sessions {\nidle 1s\n}") + "\n" + u.proxy()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "every sandbox expires", func() bool {
			if e.name == embedded.name {
				return sandboxes() == 0
			}
			n, err := served.alive(context.Background())
			return n == 0 && err == nil
		})
		g.client().insist(run("print(1)")).says(t, "1") // it still works
		g.stop()
		u.Close()
		if err := goleak.Find(append(caddysOwn, before)...); err != nil {
			t.Error(err)
		}
	})
}
