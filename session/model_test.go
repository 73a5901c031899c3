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
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// TestAnyOrderOfEvents drives a pool with requests, disconnects, panics, lost
// sandboxes, changed limits and a failure of any call, in random order, and
// checks after each step what must always hold.
func TestAnyOrderOfEvents(t *testing.T) {
	seeds := 30
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel(t, uint64(seed))
				for range 150 {
					m.step()
					m.check()
				}
				m.finish()
			})
		})
	}
}

// model knows what must hold for a pool, and what was seen of each session.
type model struct {
	t    *testing.T
	f    *fakeE2B
	p    *Pool
	rand *rand.Rand
	wg   sync.WaitGroup

	mu     sync.Mutex
	left   map[string]bool // sandboxes that were left to their timeout
	limits Limits          // the highest caps so far
	seen   map[string]*history
	last   int
	found  int // sandboxes that were found again
}

// history is what a session's programs saw of the variables.
type history struct {
	ran       int // programs that found out what there is
	forgotten int // that found nothing
	told      int // losses that were told
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{
		t: t, f: newFake(t), rand: rand.New(rand.NewPCG(seed, 7)),
		left: map[string]bool{}, seen: map[string]*history{},
	}
	m.limits = testLimits()
	m.limits.MaxPerIdentity, m.limits.Max, m.limits.Idle = 3, 6, 5*time.Minute
	m.p = newTestPool(m.f, func(c *Config) {
		c.Limits = m.limits
		c.Remote = seed%3 != 0
		c.Logger = zap.New(m)
	})
	m.f.inject(m.fault)
	return m
}

// The model is a log core: it learns which sandboxes are left to their timeout.

func (m *model) Enabled(zapcore.Level) bool        { return true }
func (m *model) With([]zapcore.Field) zapcore.Core { return m }
func (m *model) Sync() error                       { return nil }

func (m *model) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.AddCore(e, m)
}

func (m *model) Write(e zapcore.Entry, fields []zapcore.Field) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case strings.Contains(e.Message, "left to its timeout"):
		m.left[fields[0].String] = true
	case strings.Contains(e.Message, "found again"):
		m.found++
	}
	return nil
}

// intn is safe for the goroutines of the requests.
func (m *model) intn(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rand.IntN(n)
}

// fault makes one call in ten go wrong. It is called with the server's mutex.
func (m *model) fault(op, _ string) *fault {
	if m.intn(10) != 0 {
		return nil
	}
	faults := []fault{
		{status: 500},
		{status: 503},
		{dial: true},
		{cut: true},
		{status: 429},
		{status: 401},
		{status: 404},
		{delay: 3 * time.Second},
		{delay: 20 * time.Second},
		{hang: true},
		{status: 400},
		notFound, portClosed, contextGone,
	}
	if op == "delete" { // not even these: a sandbox that cannot be deleted is checked elsewhere
		faults = faults[:5]
	}
	return &faults[m.intn(len(faults))]
}

func (m *model) step() {
	switch m.intn(12) {
	case 0, 1, 2, 3, 4:
		m.request()
	case 5:
		m.burst()
	case 6, 7:
		time.Sleep(time.Duration(m.intn(1000)) * time.Millisecond)
	case 8, 9:
		time.Sleep(time.Duration(m.intn(60)) * time.Second)
	case 10:
		if m.intn(4) == 0 {
			time.Sleep(6 * time.Minute)
		}
		if boxes := m.f.aliveBoxes(); len(boxes) > 0 {
			m.f.vanish(boxes[m.intn(len(boxes))].id)
		}
	case 11:
		limits := m.limits
		limits.Max -= m.intn(3)
		limits.MaxPerIdentity -= m.intn(3)
		limits.Idle = time.Duration(1+m.intn(5)) * time.Minute
		m.p.SetLimits(limits)
	}
}

// burst is many requests of one session at once.
func (m *model) burst() {
	for range 3 {
		m.start(alice, "burst")
	}
}

func (m *model) request() {
	caller := []Caller{alice, bob, {Kind: "key", Value: "alice"}}[m.intn(3)]
	m.start(caller, []string{"", "", "1", "2", "3", "4"}[m.intn(6)])
}

// start begins a request on a goroutine of its own.
func (m *model) start(c Caller, session string) {
	m.wg.Go(func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if m.intn(3) == 0 {
			leave := time.AfterFunc(time.Duration(m.intn(20_000))*time.Millisecond, cancel)
			defer leave.Stop()
		}
		begin := time.Now()
		m.serve(ctx, c, session)
		if took := time.Since(begin); took > 30*time.Minute {
			m.t.Errorf("a request took %v", took)
		}
	})
}

// serve is what a handler does.
func (m *model) serve(ctx context.Context, c Caller, session string) {
	defer func() {
		if r := recover(); r != nil && r != "client gone" {
			panic(r)
		}
	}()
	if m.p.Admit(c, session) != nil {
		return
	}
	h := m.p.Open(c, session)
	defer h.Close()
	if m.intn(2) == 0 {
		h.Prepare()
		time.Sleep(time.Duration(m.intn(2000)) * time.Millisecond)
	}
	for range m.intn(4) {
		m.program(ctx, h)
		time.Sleep(time.Duration(m.intn(3)) * 40 * time.Second)
	}
}

// program runs one that looks for the variable of the one before.
func (m *model) program(ctx context.Context, h *Handle) {
	m.mu.Lock()
	m.last++
	code := "get x\n" + fmt.Sprint("x = ", m.last)
	m.mu.Unlock()
	code += []string{"", "\nsleep 2s", "\nsleep 30s", "\nspin", "\nwedge", "\nexit"}[max(0, m.intn(12)-6)]
	panics := m.intn(15) == 0
	found, ran := false, false
	o := h.Run(ctx, code, func(ev e2b.Event) {
		if ev.Type == e2b.Stdout {
			ran, found = true, ev.Text != ""
		}
		if panics && ran {
			panic("client gone")
		}
	})
	// What nobody reads tells nothing, and these two tell of one more loss.
	readable := o.Status != Canceled && o.Status != Interrupted && o.Status != Restarted
	m.note(h, ran && readable, found, o.StateLost)
	if o.Status == 0 || (o.Status == Done) != (o.Err == nil) && o.Status != Restarted {
		m.t.Errorf("outcome %+v", o)
	}
	if o.StateLost && (o.Status == Canceled || o.Status == Unavailable || o.Status == Busy) {
		m.t.Errorf("a loss was told to nobody: %+v", o)
	}
}

func (m *model) note(h *Handle, ran, found, told bool) {
	if h.key == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.seen[h.key]
	if s == nil {
		s = &history{}
		m.seen[h.key] = s
	}
	if ran {
		s.ran++
		if !found {
			s.forgotten++
		}
	}
	if told {
		s.told++
	}
}

// check looks at the server and the table at a moment when nothing moves.
func (m *model) check() {
	m.t.Helper()
	synctest.Wait()
	alive := m.f.aliveBoxes()
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.f.mu.Lock()
	defer m.f.mu.Unlock()

	known := map[string]bool{}
	places := 0
	for e := range m.p.table.entries {
		if e.box != nil {
			known[e.box.id] = true
		}
		if e.place {
			places++
		}
		if e.box != nil && !e.place {
			m.t.Errorf("sandbox %s has no place", e.box.id)
		}
	}
	owned := 0
	sessions := map[string]string{}
	for _, b := range alive {
		_, ending := m.p.ending[b.id]
		switch {
		case ending:
			continue
		case known[b.id]:
			owned++
		case b.orphan, m.left[b.id]:
			continue
		default:
			m.t.Errorf("nobody owns sandbox %s of %s", b.id, b.metadata[metaKind])
		}
		if key := b.metadata[metaSession]; key != "" {
			if other := sessions[key]; other != "" {
				m.t.Errorf("sandboxes %s and %s belong to one session", other, b.id)
			}
			sessions[key] = b.id
		}
	}
	if owned > m.limits.Max || m.p.table.live > m.limits.Max || m.p.table.live < places {
		m.t.Errorf("%d sandboxes, %d entries with a place, %d places taken, at most %d", owned, places, m.p.table.live, m.limits.Max)
	}
	for _, id := range m.p.table.identities {
		if n := id.recent.Len(); n > m.limits.MaxPerIdentity {
			m.t.Errorf("a caller has %d sessions", n)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.f.boxes)) {
		if m.f.boxes[id].usedDead {
			m.t.Errorf("sandbox %s was deleted while a program ran", id)
		}
	}
}

// finish ends all requests and the pool, and looks at what is left.
func (m *model) finish() {
	m.t.Helper()
	m.wg.Wait()
	m.check()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := m.p.Drain(ctx, false); err != nil {
		m.t.Errorf("drain: %v", err)
	}
	m.f.wait()
	m.check()
	if m.p.table.live != 0 || len(m.p.table.identities) != 0 || len(m.p.table.waiting) != 0 || len(m.p.ending) != 0 {
		m.t.Errorf("left: %d places, %d callers, %d waiting, %d ending", m.p.table.live, len(m.p.table.identities), len(m.p.table.waiting), len(m.p.ending))
	}
	time.Sleep(time.Hour)
	if n := len(m.f.aliveBoxes()); n != 0 {
		m.t.Errorf("%d sandboxes outlived everything", n)
	}
	m.checkHistories()
}

// checkHistories: who found nothing was told so, unless it was the first; and
// nobody was told of a loss that did not happen.
func (m *model) checkHistories() {
	m.t.Helper()
	losses := map[string]int{}
	for _, b := range m.f.boxes {
		losses[b.metadata[metaSession]] += 1 + b.resets
	}
	for key, s := range m.seen {
		if s.forgotten > s.told+1 {
			m.t.Errorf("session %.8s: %d programs found no variables, %d were told", key, s.forgotten, s.told)
		}
		// One that is found again after an interrupted program may be lost twice.
		if s.told > losses[key]+m.found {
			m.t.Errorf("session %.8s: %d losses, %d told", key, losses[key], s.told)
		}
	}
}
