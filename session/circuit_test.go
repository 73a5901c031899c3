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
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// failing has every creation answered with a status until it is 0.
func failing(f *fakeE2B, status *int) {
	f.inject(func(op, _ string) *fault {
		if op == "create" && *status != 0 {
			return &fault{status: *status}
		}
		return nil
	})
}

// heard gathers what the pool's observer is told.
type heard struct {
	mu     sync.Mutex
	events []Event
}

func (h *heard) observe(ev Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, ev)
}

// of returns the events of a type.
func (h *heard) of(t EventType) []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []Event
	for _, ev := range h.events {
		if ev.Type == t {
			list = append(list, ev)
		}
	}
	return list
}

func TestCircuitOpensAndClosesAgain(t *testing.T) {
	status := http.StatusInternalServerError
	var h heard
	inBubble(t, func(c *Config) { c.Observer = h.observe }, func(b *bench) {
		failing(b.f, &status)
		for range 3 { // two attempts each
			b.want(Unavailable, false, "")(b.say(alice, "", "None"))
		}
		health := b.p.Stats().Health
		if !health.Failing || health.Failures != 6 || e2b.KindOf(health.Err) != e2b.Unavailable || len(h.of(ProviderFailing)) != 1 {
			t.Fatalf("after 6 failures: %+v, events %v", health, h.of(ProviderFailing))
		}
		before, start := b.f.count("create"), time.Now()
		o, _ := b.say(alice, "", "None")
		if o.Status != Unavailable || time.Since(start) > 0 || e2b.KindOf(o.Err) != e2b.Unavailable {
			t.Errorf("a program is told %v (%v) after %v", o.Status, o.Err, time.Since(start))
		}
		b.calls("create", before)

		status = 0
		time.Sleep(minPause)
		b.ok("hi")(b.say(alice, "", "say hi"))
		if health := b.p.Stats().Health; health != (Health{}) || len(h.of(ProviderRecovered)) != 1 {
			t.Errorf("after a success: %+v, events %v", health, h.of(ProviderRecovered))
		}
	})
}

func TestOpenCircuitLetsOneProbeThrough(t *testing.T) {
	status := http.StatusUnauthorized
	inBubble(t, nil, func(b *bench) {
		failing(b.f, &status)
		for range failuresToOpen {
			b.want(Unavailable, false, "")(b.say(alice, "", "None"))
		}
		before := b.f.count("create")
		time.Sleep(minPause)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { b.want(Unavailable, false, "")(b.say(bob, "", "None")) })
		}
		wg.Wait()
		b.calls("create", before+1)
	})
}

func TestPauseOfAnOpenCircuitGrows(t *testing.T) {
	status := http.StatusServiceUnavailable
	inBubble(t, nil, func(b *bench) {
		failing(b.f, &status)
		for range failuresToOpen {
			b.say(alice, "", "None")
		}
		opened := time.Now()
		var pauses []time.Duration
		for len(pauses) < 7 {
			next := b.p.Stats().Health.Next
			pauses = append(pauses, time.Until(next).Round(time.Second))
			time.Sleep(time.Until(next))
			b.want(Unavailable, false, "")(b.say(alice, "", "None"))
		}
		for i, seconds := range []int{1, 2, 4, 8, 16, 30, 30} {
			if want := time.Duration(seconds) * time.Second; pauses[i] > want || pauses[i] < want-time.Second {
				t.Errorf("pauses are %v", pauses)
				break
			}
		}
		if since := b.p.Stats().Health.Since; since.After(opened) {
			t.Errorf("it counts as open since %v, which is after %v", since, opened)
		}
	})
}

func TestOpenCircuitLeavesRunningSessionsAlone(t *testing.T) {
	status := 0
	inBubble(t, nil, func(b *bench) {
		failing(b.f, &status)
		b.ok("")(b.say(alice, "s", "x = 1"))
		status = http.StatusForbidden
		for range failuresToOpen {
			b.want(Unavailable, false, "")(b.say(bob, "", "None"))
		}
		b.ok("1")(b.say(alice, "s", "print x"))
	})
}

func TestFailuresFarApartOpenNothing(t *testing.T) {
	status := http.StatusForbidden
	inBubble(t, nil, func(b *bench) {
		failing(b.f, &status)
		for range 2 * failuresToOpen {
			b.want(Unavailable, false, "")(b.say(alice, "", "None"))
			time.Sleep(failureGap + time.Second)
		}
		if health := b.p.Stats().Health; health.Failing || health.Failures != 1 {
			t.Errorf("%+v", health)
		}
	})
}

func TestRateLimitsOpenNothing(t *testing.T) {
	status := http.StatusTooManyRequests
	inBubble(t, nil, func(b *bench) {
		failing(b.f, &status)
		for range failuresToOpen {
			b.want(Unavailable, false, "")(b.say(alice, "", "None"))
		}
		if health := b.p.Stats().Health; health.Failing || health.Failures != 0 {
			t.Errorf("%+v", health)
		}
	})
}

// trip opens the circuit and waits until it lets a probe through.
func (b *bench) trip() {
	b.p.mu.Lock()
	for range failuresToOpen {
		b.p.circuit.failed(time.Now(), errors.New("down"))
	}
	b.p.mu.Unlock()
	time.Sleep(minPause)
}

// TestProbeThatIsGivenUpDoesNotHoldTheCircuit: its request leaves while the
// provider does not answer.
func TestProbeThatIsGivenUpDoesNotHoldTheCircuit(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.f.inject(func(string, string) *fault { return &fault{hang: true} })
		b.trip()
		ctx, cancel := context.WithCancel(context.Background())
		probe := b.p.Open(alice, "")
		probe.Prepare()
		synctest.Wait()
		b.p.mu.Lock()
		probing := b.p.circuit.probing
		b.p.mu.Unlock()
		if !probing {
			t.Error("nobody probes")
		}
		cancel()
		probe.Run(ctx, "None", func(e2b.Event) {})
		probe.Close()
		time.Sleep(b.p.Stats().Limits.SandboxTimeout)
		b.f.inject(nil)
		time.Sleep(maxPause)
		b.ok("hi")(b.say(alice, "", "say hi"))
	})
}

// TestWhoWaitsForRoomDoesNotProbe: others have room, and the provider works again.
func TestWhoWaitsForRoomDoesNotProbe(t *testing.T) {
	inBubble(t, func(c *Config) { c.Limits.MaxPerIdentity = 1 }, func(b *bench) {
		var wg sync.WaitGroup
		wg.Go(func() { b.ok("")(b.say(alice, "first", "sleep 50s")) })
		time.Sleep(time.Second)
		b.trip()
		wg.Go(func() { b.ok("hi")(b.say(alice, "second", "say hi")) })
		synctest.Wait()
		b.ok("hi")(b.say(bob, "", "say hi"))
		wg.Wait()
	})
}

// TestPauseGrowsOnlyWhenTheProviderWasAsked: the probe leaves while it waits for
// its turn to create a sandbox.
func TestPauseGrowsOnlyWhenTheProviderWasAsked(t *testing.T) {
	inBubble(t, func(c *Config) { c.Limits.CreateEvery = 10 * time.Second }, func(b *bench) {
		b.ok("")(b.say(alice, "", "None"))
		b.trip()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		probe := b.p.Open(alice, "")
		if o := probe.Run(ctx, "None", func(e2b.Event) {}); o.Status != Canceled {
			t.Errorf("the probe is told %v (%v)", o.Status, o.Err)
		}
		probe.Close()
		synctest.Wait()
		b.calls("create", 1)
		if next := b.p.Stats().Health.Next; next.After(time.Now()) {
			t.Errorf("the provider is not asked for %v, although nobody has", time.Until(next))
		}
		b.ok("hi")(b.say(bob, "", "say hi"))
	})
}
