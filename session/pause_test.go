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
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func pausing(c *Config) {
	c.Limits.Pause, c.Limits.Keep = true, 7*24*time.Hour
}

// states checks how many sandboxes run and how many are paused.
func (b *bench) states(running, sleeping int) {
	b.t.Helper()
	synctest.Wait()
	n, m := 0, 0
	boxes := b.f.aliveBoxes()
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	for _, box := range boxes {
		if box.sleeps() {
			m++
		} else {
			n++
		}
	}
	if n != running || m != sleeping {
		b.t.Errorf("%d sandboxes run and %d are paused, want %d and %d", n, m, running, sleeping)
	}
}

func TestIdleSessionIsPausedAndResumed(t *testing.T) {
	inBubble(t, pausing, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 41"))
		b.ok("")(b.say(alice, "", "x = 1"))
		time.Sleep(16 * time.Minute)
		b.states(0, 1)
		b.left(0, 0)
		time.Sleep(6 * 24 * time.Hour)
		b.ok("41")(b.say(alice, "s", "print x"))
		b.states(1, 0)
		b.calls("create", 2)
		time.Sleep(8 * 24 * time.Hour)
		b.states(0, 0)
		b.want(Done, true, "NameError")(b.say(alice, "s", "print x"))
		b.f.mu.Lock()
		for _, box := range b.f.boxes {
			if box.pauses != (box.metadata[metaKind] == kindSession) {
				t.Errorf("sandbox %s of kind %s pauses by itself: %v", box.id, box.metadata[metaKind], box.pauses)
			}
		}
		b.f.mu.Unlock()
		b.drain()
		b.states(0, 0)
	})
}

func TestRequestWaitsForThePauseItMeets(t *testing.T) {
	inBubble(t, pausing, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 41"))
		b.f.inject(func(op, _ string) *fault {
			if op == "pause" {
				return &fault{delay: 3 * time.Second}
			}
			return nil
		})
		for b.f.count("pause") == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		b.ok("41")(b.say(alice, "s", "print x"))
		b.calls("create", 1)
	})
}

func TestPausedSessionIsFoundAgainAfterACrash(t *testing.T) {
	for name, rest := range map[string]time.Duration{"that paused it": 16 * time.Minute, "that did not": time.Minute} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, pausing, func(b *bench) {
				b.ok("")(b.say(alice, "s", "x = 41"))
				time.Sleep(rest)
				b.crash(pausing)()
				time.Sleep(24 * time.Hour)
				b.states(0, 1)
				b.ok("41")(b.say(alice, "s", "print x"))
				b.calls("create", 1)
				b.crash(pausing)()
				time.Sleep(8 * 24 * time.Hour)
				b.states(0, 0)
			})
		})
	}
}

func TestProviderThatCannotPause(t *testing.T) {
	missing := fault{status: 404, body: `{"message":"no such route"}`}
	for name, bad := range map[string]fault{"no route": missing, "method": {status: 405}, "not implemented": {status: 501}, "refused": {status: 400}} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zapcore.ErrorLevel)
			edit := func(c *Config) { pausing(c); c.Logger = zap.New(core) }
			inBubble(t, edit, func(b *bench) {
				b.f.inject(func(op, _ string) *fault {
					if op == "pause" {
						return &bad
					}
					return nil
				})
				for range 3 {
					b.say(alice, "s", "x = 1")
					time.Sleep(16 * time.Minute)
					b.alive(0)
				}
				if logs.Len() != 1 || logs.FilterMessageSnippet("on_idle pause").Len() != 1 {
					t.Errorf("logged %v", logs.All())
				}
			})
		})
	}
}

func TestPauseThatFailsForNow(t *testing.T) {
	inBubble(t, pausing, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 41"))
		b.f.inject(first(2, "pause", fault{status: 500}))
		time.Sleep(16 * time.Minute)
		b.states(0, 1)
	})
}

func TestSandboxPausedByAnotherProcessIsResumed(t *testing.T) {
	inBubble(t, pausing, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 41"))
		b.f.mu.Lock()
		b.f.boxes["box00000"].paused = true
		b.f.mu.Unlock()
		b.ok("41")(b.say(alice, "s", "print x"))
		b.calls("create", 1)
	})
}

// TestSecondSandboxOfASessionDoesNotStayPaused: no timeout ends it.
func TestSecondSandboxOfASessionDoesNotStayPaused(t *testing.T) {
	inBubble(t, pausing, func(b *bench) {
		b.f.inject(first(1, "create", fault{cut: true}))
		b.ok("")(b.say(alice, "s", "x = 1"))
		b.crash(pausing)()
		time.Sleep(24 * time.Hour)
		b.states(0, 1)
	})
}

func TestGatewaysPauseAndResumeASession(t *testing.T) {
	edit := func(c *Config) { pausing(c); c.Limits.MaxPerIdentity = 2 }
	inCluster(t, edit, func(one, two *bench, m *memory) {
		one.ok("")(one.say(alice, "a", "x = 1"))
		two.ok("1")(two.say(alice, "a", "print x"))
		for range 3 {
			time.Sleep(time.Hour)
			one.states(0, 1)
			one.ok("1")(one.say(alice, "a", "print x"))
			time.Sleep(time.Minute)
			two.ok("1")(two.say(alice, "a", "print x"))
		}
		time.Sleep(time.Hour)
		// It does not count while it is paused, and does when it is resumed.
		for _, session := range []string{"b", "c"} {
			one.ok("")(one.say(alice, session, "x = 2"))
		}
		one.states(2, 1)
		two.ok("1")(two.say(alice, "a", "print x"))
		time.Sleep(time.Second)
		one.states(2, 0)
		var wg sync.WaitGroup
		wg.Go(func() { one.ok("1")(one.say(alice, "a", "sleep 40s\nprint x")) })
		wg.Go(func() { two.ok("1")(two.say(alice, "a", "print x")) })
		wg.Wait()
		time.Sleep(8 * 24 * time.Hour)
		one.states(0, 0)
		if n := len(m.records(t)); n != 0 {
			t.Errorf("%d records are left", n)
		}
	})
}

// TestScanDeletesStaleRecords: those of sandboxes that have ended while nobody
// looked.
func TestScanDeletesStaleRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, m := newFake(t), newMemory()
		one := newProcess(f, m, nil)
		b := one.bench(t)
		b.ok("")(b.say(alice, "s", "x = 1"))
		one.kill()
		two := newProcess(f, m, nil)
		time.Sleep(30 * time.Second)
		if n := len(m.records(t)); n != 1 {
			t.Errorf("%d records while the session can still be found", n)
		}
		time.Sleep(3 * time.Hour)
		if n := len(m.records(t)); n != 0 {
			t.Errorf("%d records are left", n)
		}
		one.bury(t)
		two.bury(t)
		f.wait()
	})
}

// TestPoolThatIsOnlyTriedMakesNoCalls: as when a configuration is validated.
func TestPoolThatIsOnlyTriedMakesNoCalls(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		time.Sleep(5 * time.Second)
		if err := b.p.Drain(context.Background(), false); err != nil {
			t.Error(err)
		}
		b.calls("list", 0)
	})
}

func TestPausedSessionWaitsForTheProvidersRate(t *testing.T) {
	limited := fault{status: 429, retry: "1"}
	inBubble(t, pausing, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 41"))
		time.Sleep(16 * time.Minute)
		b.f.inject(first(2, "connect", limited))
		b.ok("41")(b.say(alice, "s", "print x"))
		time.Sleep(16 * time.Minute)
		b.f.inject(first(1000, "connect", limited))
		b.want(Unavailable, false, "")(b.say(alice, "s", "print x"))
		b.f.inject(nil)
		b.ok("41")(b.say(alice, "s", "print x"))
		b.calls("create", 1)
	})
}

func TestPausedSessionGoesOnWhileCreationsFail(t *testing.T) {
	inBubble(t, pausing, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 41"))
		time.Sleep(16 * time.Minute)
		status := http.StatusInternalServerError
		failing(b.f, &status)
		for range 3 {
			b.want(Unavailable, false, "")(b.say(alice, "", "None"))
		}
		before := b.f.count("create")
		b.ok("41")(b.say(alice, "s", "print x"))
		if !b.p.Stats().Health.Failing {
			t.Error("a sandbox that is found says nothing of creations, and has closed the circuit")
		}
		b.want(Unavailable, false, "")(b.say(alice, "new", "None"))
		b.calls("create", before)
	})
}
