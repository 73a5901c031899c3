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
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// reasons counts the ends of sandboxes by their reason.
func (h *heard) reasons() map[Reason]int {
	counts := make(map[Reason]int)
	for _, ev := range h.of(Deleted) {
		counts[ev.Reason]++
	}
	return counts
}

func TestObserverHearsWhySandboxesEnd(t *testing.T) {
	for _, tc := range []struct {
		reason Reason
		edit   func(*Config)
		act    func(b *bench)
	}{
		{ReasonIdle, nil, func(b *bench) { time.Sleep(time.Hour) }},
		{ReasonEvicted, func(c *Config) { c.Limits.MaxPerIdentity = 1 }, func(b *bench) { b.say(alice, "other", "None") }},
		{ReasonRequest, nil, func(b *bench) { b.say(alice, "", "None") }},
		{ReasonOperator, nil, func(b *bench) { b.p.End(func(Info) bool { return true }) }},
		{ReasonDrained, nil, func(b *bench) { b.p.Recycle() }},
	} {
		t.Run(string(tc.reason), func(t *testing.T) {
			var h heard
			inBubble(t, func(c *Config) {
				c.Observer = h.observe
				if tc.edit != nil {
					tc.edit(c)
				}
			}, func(b *bench) {
				b.ok("")(b.say(alice, "s", "x = 1"))
				tc.act(b)
				time.Sleep(time.Minute)
				synctest.Wait()
				ends := h.of(Deleted)
				if len(ends) != 1 || ends[0].Reason != tc.reason || ends[0].SandboxID == "" || ends[0].Identity == "" {
					t.Errorf("ends are told as %+v", ends)
				}
			})
			created := len(h.of(Created))
			if ends := len(h.of(Deleted)); ends != created {
				t.Errorf("%d sandboxes were created, the end of %d was told", created, ends)
			}
		})
	}
}

func TestObserverHearsOfLossAndReplacement(t *testing.T) {
	var h heard
	inBubble(t, func(c *Config) { c.Observer = h.observe }, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		b.f.mu.Lock()
		for _, box := range b.f.boxes {
			box.lost = true
		}
		b.f.mu.Unlock()
		b.want(Done, true, "NameError")(b.say(alice, "s", "print x"))
		time.Sleep(time.Minute)
		synctest.Wait()
		lost := h.of(Lost)
		if len(lost) != 1 || e2b.KindOf(lost[0].Err) != e2b.Gone || lost[0].SandboxID != h.of(Created)[0].SandboxID {
			t.Errorf("the loss is told as %+v", lost)
		}
		if counts := h.reasons(); counts[ReasonReplaced] != 1 || len(h.of(Created)) != 2 {
			t.Errorf("ends %v, %d created", counts, len(h.of(Created)))
		}
	})
}

func TestObserverHearsOfFailedCallsAndOfFoundSandboxes(t *testing.T) {
	var h heard
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		first := &bench{t: t, f: f, p: newTestPool(f, nil)}
		first.ok("")(first.say(alice, "s", "x = 1"))
		if err := first.p.Drain(context.Background(), true); err != nil {
			t.Fatal(err)
		}
		second := &bench{t: t, f: f, p: newTestPool(f, func(c *Config) { c.Observer = h.observe })}
		failures := 1
		f.fault = func(op, _ string) *fault {
			if op == "list" && failures > 0 {
				failures--
				return &fault{status: http.StatusBadGateway}
			}
			return nil
		}
		second.ok("1")(second.say(alice, "s", "print x"))
		if found := h.of(Found); len(found) != 1 || found[0].Key == "" || found[0].SandboxID == "" {
			t.Errorf("found again: %+v", found)
		}
		if calls := h.of(CallFailed); len(calls) != 1 || e2b.KindOf(calls[0].Err) != e2b.Unavailable {
			t.Errorf("failed calls: %+v", calls)
		}
		second.drain()
		f.wait()
	})
}

func TestObserverHearsNothingOfRequestsThatAreGivenUp(t *testing.T) {
	var h heard
	inBubble(t, func(c *Config) { c.Observer = h.observe }, func(b *bench) {
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
		defer cancel()
		handle := b.p.Open(alice, "s")
		defer handle.Close()
		if o := handle.Run(ctx, "sleep 30s", func(e2b.Event) {}); o.Status != Canceled {
			t.Errorf("the program is %s, want %s", o.Status, Canceled)
		}
		if calls := h.of(CallFailed); len(calls) != 0 {
			t.Errorf("its deadline is told as failed calls of the provider: %+v", calls)
		}
	})
}

func TestRecycleDisturbsNobody(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "idle", "x = 1"))
		h := b.p.Open(bob, "busy")
		b.ok("")(runIn(h, "x = 2"))
		if now, later := b.p.Recycle(); now != 1 || later != 1 {
			t.Errorf("%d end now and %d later, want one each", now, later)
		}
		b.ok("2")(runIn(h, "print x"))
		b.alive(1)
		h.Close()
		b.alive(0)
		b.left(0, 0)
		b.want(Done, true, "NameError")(b.say(bob, "busy", "print x"))
		b.ok("NameError")(b.say(bob, "busy", "print x"))
		b.alive(1)
	})
}

func TestPausedSandboxesAreToldAndCounted(t *testing.T) {
	var h heard
	inBubble(t, func(c *Config) {
		c.Observer = h.observe
		c.Limits.Pause, c.Limits.Keep = true, 24*time.Hour
	}, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if paused := h.of(Paused); len(paused) != 1 || paused[0].SandboxID == "" || paused[0].Key == "" || len(h.of(Deleted)) != 0 {
			t.Errorf("told is %+v", h.events)
		}
		if s := b.p.Stats(); s.Paused != 1 || s.Places != 0 {
			t.Errorf("%d paused sandboxes and %d places, want 1 and none", s.Paused, s.Places)
		}
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		if ends := h.of(Deleted); len(ends) != 1 || ends[0].Reason != ReasonKept || b.p.Stats().Paused != 0 {
			t.Errorf("ends are told as %+v, %d are paused", ends, b.p.Stats().Paused)
		}
	})
}
