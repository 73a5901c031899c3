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
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSandboxesAreListedByUse(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "1", "x = 1"))
		time.Sleep(time.Second)
		b.ok("")(b.say(bob, "2", "x = 2"))
		h := b.p.Open(alice, "")
		b.ok("")(runIn(h, "x = 3"))
		b.ok("")(runIn(h, "x = 3"))
		infos := b.p.Sandboxes()
		if len(infos) != 3 {
			t.Fatalf("%d sandboxes, want 3", len(infos))
		}
		first, second, last := infos[0], infos[1], infos[2]
		if first.Key != Key([]byte("secret"), alice, "1") || first.State != Idle || first.Executions != 1 ||
			time.Since(first.LastUsed) < time.Second || first.Created.After(first.LastUsed) {
			t.Errorf("the first is %+v", first)
		}
		if second.Key != Key([]byte("secret"), bob, "2") || second.Identity == first.Identity {
			t.Errorf("the second is %+v", second)
		}
		if last.Key != "" || last.Identity != first.Identity || last.State != InUse || last.Requests != 1 || last.Executions != 2 {
			t.Errorf("the last is %+v", last)
		}
		h.Close()
	})
}

func TestStatsCountWhatIsInUseAndWhatWaits(t *testing.T) {
	inBubble(t, func(c *Config) { c.Limits.Max = 2; c.Limits.QueueTimeout = 5 * time.Second }, func(b *bench) {
		b.ok("")(b.say(alice, "idle", "x = 1"))
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { b.say(bob, "one", "sleep 10s") })
		}
		time.Sleep(time.Second)
		wg.Go(func() { b.say(bob, "", "None") })
		time.Sleep(time.Second)
		s := b.p.Stats()
		if s.Places != 2 || s.States[Idle] != 1 || s.States[InUse] != 1 || s.States[Starting] != 0 || s.States[Ending] != 0 {
			t.Errorf("%d places, states %v", s.Places, s.States)
		}
		if s.Waiting != 2 || s.Limits.Max != 2 {
			t.Errorf("%d wait, want one for its turn and one for room", s.Waiting)
		}
		wg.Wait()
	})
}

func TestOperatorEndsIdleAndBusySessions(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "idle", "x = 1"))
		b.ok("")(b.say(bob, "other", "x = 2"))
		var wg sync.WaitGroup
		wg.Go(func() { b.want(Interrupted, true, "")(b.say(alice, "busy", "sleep 30s")) })
		time.Sleep(time.Second)
		caller := b.p.Open(alice, "idle").caller
		if n := b.p.End(func(i Info) bool { return i.Identity == caller }); n != 2 {
			t.Errorf("%d sandboxes were ended, want alice's two", n)
		}
		wg.Wait()
		b.alive(1)
		synctest.Wait()
		if s := b.p.Stats(); s.Places != 1 || s.States[Ending] != 0 {
			t.Errorf("%d places, states %v; want bob's alone", s.Places, s.States)
		}
		b.want(Done, true, "NameError")(b.say(alice, "idle", "print x"))
		b.ok("2")(b.say(bob, "other", "print x"))
	})
}

func TestSessionThatAnOperatorEndsWhileItStartsIsToldAsTheirs(t *testing.T) {
	var h heard
	inBubble(t, func(c *Config) { c.Observer = h.observe }, func(b *bench) {
		b.f.inject(func(string, string) *fault { return &fault{delay: 5 * time.Second} })
		request := b.p.Open(alice, "s")
		request.Prepare()
		synctest.Wait()
		if n := b.p.End(func(i Info) bool { return i.State == Starting }); n != 1 {
			t.Errorf("%d sandboxes were ended, want 1", n)
		}
		b.p.Recycle() // comes too late to be the reason
		b.ok("")(runIn(request, "None"))
		b.f.inject(nil)
		request.Close()
		b.alive(0)
		if told := h.of(Deleted); len(told) != 1 || told[0].Reason != ReasonOperator {
			t.Errorf("its end is told as %+v", told)
		}
	})
}

// TestOperatorEndsAStartingSessionOfOthersToo: another process has made the
// sandbox.
func TestOperatorEndsAStartingSessionOfOthersToo(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		other := &bench{t: b.t, f: b.f, p: newTestPool(b.f, nil)}
		other.ok("")(other.say(alice, "s", "x = 1"))
		request := b.p.Open(alice, "s")
		request.Prepare()
		if n := b.p.End(func(i Info) bool { return i.State == Starting }); n != 1 {
			t.Errorf("%d sandboxes were ended, want 1", n)
		}
		b.ok("1")(runIn(request, "print x"))
		request.Close()
		b.alive(0)
		other.drain()
	})
}

func TestNothingIsEndedThatDoesNotMatch(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.ok("")(b.say(alice, "1", "x = 1"))
		if n := b.p.End(func(Info) bool { return false }); n != 0 {
			t.Errorf("%d sandboxes were ended", n)
		}
		b.ok("1")(b.say(alice, "1", "print x"))
	})
}
