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
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// inCluster runs a test with two processes that share a storage.
func inCluster(t *testing.T, edit func(*Config), test func(one, two *bench, m *memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, m := newFake(t), newMemory()
		one, two := newProcess(f, m, edit), newProcess(f, m, edit)
		test(one.bench(t), two.bench(t), m)
		one.bury(t)
		two.bury(t)
		f.wait()
	})
}

// TestGatewaysCreateOneSandbox: where metadata alone makes two, see
// TestReplicasAgreeOnOneSandbox.
func TestGatewaysCreateOneSandbox(t *testing.T) {
	inCluster(t, nil, func(one, two *bench, _ *memory) {
		var wg sync.WaitGroup
		wg.Go(func() { one.ok("")(one.say(alice, "s", "x = 1")) })
		wg.Go(func() { two.ok("")(two.say(alice, "s", "y = 2")) })
		wg.Wait()
		one.ok("12")(one.say(alice, "s", "print x\nprint y"))
		two.ok("12")(two.say(alice, "s", "print x\nprint y"))
		one.calls("create", 1)
	})
}

func TestRecordSaysWhoUsesASandbox(t *testing.T) {
	inCluster(t, nil, func(one, two *bench, m *memory) {
		one.ok("")(one.say(alice, "s", "x = 1"))
		synctest.Wait()
		time.Sleep(time.Second)
		var wg sync.WaitGroup
		wg.Go(func() { two.ok("1")(two.say(alice, "s", "sleep 30s\nprint x")) })
		time.Sleep(10 * time.Second)
		records := m.records(t)
		if len(records) != 1 {
			t.Fatalf("%d records", len(records))
		}
		for key, rec := range records {
			if want := one.p.shelf.key(name{identityKey([]byte("secret"), alice), Key([]byte("secret"), alice, "s")}); key != want {
				t.Errorf("the key is %s, want %s", key, want)
			}
			if rec.Sandbox != "box00000" || rec.UsedBy != two.p.shelf.owner || !rec.leased(one.p.shelf.owner) || rec.leased(two.p.shelf.owner) {
				t.Errorf("while it is used: %+v", rec)
			}
		}
		wg.Wait()
		time.Sleep(time.Second)
		for _, rec := range m.records(t) {
			if rec.leased("") || rec.UsedBy != two.p.shelf.owner {
				t.Errorf("when its use has ended: %+v", rec)
			}
		}
		time.Sleep(16 * time.Minute)
		if len(m.records(t)) != 0 {
			t.Error("the record outlives the sandbox")
		}
		one.alive(0)
	})
}

// TestLeaseLastsAsLongAsARequest: also while the model writes for a long time.
func TestLeaseLastsAsLongAsARequest(t *testing.T) {
	inCluster(t, nil, func(one, _ *bench, m *memory) {
		h := one.p.Open(alice, "s")
		one.ok("")(runIn(h, "x = 1"))
		for range 60 {
			time.Sleep(10 * time.Second)
			for _, rec := range m.records(t) {
				if !rec.leased("") {
					t.Fatal("the lease has run out")
				}
			}
		}
		one.ok("1")(runIn(h, "print x"))
		h.Close()
	})
}

// TestGatewayDoesNotKillWhatAnotherUses: one has reasons to end the sandbox while
// a program of the other runs in it, or has run later.
func TestGatewayDoesNotKillWhatAnotherUses(t *testing.T) {
	reasons := map[string]func(b *bench){
		"idle": func(b *bench) { time.Sleep(16 * time.Minute) },
		"room": func(b *bench) {
			for i := range 2 {
				b.say(alice, fmt.Sprint("new ", i), "None")
			}
		},
		"drain": func(b *bench) { b.drain() },
		"exit": func(b *bench) {
			if err := b.p.Drain(b.t.Context(), true); err != nil {
				b.t.Error(err)
			}
		},
		"failure": func(b *bench) {
			b.f.inject(func(op, _ string) *fault {
				if op == "execute" {
					return &portClosed
				}
				return nil
			})
			b.say(alice, "s", "None")
			b.f.inject(nil)
		},
	}
	for name, reason := range reasons {
		t.Run(name, func(t *testing.T) {
			edit := func(c *Config) {
				c.Limits.MaxPerIdentity, c.Limits.DeleteOnExit, c.Limits.ExecTimeout = 2, true, time.Hour
			}
			inCluster(t, edit, func(one, two *bench, _ *memory) {
				one.ok("")(one.say(alice, "s", "x = 1"))
				var wg sync.WaitGroup
				wg.Go(func() { two.ok("1")(two.say(alice, "s", "sleep 30m\nprint x")) })
				time.Sleep(5 * time.Second)
				reason(one)
				wg.Wait()
				two.ok("1")(two.say(alice, "s", "print x"))
			})
		})
	}
}

func TestCapHoldsAcrossGateways(t *testing.T) {
	inCluster(t, func(c *Config) { c.Limits.MaxPerIdentity = 3 }, func(one, two *bench, m *memory) {
		for i := range 10 {
			b := []*bench{one, two}[i%2]
			b.ok("")(b.say(alice, fmt.Sprint(i), "x = 1"))
			time.Sleep(time.Second)
			if n := len(m.records(t)); n > 3 {
				t.Errorf("%d sessions", n)
			}
		}
		one.alive(3)
		// The most recently used are left, and who comes back to another is told.
		one.ok("1")(one.say(alice, "7", "print x"))
		two.want(Done, true, "NameError")(two.say(alice, "1", "print x"))
		one.alive(3)
	})
}

func TestCapWaitsForSessionsInUseElsewhere(t *testing.T) {
	inCluster(t, func(c *Config) { c.Limits.MaxPerIdentity = 1 }, func(one, two *bench, _ *memory) {
		var wg sync.WaitGroup
		wg.Go(func() { one.ok("")(one.say(alice, "a", "sleep 20s")) })
		time.Sleep(time.Second)
		start := time.Now()
		two.ok("")(two.say(alice, "b", "None"))
		if took := time.Since(start); took < 18*time.Second || took > 25*time.Second {
			t.Errorf("took %v", took)
		}
		wg.Wait()
		wg.Go(func() { one.want(TimedOut, true, "")(one.say(alice, "a", "spin")) })
		time.Sleep(time.Second)
		h := one.p.Open(alice, "a")
		h.Prepare()
		two.want(Busy, false, "")(two.say(alice, "c", "None"))
		h.Close()
		wg.Wait()
	})
}

// TestSessionGoesOnAfterItsGatewayDied in the middle of a program, or while it made
// the sandbox.
func TestSessionGoesOnAfterItsGatewayDied(t *testing.T) {
	for name, after := range map[string]time.Duration{"creating": 20 * time.Millisecond, "running": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, m := newFake(t), newMemory()
				one, two := newProcess(f, m, nil), newProcess(f, m, nil)
				var wg sync.WaitGroup
				wg.Go(func() {
					h := one.p.Open(alice, "s")
					defer h.Close()
					h.Run(one.ctx, "x = 1\nsleep 50s", func(e2b.Event) {})
				})
				time.Sleep(after)
				one.kill()
				start := time.Now()
				b := two.bench(t)
				b.say(alice, "s", "x = 2")
				if took := time.Since(start); took > 30*time.Second {
					t.Errorf("took %v", took)
				}
				b.ok("2")(b.say(alice, "s", "print x"))
				time.Sleep(5 * time.Minute)
				b.alive(1)
				wg.Wait()
				one.bury(t)
				two.bury(t)
				f.wait()
			})
		})
	}
}

func TestSessionEndedByAnotherGatewayIsToldLost(t *testing.T) {
	inCluster(t, func(c *Config) { c.Limits.MaxPerIdentity = 1 }, func(one, two *bench, _ *memory) {
		one.ok("")(one.say(alice, "a", "x = 1"))
		two.ok("")(two.say(alice, "b", "x = 2"))
		one.want(Done, true, "NameError")(one.say(alice, "a", "print x"))
		one.ok("NameError")(one.say(alice, "a", "print x"))
	})
}

// TestStorageThatFails: requests work, it is said once, and so is the recovery.
func TestStorageThatFails(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	for name, fault := range map[string]func(string) error{
		"down":  func(string) error { return errors.New("connection refused") },
		"locks": func(op string) error { return map[string]error{"lock": errors.New("no locks")}[op] },
		"reads": func(op string) error { return map[string]error{"load": errors.New("no reads")}[op] },
		"full":  func(op string) error { return map[string]error{"store": errors.New("no space")}[op] },
	} {
		t.Run(name, func(t *testing.T) {
			logs.TakeAll()
			inCluster(t, logged(zap.New(core)), func(one, two *bench, m *memory) {
				one.ok("")(one.say(alice, "a", "x = 1"))
				time.Sleep(time.Second)
				m.inject(fault)
				for range 3 {
					two.ok("1")(two.say(alice, "a", "print x"))
					one.ok("1")(one.say(alice, "a", "print x"))
				}
				one.ok("")(one.say(alice, "b", "x = 2"))
				time.Sleep(time.Minute)
				two.ok("2")(two.say(alice, "b", "print x"))
				m.inject(nil)
				time.Sleep(time.Minute)
				for range 2 {
					one.ok("2")(one.say(alice, "b", "print x"))
					two.ok("2")(two.say(alice, "b", "print x"))
				}
				time.Sleep(time.Minute)
				if n := len(m.records(t)); n != 2 {
					t.Errorf("%d records", n)
				}
				if n := logs.FilterMessageSnippet("storage fails, ").Len(); n < 1 || n > 2 {
					t.Errorf("the failure was told %d times by two processes", n)
				}
				if n := logs.FilterMessageSnippet("works again").Len(); n < 1 || n > 2 {
					t.Errorf("the recovery was told %d times by two processes", n)
				}
			})
		})
	}
}

// TestLockOfADeadProcessIsWaitedFor only as long as a sandbox may take.
func TestLockThatNobodyReleases(t *testing.T) {
	inCluster(t, nil, func(one, _ *bench, m *memory) {
		never := &process{f: one.f, m: m}
		m.mu.Lock()
		m.locks[storageRoot+"_"+Key([]byte("secret"), alice, "s")] = never
		m.mu.Unlock()
		start := time.Now()
		one.ok("")(one.say(alice, "s", "x = 1"))
		if took := time.Since(start); took > 50*time.Second {
			t.Errorf("took %v", took)
		}
		one.ok("1")(one.say(alice, "s", "print x"))
	})
}

func TestUnsharedPoolTouchesNoStorage(t *testing.T) {
	inCluster(t, func(c *Config) { c.Remote = false }, func(one, _ *bench, m *memory) {
		one.ok("")(one.say(alice, "s", "x = 1"))
		one.p.Share(nil)
		one.ok("1")(one.say(alice, "s", "print x"))
		if n := m.count("lock"); n != 0 {
			t.Errorf("%d locks", n)
		}
	})
}

// TestRequestsWithoutASessionShareNothing.
func TestRequestsWithoutASessionShareNothing(t *testing.T) {
	inCluster(t, nil, func(one, _ *bench, m *memory) {
		one.ok("1")(one.say(alice, "", "x = 1\nprint x"))
		if n := m.count("lock") + m.count("store"); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

// TestClientThatLeavesReleasesItsClaim.
func TestClientThatLeavesReleasesItsClaim(t *testing.T) {
	inCluster(t, nil, func(one, two *bench, m *memory) {
		one.f.inject(func(op, _ string) *fault {
			if op == "create" {
				return &fault{delay: 5 * time.Second}
			}
			return nil
		})
		ctx, leave := context.WithTimeout(context.Background(), time.Second)
		defer leave()
		h := one.p.Open(alice, "s")
		if o := h.Run(ctx, "x = 1", func(e2b.Event) {}); o.Status != Canceled {
			t.Errorf("%+v", o)
		}
		h.Close()
		two.ok("")(two.say(alice, "s", "x = 1"))
		one.ok("1")(one.say(alice, "s", "print x"))
		time.Sleep(5 * time.Minute)
		one.alive(1)
	})
}

// TestWhoWaitsForRoomElsewhereDoesNotProbe: another process uses all that the
// caller may have.
func TestWhoWaitsForRoomElsewhereDoesNotProbe(t *testing.T) {
	inCluster(t, func(c *Config) { c.Limits.MaxPerIdentity = 1 }, func(one, two *bench, m *memory) {
		var wg sync.WaitGroup
		wg.Go(func() { two.ok("")(two.say(alice, "first", "sleep 50s")) })
		time.Sleep(time.Second)
		one.trip()
		wg.Go(func() { one.ok("hi")(one.say(alice, "second", "say hi")) })
		synctest.Wait()
		one.ok("hi")(one.say(bob, "s", "say hi"))
		wg.Wait()
	})
}

// TestRefusedSessionLeavesNoRecord: it would count as one of its caller's in the
// other processes.
func TestRefusedSessionLeavesNoRecord(t *testing.T) {
	inCluster(t, func(c *Config) { c.Limits.MaxPerIdentity = 1 }, func(one, two *bench, m *memory) {
		var wg sync.WaitGroup
		wg.Go(func() { two.ok("")(two.say(alice, "first", "sleep 20s")) })
		time.Sleep(time.Second)
		wg.Go(func() { one.want(Unavailable, false, "")(one.say(alice, "second", "None")) })
		time.Sleep(time.Second)
		one.f.inject(func(op, _ string) *fault {
			if op == "create" {
				return &fault{delay: time.Minute}
			}
			return nil
		})
		one.trip()
		wg.Go(func() { one.want(Unavailable, false, "")(one.say(bob, "", "None")) }) // probes meanwhile
		wg.Wait()
		if n := len(m.records(t)); n != 0 {
			t.Errorf("%d records", n)
		}
		one.calls("create", 2)
	})
}
