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

package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// TestGatewaysInAnyOrderOfEvents drives two processes that share a server and a
// storage with requests, disconnects, crashes and failures, in random order, and
// checks after each step what must always hold.
func TestGatewaysInAnyOrderOfEvents(t *testing.T) {
	seeds := 30
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, uint64(seed))
				for range 150 {
					c.step()
					c.check()
				}
				c.finish()
			})
		})
	}
}

// cluster is two processes, and those that have died before them.
type cluster struct {
	t      *testing.T
	f      *fakeE2B
	m      *memory
	live   []*process
	dead   []*process
	logs   []*observer.ObservedLogs // of all processes
	limits Limits
	wg     sync.WaitGroup

	mu     sync.Mutex
	rand   *rand.Rand
	faulty bool                 // calls go wrong
	down   bool                 // so do those of the storage
	twins  map[string]time.Time // since when a session has several sandboxes
}

func newCluster(t *testing.T, seed uint64) *cluster {
	c := &cluster{
		t: t, f: newFake(t), m: newMemory(), limits: testLimits(), rand: rand.New(rand.NewPCG(seed, 11)),
		faulty: seed%3 == 1, down: seed%3 == 2, twins: map[string]time.Time{},
	}
	c.limits.MaxPerIdentity, c.limits.Idle = 3, 5*time.Minute
	c.live = []*process{c.boot(), c.boot()}
	if c.faulty {
		c.f.inject(c.fault)
	}
	if c.down {
		c.m.inject(func(string) error {
			if c.intn(20) == 0 {
				return errors.New("storage fails")
			}
			return nil
		})
	}
	return c
}

func (c *cluster) boot() *process {
	core, logs := observer.New(zapcore.DebugLevel)
	c.logs = append(c.logs, logs)
	return newProcess(c.f, c.m, func(config *Config) { config.Limits, config.Logger = c.limits, zap.New(core) })
}

func (c *cluster) intn(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rand.IntN(n)
}

// fault makes one call in twenty go wrong, but for deletions, which no process
// may rely on.
func (c *cluster) fault(op, _ string) *fault {
	if op == "connect" && c.intn(20) == 0 {
		return &fault{status: 502} // never a 404 for what is there
	}
	if op == "connect" || op == "delete" || c.intn(20) != 0 {
		return nil
	}
	faults := []fault{
		{status: 500},
		{dial: true},
		{cut: true},
		{status: 429},
		{delay: 3 * time.Second},
		notFound, portClosed,
	}
	return &faults[c.intn(len(faults))]
}

func (c *cluster) step() {
	switch c.intn(12) {
	case 0, 1, 2, 3, 4:
		c.start(c.intn(2), fmt.Sprint(c.intn(4)))
	case 5: // the same session in both at the same moment
		session := fmt.Sprint(c.intn(4))
		c.start(0, session)
		c.start(1, session)
	case 6, 7:
		time.Sleep(time.Duration(c.intn(1000)) * time.Millisecond)
	case 8, 9:
		time.Sleep(time.Duration(c.intn(60)) * time.Second)
	case 10:
		if c.intn(3) == 0 {
			time.Sleep(6 * time.Minute)
		}
	case 11:
		c.crash(c.intn(2))
	}
}

// crash ends a process, with a signal or in order, and starts another one.
func (c *cluster) crash(i int) {
	old := c.live[i]
	c.live[i] = c.boot()
	c.dead = append(c.dead, old)
	if c.intn(2) == 0 {
		old.kill()
		return
	}
	c.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = old.p.Drain(ctx, true) // what it could not do in time is what a crash leaves
		old.kill()
	})
}

// start begins a request at a process.
func (c *cluster) start(i int, session string) {
	p := c.live[i]
	c.wg.Go(func() {
		ctx, cancel := context.WithCancel(p.ctx)
		defer cancel()
		if c.intn(4) == 0 {
			leave := time.AfterFunc(time.Duration(c.intn(20_000))*time.Millisecond, cancel)
			defer leave.Stop()
		}
		begin := time.Now()
		caller := []Caller{alice, bob}[c.intn(2)]
		if p.p.Admit(caller, session) != nil {
			return
		}
		h := p.p.Open(caller, session)
		defer h.Close()
		if c.intn(2) == 0 {
			h.Prepare()
			time.Sleep(time.Duration(c.intn(2000)) * time.Millisecond)
		}
		for range c.intn(4) {
			code := []string{"x = 1", "x = 1\nsleep 2s", "x = 1\nsleep 30s", "spin"}[max(0, c.intn(8)-4)]
			h.Run(ctx, code, func(e2b.Event) {})
			if ctx.Err() == nil {
				time.Sleep(time.Duration(c.intn(3)) * 40 * time.Second)
			}
		}
		if took := time.Since(begin); took > 30*time.Minute {
			c.t.Errorf("a request took %v", took)
		}
	})
}

// told returns what the processes said about a sandbox.
func (c *cluster) told(id string) string {
	var text strings.Builder
	for i, logs := range c.logs {
		for _, entry := range logs.FilterField(zap.String("sandbox_id", id)).All() {
			fmt.Fprintf(&text, "process %d at %v: %s %v\n", i, entry.Time.Format("15:04:05.000"), entry.Message, entry.ContextMap()["error"])
		}
	}
	return text.String()
}

// check looks at the server and the storage at a moment when nothing moves.
func (c *cluster) check() {
	c.t.Helper()
	synctest.Wait()
	sessions := map[string][]string{}
	for _, b := range c.f.aliveBoxes() {
		key := b.metadata[metaSession]
		sessions[key] = append(sessions[key], b.id)
	}
	for key, ids := range sessions {
		n := len(ids)
		since, known := c.twins[key]
		switch {
		case n < 2:
			delete(c.twins, key)
		case !known:
			c.twins[key] = time.Now()
		case time.Since(since) > 2*grace(c.limits)+scanEvery && !c.down:
			c.t.Errorf("session %.8s has %d sandboxes for %v", key, n, time.Since(since))
			for _, id := range ids {
				c.t.Logf("%s:\n%s", id, c.told(id))
			}
			delete(c.twins, key)
		}
	}
	c.f.mu.Lock()
	for id, b := range c.f.boxes {
		if b.usedDead && !c.down {
			c.t.Errorf("sandbox %s was deleted while a program ran:\n%s", id, c.told(id))
			b.usedDead = false
		}
	}
	c.f.mu.Unlock()
	if c.down {
		return // it may know less than there is
	}
	callers := map[string]int{}
	for key, rec := range c.m.records(c.t) {
		if rec.lives() {
			n, _ := c.live[0].p.shelf.parseKey(key)
			callers[n.identity]++
		}
	}
	for _, n := range callers {
		if n > c.limits.MaxPerIdentity {
			c.t.Errorf("a caller has %d sessions", n)
		}
	}
}

// finish ends all requests and processes, and looks at what is left.
func (c *cluster) finish() {
	c.t.Helper()
	c.wg.Wait()
	c.check()
	for _, p := range append(c.dead, c.live...) {
		p.bury(c.t)
	}
	c.f.wait()
	time.Sleep(time.Hour)
	if n := len(c.f.aliveBoxes()); n != 0 {
		c.t.Errorf("%d sandboxes outlived everything", n)
	}
}
