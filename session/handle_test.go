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

func TestSessionKeepsVariables(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 41"))
		b.ok("41")(b.say(alice, "s", "print x"))
		b.ok("NameError")(b.say(alice, "other", "print x"))
		b.ok("NameError")(b.say(bob, "s", "print x"))
		b.ok("NameError")(b.say(Caller{Kind: "key", Value: "alice"}, "s", "print x"))
		b.alive(4)
	})
}

func TestEphemeralSandboxIsTheRequestsOwn(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		h := b.p.Open(alice, "")
		b.ok("")(runIn(h, "x = 1"))
		b.ok("1")(runIn(h, "print x"))
		h.Close()
		b.alive(0)
		b.ok("NameError")(b.say(alice, "", "print x"))
		b.alive(0)
		b.calls("create", 2)
		b.calls("list", 0)
		if end := b.f.timeouts("box00000")[0]; end != 90*time.Second {
			t.Errorf("timeout %v, want exec_timeout plus 30 s", end)
		}
	})
}

func TestFirstRequestsOfASessionShareOneCreation(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { b.ok("hi")(b.say(alice, "s", "say hi")) })
		}
		wg.Wait()
		b.calls("create", 1)
	})
}

func TestFailedLeaderDoesNotPoisonTheSession(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		refused := 0
		b.f.inject(func(op, _ string) *fault {
			if op == "create" && refused < 1 {
				refused++
				return &fault{status: 400}
			}
			return nil
		})
		leader, follower := b.p.Open(alice, "s"), b.p.Open(alice, "s")
		leader.Prepare()
		var wg sync.WaitGroup
		wg.Go(func() { b.want(Unavailable, false, "")(runIn(leader, "say 1")); leader.Close() })
		time.Sleep(time.Millisecond) // in this order
		wg.Go(func() { b.ok("2")(runIn(follower, "say 2")); follower.Close() })
		wg.Wait()
		b.calls("create", 2)
	})
}

func TestProgramsOfASessionQueueInOrder(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		var wg sync.WaitGroup
		for _, word := range []string{"1", "2", "3", "4"} {
			wg.Go(func() {
				o, out := b.say(alice, "s", "sleep 2s\nsay "+word)
				b.ok(word)(o, out)
				if o.Ran < 2*time.Second || o.Ran > 3*time.Second {
					t.Errorf("program %s ran %v", word, o.Ran)
				}
			})
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		b.ok("x")(b.say(alice, "other", "say x"))
		if took := time.Since(start); took > time.Second {
			t.Errorf("another session waited %v", took)
		}
		wg.Wait()
		for i, code := range b.f.began() {
			if want := []string{"say x", "sleep 2s\nsay 1", "sleep 2s\nsay 2", "sleep 2s\nsay 3", "sleep 2s\nsay 4"}; i > 1 && code != want[i] {
				t.Errorf("program %d is %q", i, code)
			}
		}
	})
}

func TestQueueTimeout(t *testing.T) {
	inBubble(t, func(c *Config) { c.Limits.QueueTimeout = 5 * time.Second }, func(b *bench) {
		var wg sync.WaitGroup
		wg.Go(func() { b.ok("")(b.say(alice, "s", "sleep 20s")) })
		time.Sleep(time.Second)
		o, out := b.say(alice, "s", "say late")
		b.want(Busy, false, "")(o, out)
		if o.Waited != 5*time.Second {
			t.Errorf("waited %v", o.Waited)
		}
		wg.Wait()
	})
}

func TestCanceledWaiterLeavesTheQueue(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		var wg sync.WaitGroup
		wg.Go(func() { b.ok("")(b.say(alice, "s", "sleep 10s")) })
		time.Sleep(time.Second)
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
			defer cancel()
			h := b.p.Open(alice, "s")
			defer h.Close()
			if o := h.Run(ctx, "say never", func(e2b.Event) {}); o.Status != Canceled {
				t.Errorf("status %v", o.Status)
			}
		})
		time.Sleep(time.Millisecond)
		wg.Go(func() { b.ok("next")(b.say(alice, "s", "say next")) })
		wg.Wait()
	})
}

func TestPrepareCreatesInTheBackground(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		h := b.p.Open(alice, "")
		h.Prepare()
		h.Prepare()
		time.Sleep(time.Second)
		b.calls("create", 1)
		o, out := runIn(h, "say hi")
		b.ok("hi")(o, out)
		if o.Waited != 0 {
			t.Errorf("waited %v although the sandbox was there", o.Waited)
		}
		h.Close()
		h.Close()
		b.alive(0)
	})
}

func TestCloseBeforeRun(t *testing.T) {
	for _, session := range []string{"", "s"} {
		t.Run("session "+session, func(t *testing.T) {
			inBubble(t, nil, func(b *bench) {
				h := b.p.Open(alice, session)
				h.Prepare()
				for b.f.count("create") == 0 { // a session is listed before
					time.Sleep(time.Millisecond)
				}
				h.Close()
				b.alive(len(session)) // kept with a session
				b.calls("create", 1)
				b.want(Unavailable, false, "")(runIn(h, "say no"))
				b.p.Open(alice, session).Close()
				b.calls("create", 1)
			})
		})
	}
}

func TestPanicInEmitReleasesEverything(t *testing.T) {
	for _, session := range []string{"", "s"} {
		t.Run("session "+session, func(t *testing.T) {
			inBubble(t, nil, func(b *bench) {
				func() {
					defer func() {
						if recover() == nil {
							t.Error("the panic was swallowed")
						}
					}()
					h := b.p.Open(alice, session)
					defer h.Close()
					h.Run(b.t.Context(), "x = 1\nsay hi\nsleep 30s", func(ev e2b.Event) {
						if ev.Type == e2b.Stdout {
							panic("client gone")
						}
					})
				}()
				b.alive(len(session))
				if session != "" {
					b.ok("1")(b.say(alice, session, "print x"))
				}
			})
		})
	}
}

func TestClientGoneDuringRunDeletesEphemeralSandbox(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		fails := 2
		b.f.inject(func(op, _ string) *fault {
			if op == "delete" && fails > 0 {
				fails--
				return &fault{status: 500}
			}
			return nil
		})
		ctx, cancel := context.WithCancel(b.t.Context())
		h := b.p.Open(alice, "")
		time.AfterFunc(time.Second, cancel)
		o := h.Run(ctx, "sleep 30s", func(e2b.Event) {})
		h.Close()
		if o.Status != Canceled {
			t.Errorf("status %v", o.Status)
		}
		b.alive(0)
		b.calls("delete", 3)
	})
}

func TestTimeoutIsRenewedBeforeEachRunAndSetToIdleAtRelease(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		time.Sleep(time.Minute)
		b.ok("1")(b.say(alice, "s", "print x"))
		time.Sleep(time.Second)
		busy, idle := 15*time.Minute+30*time.Second, 15*time.Minute
		want := []time.Duration{busy, idle, busy, idle}
		got := b.f.timeouts("box00000")
		if len(got) != len(want) {
			t.Fatalf("timeouts %v, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("timeouts %v, want %v", got, want)
			}
		}
	})
}

func TestSandboxOutlivesASlowModelBetweenTwoPrograms(t *testing.T) {
	for _, session := range []string{"", "s"} {
		t.Run("session "+session, func(t *testing.T) {
			inBubble(t, func(c *Config) { c.Limits.Idle = time.Minute }, func(b *bench) {
				h := b.p.Open(alice, session)
				defer h.Close()
				b.ok("")(runIn(h, "x = 1"))
				time.Sleep(9 * time.Minute)
				b.ok("1")(runIn(h, "print x"))
			})
		})
	}
}

func TestPrepareRenewsTheTimeoutInTheBackground(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		time.Sleep(time.Minute)
		h := b.p.Open(alice, "s")
		h.Prepare()
		time.Sleep(5 * time.Second) // the program is being written
		b.calls("timeout", 2)
		o, out := runIn(h, "print x")
		b.ok("1")(o, out)
		if o.Waited != 0 {
			t.Errorf("waited %v", o.Waited)
		}
		b.calls("timeout", 2)
		h.Close()
	})
}
