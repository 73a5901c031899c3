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
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLeastRecentlyUsedSessionMakesRoom(t *testing.T) {
	inBubble(t, func(c *Config) { c.Limits.MaxPerIdentity = 2 }, func(b *bench) {
		for _, s := range []string{"1", "2", "1", "3"} {
			b.ok("")(b.say(alice, s, "x = "+s))
			time.Sleep(time.Second)
		}
		b.alive(2)
		b.ok("1")(b.say(alice, "1", "print x"))
		b.ok("3")(b.say(alice, "3", "print x"))
		b.want(Done, true, "NameError")(b.say(alice, "2", "print x"))
		b.ok("NameError")(b.say(alice, "2", "print x"))
	})
}

func TestEvictionSkipsBusySessions(t *testing.T) {
	inBubble(t, func(c *Config) { c.Limits.MaxPerIdentity = 2 }, func(b *bench) {
		busy := b.p.Open(alice, "busy")
		b.ok("")(runIn(busy, "x = busy"))
		b.ok("")(b.say(alice, "idle", "x = idle"))
		b.ok("")(b.say(alice, "new", "x = new"))
		b.ok("busy")(runIn(busy, "print x"))
		busy.Close()
		b.want(Done, true, "NameError")(b.say(alice, "idle", "print x"))
	})
}

func TestAdmitRefusesWhenEverySessionIsBusy(t *testing.T) {
	inBubble(t, func(c *Config) { c.Limits.MaxPerIdentity = 2 }, func(b *bench) {
		one, two := b.p.Open(alice, "1"), b.p.Open(alice, "2")
		b.ok("")(runIn(one, "None"))
		b.ok("")(runIn(two, "None"))
		var busy *BusyError
		if err := b.p.Admit(alice, "3"); !errors.As(err, &busy) || busy.RetryAfter <= 0 {
			t.Errorf("a third session: %v", err)
		}
		for what, err := range map[string]error{
			"its own busy one": b.p.Admit(alice, "1"), "none": b.p.Admit(alice, ""), "another caller": b.p.Admit(bob, "3"),
		} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		one.Close()
		if err := b.p.Admit(alice, "3"); err != nil {
			t.Errorf("with an idle one: %v", err)
		}
		two.Close()
	})
}

func TestNewSessionWaitsForABusyOneOfItsCaller(t *testing.T) {
	inBubble(t, func(c *Config) { c.Limits.MaxPerIdentity = 1; c.Limits.QueueTimeout = 10 * time.Second }, func(b *bench) {
		var wg sync.WaitGroup
		wg.Go(func() { b.ok("")(b.say(alice, "1", "sleep 5s")) })
		time.Sleep(time.Second)
		b.ok("hi")(b.say(alice, "2", "say hi"))
		wg.Wait()
		wg.Go(func() { b.want(Done, true, "")(b.say(alice, "1", "sleep 30s")) })
		time.Sleep(time.Second)
		o, out := b.say(alice, "2", "say hi")
		b.want(Busy, false, "")(o, out)
		wg.Wait()
	})
}

func TestProcessCapCountsEphemeralSandboxes(t *testing.T) {
	inBubble(t, func(c *Config) { c.Limits.Max = 2; c.Limits.QueueTimeout = 10 * time.Second }, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		var wg sync.WaitGroup
		wg.Go(func() { b.ok("")(b.say(bob, "", "sleep 5s")) })
		time.Sleep(time.Second)
		b.ok("hi")(b.say(bob, "", "say hi")) // after the first
		wg.Wait()
		wg.Go(func() { b.ok("")(b.say(bob, "", "sleep 50s")) })
		time.Sleep(time.Second)
		b.want(Busy, false, "")(b.say(bob, "", "say hi"))
		b.want(Busy, false, "")(b.say(bob, "s", "say hi")) // nothing of another's makes room
		b.ok("1")(b.say(alice, "s", "print x"))
		b.ok("hi")(b.say(alice, "new", "say hi")) // its own idle one does
		b.want(Busy, false, "")(b.say(alice, "", "say hi"))
		wg.Wait()
		b.want(Done, true, "NameError")(b.say(alice, "s", "print x"))
	})
}

// TestPlacesGoRoundBetweenCallers: a caller with many waiting requests gets one
// place for each that another one gets.
func TestPlacesGoRoundBetweenCallers(t *testing.T) {
	inBubble(t, func(c *Config) { c.Limits.Max = 1; c.Limits.QueueTimeout = time.Hour }, func(b *bench) {
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { b.ok("")(b.say(alice, "", "sleep 1s")) })
		}
		time.Sleep(10 * time.Millisecond)
		start := time.Now()
		wg.Go(func() {
			b.ok("bob")(b.say(bob, "", "say bob"))
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("waited %v", took)
			}
		})
		wg.Wait()
	})
}

// TestAttackerCannotTouchAVictimsSession: one caller rotates session ids and
// floods with requests without one while another works.
func TestAttackerCannotTouchAVictimsSession(t *testing.T) {
	inBubble(t, func(c *Config) { c.Limits.Max = 15 }, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for n := range 40 {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					session := fmt.Sprint(n, "-", i)
					if n%2 == 0 {
						session = ""
					}
					_ = b.p.Admit(bob, session)
					b.say(bob, session, "sleep 1s")
				}
			})
		}
		time.Sleep(time.Minute)
		for range 20 {
			start := time.Now()
			b.ok("1")(b.say(alice, "s", "print x"))
			if took := time.Since(start); took > 200*time.Millisecond {
				t.Errorf("the victim waited %v", took)
			}
			time.Sleep(time.Second)
		}
		start := time.Now()
		b.ok("NameError")(b.say(alice, "new", "print x"))
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("the victim's new session waited %v", took)
		}
		close(stop)
		wg.Wait()
	})
}

func TestIdleSessionExpires(t *testing.T) {
	for _, remote := range []bool{false, true} {
		t.Run(fmt.Sprint("remote ", remote), func(t *testing.T) {
			inBubble(t, func(c *Config) { c.Remote = remote }, func(b *bench) {
				b.ok("")(b.say(alice, "s", "x = 1"))
				time.Sleep(14 * time.Minute)
				b.ok("1")(b.say(alice, "s", "print x"))
				time.Sleep(14 * time.Minute)
				b.alive(1)
				time.Sleep(2 * time.Minute)
				b.alive(0)
				b.left(0, 0)
				b.want(Done, true, "NameError")(b.say(alice, "s", "print x"))
			})
		})
	}
}

func TestBusySessionDoesNotExpire(t *testing.T) {
	inBubble(t, func(c *Config) { c.Limits.Idle = 10 * time.Second }, func(b *bench) {
		b.ok("a")(b.say(alice, "s", "x = 1\nsleep 50s\nsay a"))
		b.ok("1")(b.say(alice, "s", "print x"))
	})
}

func TestLimitsOfALivingPoolChange(t *testing.T) {
	inBubble(t, func(c *Config) { c.Limits.Max = 1 }, func(b *bench) {
		var wg sync.WaitGroup
		wg.Go(func() { b.ok("")(b.say(alice, "", "sleep 50s")) })
		time.Sleep(time.Second)
		start := time.Now()
		wg.Go(func() { b.ok("hi")(b.say(bob, "", "say hi")) })
		time.Sleep(time.Second)
		limits := testLimits()
		limits.Max, limits.Idle = 2, time.Minute
		b.p.SetLimits(limits)
		b.ok("")(b.say(alice, "s", "x = 1"))
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("waited %v", took)
		}
		time.Sleep(90 * time.Second)
		wg.Wait()
		b.alive(0)
	})
}

func TestMetadataTellsNothing(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(Caller{Kind: "key", Value: "sk-12345"}, "my-session", "None"))
		h := b.p.Open(alice, "")
		b.ok("")(runIn(h, "None"))
		s := b.p.Open(Caller{Kind: "key", Value: "sk-12345"}, "my-session")
		keys := make([][2]string, 2)
		keys[0][0], keys[0][1] = s.Keys()
		keys[1][0], keys[1][1] = h.Keys()
		for i, box := range b.f.aliveBoxes() {
			if box.metadata["session"] != keys[i][0] || box.metadata["identity"] != keys[i][1] {
				t.Errorf("sandbox %d is that of session %q, caller %q", i, box.metadata["session"], box.metadata["identity"])
			}
			text := encode(box.metadata)
			for _, raw := range []string{"sk-12345", "my-session", "alice", "user"} {
				if strings.Contains(text, raw) {
					t.Errorf("metadata holds %q: %s", raw, text)
				}
			}
			want := []map[string]string{
				{"product": "caddy-code-interpreter", "pool": "fingerprint", "kind": "session"},
				{"product": "caddy-code-interpreter", "pool": "fingerprint", "kind": "ephemeral"},
			}[i]
			for k, v := range want {
				if box.metadata[k] != v {
					t.Errorf("metadata of sandbox %d: %s", i, text)
				}
			}
		}
		h.Close()
	})
}

func TestDrainEndsIdleSandboxesAndWaitsForBusyOnes(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "idle", "x = 1"))
		h, own := b.p.Open(alice, "busy"), b.p.Open(alice, "")
		b.ok("")(runIn(h, "x = 2"))
		b.ok("")(runIn(own, "x = 3"))
		ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
		defer cancel()
		if err := b.p.Drain(ctx, false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("drained although a sandbox is in use: %v", err)
		}
		b.alive(2)
		b.ok("2")(runIn(h, "print x"))
		time.Sleep(5 * time.Minute) // still kept alive for its request
		b.ok("3")(runIn(own, "print x"))
		h.Close()
		own.Close()
		b.drain()
		b.alive(0)
		b.left(0, 0)
	})
}

// TestExit says what is left when the process exits.
func TestExit(t *testing.T) {
	cases := []struct {
		name                 string
		remote, deleteOnExit bool
		alive                int
	}{
		{"remote", true, false, 1},
		{"remote, on_exit delete", true, true, 0},
		{"local", false, false, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				b := &bench{t: t, f: f, p: newTestPool(f, func(conf *Config) {
					conf.Remote, conf.Limits.DeleteOnExit = c.remote, c.deleteOnExit
				})}
				b.ok("")(b.say(alice, "s", "x = 1"))
				own, making := b.p.Open(alice, ""), b.p.Open(bob, "")
				b.ok("")(runIn(own, "x = 1"))
				making.Prepare()
				ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Second)
				defer cancel()
				if err := b.p.Drain(ctx, true); err != nil {
					t.Errorf("drain: %v", err)
				}
				if boxes := f.aliveBoxes(); len(boxes) != c.alive {
					t.Errorf("%d sandboxes live", len(boxes))
				}
				b.want(Unavailable, false, "")(runIn(own, "print x"))
				b.want(Unavailable, false, "")(b.say(bob, "t", "print x"))
				own.Close()
				making.Close()
				f.wait()
			})
		})
	}
}

func TestExitDoesNotHangOnADeadServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		b := &bench{t: t, f: f, p: newTestPool(f, nil)}
		h := b.p.Open(alice, "")
		b.ok("")(runIn(h, "None"))
		f.inject(func(string, string) *fault { return &fault{hang: true} })
		making := b.p.Open(alice, "")
		making.Prepare()
		ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		if err := b.p.Drain(ctx, true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("drain: %v", err)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("took %v", took)
		}
		h.Close()
		making.Close()
		f.wait()
	})
}

func TestDrainOfAnUnusedPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(newFake(t), nil)
		for _, exiting := range []bool{false, true} {
			if err := p.Drain(t.Context(), exiting); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestSandboxEndsWhileItsProgramReconnects: the process exits, and both hear from
// the provider at once. It is for the race detector.
func TestSandboxEndsWhileItsProgramReconnects(t *testing.T) {
	inBubble(t, func(c *Config) { c.Limits.DeleteOnExit = true }, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		answers := time.Now().Add(3 * time.Second)
		b.f.inject(func(op, _ string) *fault {
			switch op {
			case "execute":
				return &fault{status: http.StatusUnauthorized}
			case "connect", "list":
				return &fault{delay: time.Until(answers)}
			}
			return nil
		})
		var wg sync.WaitGroup
		wg.Go(func() { b.want(Unavailable, false, "")(b.say(alice, "s", "print x")) })
		time.Sleep(time.Second)
		if err := b.p.Drain(context.Background(), true); err != nil {
			t.Error(err)
		}
		wg.Wait()
		b.calls("delete", 1)
	})
}
