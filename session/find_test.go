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
	"sync"
	"testing"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// crash is what remains of a process after kill -9: nothing. Its pool is only
// drained at the test's end, for its goroutines.
func (b *bench) crash(edit func(*Config)) (end func()) {
	old := b.p
	b.p = newTestPool(b.f, edit)
	return func() {
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
		defer cancel()
		if err := old.Drain(ctx, true); err != nil {
			b.t.Errorf("drain: %v", err)
		}
	}
}

func TestSessionIsFoundAgainAfterACrash(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 41"))
		b.ok("")(b.say(bob, "s", "x = 42"))
		own := b.p.Open(alice, "")
		b.ok("")(runIn(own, "x = 43"))
		defer own.Close()
		defer b.crash(nil)()
		b.ok("41")(b.say(alice, "s", "print x"))
		b.ok("42")(b.say(bob, "s", "print x"))
		b.ok("NameError")(b.say(alice, "", "print x"))
		b.calls("create", 4)
		b.alive(3)
	})
}

func TestSessionIsFoundAgainAfterAnExit(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 41"))
		b.crash(nil)()
		b.ok("41")(b.say(alice, "s", "print x"))
		b.calls("create", 1)
	})
}

func TestOtherFingerprintOrSecretFindsNothing(t *testing.T) {
	for name, edit := range map[string]func(*Config){
		"fingerprint": func(c *Config) { c.Fingerprint = "other" },
		"secret":      func(c *Config) { c.Secret = []byte("other") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(b *bench) {
				b.ok("")(b.say(alice, "s", "x = 41"))
				defer b.crash(edit)()
				b.ok("NameError")(b.say(alice, "s", "print x"))
			})
		})
	}
}

func TestRunAbandonedByACrashDoesNotBlockTheSession(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 41"))
		var wg sync.WaitGroup
		defer wg.Wait()
		ctx, kill := context.WithCancel(b.t.Context())
		h := b.p.Open(alice, "s")
		wg.Go(func() { h.Run(ctx, "wedge", func(e2b.Event) {}); h.Close() })
		time.Sleep(time.Second)
		defer b.crash(nil)()
		kill()
		start := time.Now()
		b.want(Done, true, "NameError")(b.say(alice, "s", "print x"))
		if took := time.Since(start); took > 70*time.Second {
			t.Errorf("took %v", took)
		}
		b.calls("create", 1)
	})
}

// TestReplicasShareASandbox: two processes alternate with one session.
func TestReplicasShareASandbox(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		other := &bench{t: b.t, f: b.f, p: newTestPool(b.f, nil)}
		b.ok("")(b.say(alice, "s", "x = 1"))
		other.ok("1")(other.say(alice, "s", "print x"))
		for range 10 {
			b.ok("1")(b.say(alice, "s", "print x"))
			time.Sleep(4 * time.Minute)
			other.ok("1")(other.say(alice, "s", "print x"))
			time.Sleep(10 * time.Minute)
		}
		b.calls("create", 1)
		// The end of one does not end what the other uses.
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
		defer cancel()
		if err := other.p.Drain(ctx, true); err != nil {
			t.Error(err)
		}
		b.ok("1")(b.say(alice, "s", "print x"))
	})
}

// TestReplicaDoesNotKillWhatAnotherUses: one process has made the sandbox and has
// reasons to end it while another one's program runs in it.
func TestReplicaDoesNotKillWhatAnotherUses(t *testing.T) {
	reasons := map[string]func(b *bench){
		"idle": func(b *bench) { time.Sleep(16 * time.Minute) },
		"room": func(b *bench) {
			time.Sleep(10 * time.Minute)
			b.ok("")(b.say(alice, "new", "None"))
		},
		"drain": func(b *bench) { time.Sleep(10 * time.Minute); b.drain() },
		"exit": func(b *bench) {
			time.Sleep(10 * time.Minute)
			if err := b.p.Drain(b.t.Context(), true); err != nil {
				b.t.Error(err)
			}
		},
	}
	for name, reason := range reasons {
		t.Run(name, func(t *testing.T) {
			edit := func(c *Config) {
				c.Limits.MaxPerIdentity, c.Limits.DeleteOnExit, c.Limits.ExecTimeout = 1, true, time.Hour
			}
			inBubble(t, edit, func(b *bench) {
				other := &bench{t: b.t, f: b.f, p: newTestPool(b.f, edit)}
				b.ok("")(b.say(alice, "s", "x = 1"))
				time.Sleep(time.Minute)
				var wg sync.WaitGroup
				wg.Go(func() { other.ok("1")(other.say(alice, "s", "sleep 30m\nprint x")) })
				time.Sleep(time.Second)
				reason(b)
				wg.Wait()
				other.ok("1")(other.say(alice, "s", "print x"))
				other.drain()
			})
		})
	}
}

// TestReplicasAgreeOnOneSandbox: both have created one for the same session at
// the same time.
func TestReplicasAgreeOnOneSandbox(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		other := &bench{t: b.t, f: b.f, p: newTestPool(b.f, nil)}
		var wg sync.WaitGroup
		wg.Go(func() { b.ok("")(b.say(alice, "s", "x = 1")) })
		wg.Go(func() { other.ok("")(other.say(alice, "s", "x = 2")) })
		wg.Wait()
		b.alive(2)
		time.Sleep(6 * time.Minute)
		b.alive(1)
		// One of them has lost its variables and is told so.
		o1, x1 := b.say(alice, "s", "print x")
		o2, x2 := other.say(alice, "s", "print x")
		if x1 != x2 || x1 != "1" && x1 != "2" || o1.StateLost == o2.StateLost {
			t.Errorf("%q %v, %q %v", x1, o1.StateLost, x2, o2.StateLost)
		}
		b.calls("create", 2)
		other.drain()
	})
}

func TestListThatFailsIsTriedTwice(t *testing.T) {
	for n, output := range map[int]string{1: "41", 2: "NameError"} {
		inBubble(t, nil, func(b *bench) {
			b.ok("")(b.say(alice, "s", "x = 41"))
			defer b.crash(nil)()
			b.f.inject(first(n, "list", fault{status: 500}))
			b.ok(output)(b.say(alice, "s", "print x"))
		})
	}
}

func TestCreationWhoseAnswerIsLostLeavesNoTwin(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.f.inject(first(1, "create", fault{cut: true}))
		b.ok("")(b.say(alice, "s", "x = 1"))
		b.alive(2)
		time.Sleep(10 * time.Minute)
		b.alive(1)
	})
}

func TestCandidateThatCannotBeReachedIsPassedOver(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 41"))
		defer b.crash(nil)()
		b.f.inject(first(2, "connect", fault{status: 500}))
		b.ok("NameError")(b.say(alice, "s", "print x"))
		b.calls("create", 2)
	})
}

// TestProbeDoesNotRestartWhatAnotherProcessRuns: a context that is blocked by a
// program of another process is waited for.
func TestProbeDoesNotRestartWhatAnotherProcessRuns(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		other := &bench{t: b.t, f: b.f, p: newTestPool(b.f, nil)}
		b.ok("")(b.say(alice, "s", "x = 1"))
		time.Sleep(time.Minute)
		b.want(TimedOut, false, "")(b.say(alice, "s", "spin"))
		var wg sync.WaitGroup
		wg.Go(func() { other.ok("1")(other.say(alice, "s", "sleep 30s\nprint x")) })
		time.Sleep(time.Second)
		b.ok("1")(b.say(alice, "s", "print x"))
		b.calls("restart", 0)
		wg.Wait()
		other.drain()
	})
}
