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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// first returns a fault that the first n calls of a kind meet.
func first(n int, op string, bad fault) func(string, string) *fault {
	return func(got, _ string) *fault {
		if got != op || n == 0 {
			return nil
		}
		n--
		return &bad
	}
}

var (
	notFound    = fault{status: 502, body: `{"message":"The sandbox was not found","code":502}`}
	portClosed  = fault{status: 502, body: `{"message":"The sandbox is running but port is not open","port":49999,"code":502}`}
	htmlPage    = fault{status: 502, body: "<html><head><title>502 Bad Gateway</title></head></html>"}
	contextGone = fault{status: 404, body: "Context 9f not found"}
)

// TestSandboxThatFails holds the table of the design: what happens to a session
// with variables when a call fails n times.
func TestSandboxThatFails(t *testing.T) {
	cases := []struct {
		name    string
		op      string
		n       int
		bad     fault
		status  Status
		lost    bool
		output  string
		creates int // above the first one
		alive   int
		after   string // what the next program finds in x
		told    bool   // the next program is told of the loss
	}{
		{name: "context not found", op: "execute", n: 1, bad: contextGone, status: Done, lost: true, output: "hi", alive: 1, after: "NameError"},
		{name: "sandbox not found", op: "execute", n: 1, bad: notFound, status: Done, lost: true, output: "hi", creates: 1, alive: 1, after: "NameError"},
		{name: "other 404", op: "execute", n: 1, bad: fault{status: 404, body: "nothing here"}, status: Done, lost: true, output: "hi", creates: 1, alive: 1, after: "NameError"},
		{name: "sandbox not found, and again", op: "execute", n: 2, bad: notFound, status: Unavailable, creates: 1, after: "NameError", told: true},
		{name: "port not open for a moment", op: "execute", n: 2, bad: portClosed, status: Done, output: "hi", alive: 1, after: "1"},
		{name: "HTML page for a moment", op: "execute", n: 3, bad: htmlPage, status: Done, output: "hi", alive: 1, after: "1"},
		{name: "port not open any more", op: "execute", n: 4, bad: portClosed, status: Done, lost: true, output: "hi", creates: 1, alive: 1, after: "NameError"},
		{name: "port never open", op: "execute", n: 8, bad: portClosed, status: Unavailable, creates: 1, after: "NameError", told: true},
		{name: "no connection", op: "execute", n: 1, bad: fault{dial: true}, status: Done, output: "hi", alive: 1, after: "1"},
		{name: "token refused", op: "execute", n: 1, bad: fault{status: 401}, status: Done, output: "hi", alive: 1, after: "1"},
		{name: "fresh token refused", op: "execute", n: 2, bad: fault{status: 403}, status: Done, lost: true, output: "hi", creates: 1, alive: 1, after: "NameError"},
		{name: "server error", op: "execute", n: 1, bad: fault{status: 500}, status: Interrupted, lost: true, after: "NameError"},
		{name: "bad request", op: "execute", n: 1, bad: fault{status: 422}, status: Interrupted, lost: true, after: "NameError"},
		{name: "lost connection", op: "execute", n: 1, bad: fault{cut: true}, status: Interrupted, lost: true, after: "NameError"},
		{name: "timeout not extended", op: "timeout", n: 9, bad: fault{status: 500}, status: Done, output: "hi", alive: 1, after: "1"},
		{name: "timeout hangs", op: "timeout", n: 9, bad: fault{hang: true}, status: Done, output: "hi", alive: 1, after: "1"},
		{name: "timeout says not found, connect too", op: "timeout", n: 1, bad: fault{status: 404}, status: Done, output: "hi", alive: 1, after: "1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, nil, func(b *bench) {
				b.ok("")(b.say(alice, "s", "x = 1"))
				time.Sleep(time.Minute)
				b.f.inject(first(c.n, c.op, c.bad))
				b.want(c.status, c.lost, c.output)(b.say(alice, "s", "say hi"))
				b.calls("create", 1+c.creates)
				b.alive(c.alive)
				b.f.inject(nil)
				b.want(Done, c.told, c.after)(b.say(alice, "s", "print x"))
				b.want(Done, false, "")(b.say(alice, "s", "None"))
			})
		})
	}
}

func TestProgramIsSentOnceWhenItMayHaveRun(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.f.inject(first(1, "execute", fault{cut: true}))
		o, _ := b.say(alice, "", "say hi\nsleep 5s")
		if o.Status != Interrupted || e2b.KindOf(o.Err) != e2b.Interrupted {
			t.Errorf("status %v, %v", o.Status, o.Err)
		}
		b.calls("execute", 1)
		b.alive(0)
	})
}

func TestVanishedSandboxIsReplacedAndLossToldOnce(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		time.Sleep(time.Second)
		b.f.vanish("box00000")
		b.want(Done, true, "NameError")(b.say(alice, "s", "print x"))
		b.ok("7")(b.say(alice, "s", "say 7"))
		b.alive(1)
	})
}

func TestSandboxLostDuringRun(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		time.AfterFunc(5*time.Second, func() { b.f.vanish("box00000") })
		b.want(Interrupted, true, "a")(b.say(alice, "s", "say a\nsleep 10s\nsay b"))
		b.ok("NameError")(b.say(alice, "s", "print x"))
		if n := len(slices.DeleteFunc(b.f.began(), func(c string) bool { return c != "say a\nsleep 10s\nsay b" })); n != 1 {
			t.Errorf("the program began %d times", n)
		}
	})
}

func TestRestartedInterpreterKeepsTheSession(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		b.want(Restarted, true, "aContextRestarting")(b.say(alice, "s", "say a\nexit"))
		b.ok("NameError")(b.say(alice, "s", "print x"))
		b.calls("create", 1)
	})
}

func TestTimedOutRunLeavesAUsableSession(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		o, out := b.say(alice, "s", "say start\nspin")
		b.want(TimedOut, false, "start")(o, out)
		if o.Ran != time.Minute {
			t.Errorf("ran %v", o.Ran)
		}
		start := time.Now()
		b.ok("1")(b.say(alice, "s", "print x"))
		if took := time.Since(start); took < time.Second || took > 2*time.Second {
			t.Errorf("the next program came after %v", took)
		}
		b.calls("restart", 0)
		start = time.Now()
		b.ok("1")(b.say(alice, "s", "print x"))
		if took := time.Since(start); took > time.Second {
			t.Errorf("the one after that came after %v", took)
		}
	})
}

func TestBlockedContextIsRestarted(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		b.want(TimedOut, false, "")(b.say(alice, "s", "wedge"))
		o, out := b.say(alice, "s", "print x")
		b.want(Done, true, "NameError")(o, out)
		if o.FilesLost {
			t.Error("the files are told lost, and are still there")
		}
		b.ok("ok")(b.say(alice, "s", "say ok"))
		b.calls("restart", 1)
		b.calls("create", 1)
	})
}

func TestBlockedSandboxIsReplacedWhenNoRestartHelps(t *testing.T) {
	for _, op := range []string{"contexts", "restart"} {
		t.Run(op, func(t *testing.T) {
			inBubble(t, nil, func(b *bench) {
				b.ok("")(b.say(alice, "s", "x = 1"))
				b.want(TimedOut, false, "")(b.say(alice, "s", "wedge"))
				b.f.inject(first(1, op, fault{status: 500}))
				o, out := b.say(alice, "s", "print x")
				b.want(Done, true, "NameError")(o, out)
				if !o.FilesLost {
					t.Error("the files are not told lost")
				}
				b.calls("create", 2)
				b.alive(1)
			})
		})
	}
}

func TestCanceledRunIsProbedBeforeTheNext(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		h := b.p.Open(alice, "s")
		ctx, cancel := context.WithCancel(b.t.Context())
		time.AfterFunc(time.Second, cancel)
		if o := h.Run(ctx, "spin", func(e2b.Event) {}); o.Status != Canceled || !errors.Is(o.Err, context.Canceled) {
			t.Errorf("outcome %+v", o)
		}
		h.Close()
		b.ok("1")(b.say(alice, "s", "print x"))
		b.calls("execute", 4)
	})
}

func TestTooMuchOutput(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		client, err := e2b.New(e2b.Config{APIKey: "k", APIURL: "http://api.test", SandboxURL: "http://box.test", Transport: b.f, MaxRead: 200})
		if err != nil {
			t.Fatal(err)
		}
		b.p.client = client
		b.ok("")(b.say(alice, "s", "x = 1"))
		o, _ := b.say(alice, "s", "say aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nsay bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\nsay cccccccccccccc\nsay d")
		if o.Status != TooMuchOutput {
			t.Errorf("status %v", o.Status)
		}
		b.ok("1")(b.say(alice, "s", "print x"))
	})
}

// TestCreationThatFails holds the rules for creations.
func TestCreationThatFails(t *testing.T) {
	cases := []struct {
		name    string
		n       int
		bad     fault
		status  Status
		creates int
		within  time.Duration
	}{
		{"rate limit passes", 2, fault{status: 429}, Done, 3, 5 * time.Second},
		{"rate limit stays", 1000, fault{status: 429}, Unavailable, 0, 31 * time.Second},
		{"rate limit with a date too far", 1000, fault{status: 429, retry: "60"}, Unavailable, 1, time.Second},
		{"server error once", 1, fault{status: 500}, Done, 2, time.Second},
		{"server errors", 1000, fault{status: 503}, Unavailable, 2, time.Second},
		{"no connection", 1000, fault{dial: true}, Unavailable, 2, time.Second},
		{"refused", 1000, fault{status: 400}, Unavailable, 1, time.Second},
		{"key refused", 1000, fault{status: 401}, Unavailable, 1, time.Second},
		{"hangs", 1000, fault{hang: true}, Unavailable, 1, 31 * time.Second},
	}
	for _, c := range cases {
		for _, session := range []string{"", "s"} {
			t.Run(c.name+" "+session, func(t *testing.T) {
				inBubble(t, nil, func(b *bench) {
					b.f.inject(first(c.n, "create", c.bad))
					start := time.Now()
					o, _ := b.say(alice, session, "say hi")
					if o.Status != c.status {
						t.Errorf("status %v, %v", o.Status, o.Err)
					}
					if took := time.Since(start); took > c.within {
						t.Errorf("took %v", took)
					}
					if got := b.f.count("create"); c.creates != 0 && got != c.creates || got > 12 {
						t.Errorf("%d attempts to create", got)
					}
					b.f.inject(nil)
					b.ok("hi")(b.say(alice, session, "say hi"))
				})
			})
		}
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.f.inject(first(1, "create", fault{status: 429, retry: "7"}))
		o, out := b.say(alice, "", "say hi")
		b.ok("hi")(o, out)
		if o.Waited < 7*time.Second || o.Waited > 8*time.Second {
			t.Errorf("waited %v", o.Waited)
		}
	})
}

func TestARequestCreatesAtMostTwoSandboxes(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.f.inject(func(op, _ string) *fault {
			if op == "execute" {
				return &notFound
			}
			return nil
		})
		for _, session := range []string{"", "s"} {
			for i := 1; i < 5; i++ {
				before := b.f.count("create")
				h := b.p.Open(alice, session)
				h.Prepare()
				for range 3 {
					b.want(Unavailable, false, "")(runIn(h, "say no"))
				}
				h.Close()
				if n := b.f.count("create") - before; n > 2 {
					t.Errorf("%d sandboxes created for one request", n)
				}
			}
		}
		b.alive(0)
	})
}

func TestRefusedCreationIsAnErrorForTheOperator(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	inBubble(t, func(c *Config) { c.Logger = zap.New(core) }, func(b *bench) {
		b.f.inject(first(1, "create", fault{status: 403, body: "key test-key of team 7 is blocked"}))
		b.want(Unavailable, false, "")(b.say(alice, "secret-session", "say hi"))
	})
	if logs.FilterLevelExact(zapcore.ErrorLevel).Len() != 1 {
		t.Errorf("logged: %v", logs.All())
	}
	for _, entry := range logs.All() {
		text := entry.Message + encode(entry.ContextMap())
		for _, secret := range []string{"alice", "secret-session", "test-key", "team 7"} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is in the log: %s", secret, text)
			}
		}
	}
}

func TestCreationThatOutlivesItsClientIsDeletedOrKept(t *testing.T) {
	for _, session := range []string{"", "s"} {
		t.Run("session "+session, func(t *testing.T) {
			inBubble(t, nil, func(b *bench) {
				b.f.inject(first(1, "create", fault{delay: 5 * time.Second}))
				ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
				defer cancel()
				h := b.p.Open(alice, session)
				if o := h.Run(ctx, "say no", func(e2b.Event) {}); o.Status != Canceled || o.Waited != time.Second {
					t.Errorf("outcome %+v", o)
				}
				h.Close()
				time.Sleep(10 * time.Second)
				b.alive(len(session))
				if session != "" {
					b.ok("hi")(b.say(alice, session, "say hi"))
					b.calls("create", 1)
				}
			})
		})
	}
}

func TestBackoffEndsWhenNobodyWaits(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.f.inject(first(1000, "create", fault{status: 429}))
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
		defer cancel()
		h := b.p.Open(alice, "")
		var wg sync.WaitGroup
		wg.Go(func() { h.Run(ctx, "say no", func(e2b.Event) {}); h.Close() })
		wg.Wait()
		n := b.f.count("create")
		time.Sleep(time.Minute)
		b.calls("create", n)
		b.left(0, 0)
	})
}

func TestInterpreterThatDiedUnheardIsNoticed(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		func() {
			defer func() { _ = recover() }()
			h := b.p.Open(alice, "s")
			defer h.Close()
			h.Run(b.t.Context(), "say hi\nexit", func(ev e2b.Event) {
				if ev.Type == e2b.Stdout {
					panic("client gone")
				}
			})
		}()
		b.want(Done, true, "NameError")(b.say(alice, "s", "print x"))
		b.ok("NameError")(b.say(alice, "s", "print x"))
	})
}

func TestContextIsReplacedOncePerProgram(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		b.f.inject(first(2, "execute", contextGone))
		b.want(Done, true, "hi")(b.say(alice, "s", "say hi"))
		b.calls("context", 1)
		b.calls("create", 2)
		b.alive(1)
	})
}

func TestContextThatCannotBeMadeMeansAnotherSandbox(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "s", "x = 1"))
		lost := first(1, "execute", contextGone)
		b.f.inject(func(op, id string) *fault {
			if op == "context" {
				return &fault{status: 500}
			}
			return lost(op, id)
		})
		b.want(Done, true, "hi")(b.say(alice, "s", "say hi"))
		b.calls("create", 2)
		b.alive(1)
	})
}

func TestProgramsOfARequestGoOnInTheNewContext(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.f.inject(first(1, "execute", contextGone))
		b.ok("")(b.say(alice, "s", "x = 2")) // nothing was lost: it is the first
		b.ok("2")(b.say(alice, "s", "print x"))
		b.want(TimedOut, false, "")(b.say(alice, "s", "wedge"))
		b.want(Done, true, "NameError")(b.say(alice, "s", "print x"))
		b.calls("contexts", 0) // the context's id is known
		b.calls("restart", 1)
	})
}

func TestClientMayLeaveWhileSomethingIsMended(t *testing.T) {
	for name, bad := range map[string]fault{"not ready": portClosed, "token": {status: 401}, "context": contextGone} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(b *bench) {
				b.ok("")(b.say(alice, "s", "x = 1"))
				time.Sleep(time.Minute)
				b.f.inject(func(op, _ string) *fault {
					switch op {
					case "execute":
						return &bad
					case "connect", "context":
						return &fault{hang: true}
					default:
						return nil
					}
				})
				ctx, cancel := context.WithTimeout(b.t.Context(), 200*time.Millisecond)
				defer cancel()
				h := b.p.Open(alice, "s")
				if o := h.Run(ctx, "say no", func(e2b.Event) {}); o.Status != Canceled {
					t.Errorf("outcome %+v", o)
				}
				h.Close()
				b.f.inject(nil)
				o, _ := b.say(alice, "s", "say hi")
				if o.Status != Done {
					t.Errorf("outcome %+v", o)
				}
			})
		})
	}
}

func TestStatusAndErrorInWords(t *testing.T) {
	seen := map[string]bool{}
	for s := Status(0); s <= Restarted+1; s++ {
		if text := s.String(); text == "" || seen[text] {
			t.Errorf("status %d is %q", int(s), text)
		} else {
			seen[text] = true
		}
	}
	if text := (&BusyError{RetryAfter: 5 * time.Second}).Error(); !strings.Contains(text, "5s") {
		t.Errorf("error %q", text)
	}
}
