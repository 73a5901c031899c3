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
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// BenchmarkTable measures taking and giving back one of many sessions, and the
// turn in it, without the network and without the keys' HMAC.
func BenchmarkTable(b *testing.B) {
	for _, sessions := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint("sessions=", sessions), func(b *testing.B) { benchmarkTable(b, sessions) })
	}
}

func benchmarkTable(b *testing.B, sessions int) {
	limits := testLimits()
	limits.Max = sessions
	p := NewPool(Config{Limits: limits})
	keys, callers := make([]string, sessions), make([]string, sessions)
	for i := range keys {
		keys[i], callers[i] = fmt.Sprintf("%064d", i), fmt.Sprintf("%064d", i/10)
		e := p.table.join(keys[i], callers[i])
		if p.table.claim(e) != nil {
			b.Fatal("no place")
		}
		e.box = &box{id: fmt.Sprint(i)}
		e.pins--
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := i * 7919 % len(keys)
		p.mu.Lock()
		e := p.table.join(keys[n], callers[n])
		e.turn.try()
		p.mu.Unlock()

		p.mu.Lock()
		e.turn.pass()
		e.pins--
		e.lastUsed = time.Now()
		p.table.touch(e)
		p.table.serve(e.identity)
		p.mu.Unlock()
	}
}

// BenchmarkKey measures what a request pays to be told from others.
func BenchmarkKey(b *testing.B) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	b.ReportAllocs()
	for b.Loop() {
		Key(secret, alice, "a-session-of-some-length")
	}
}

// BenchmarkSweep measures a look of the reaper at 10,000 sessions, which holds
// the lock.
func BenchmarkSweep(b *testing.B) {
	limits := testLimits()
	limits.Max = 10_000
	p := NewPool(Config{Limits: limits})
	for i := range 10_000 {
		e := p.table.join(fmt.Sprint(i), fmt.Sprint(i/10))
		p.table.claim(e)
		e.box = &box{}
		e.pins--
		e.lastUsed = time.Now()
	}
	for b.Loop() {
		p.sweep()
	}
}

func TestEndedSessionsAreRememberedWithinBounds(t *testing.T) {
	limits := testLimits()
	table := newTable(limits, func(*entry, *claim) {})
	for i := range remembered + 100 {
		e := table.join(fmt.Sprint("session ", i), "caller")
		e.box = &box{dirty: true}
		e.pins--
		table.remove(e)
	}
	if n := table.past.Len(); n != remembered {
		t.Errorf("%d sessions are remembered", n)
	}
	if e := table.join("session 5", "caller"); e.lost != nothing {
		t.Error("the oldest is still remembered")
	}
	if e := table.join(fmt.Sprint("session ", remembered), "caller"); e.lost != everything {
		t.Error("a young one is forgotten")
	}
	if e := table.join(fmt.Sprint("session ", remembered), "caller"); e.pins != 2 {
		t.Error("it has two entries")
	}
}

// TestManyRequestsOverManySessions: every answer is right, one sandbox for each
// session, none left after expiry.
func TestManyRequestsOverManySessions(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		limit := make(chan struct{}, 100)
		done := make(chan struct{})
		for i := range 1000 {
			go func() {
				defer func() { done <- struct{}{} }()
				limit <- struct{}{}
				defer func() { <-limit }()
				c := Caller{Kind: "user", Value: fmt.Sprint(i % 10)}
				session := fmt.Sprint(i % 50)
				b.ok(c.Value)(b.say(c, session, "x = "+c.Value+"\nprint x"))
			}()
		}
		for range 1000 {
			<-done
		}
		b.calls("create", 50)
		b.alive(50)
		time.Sleep(16 * time.Minute)
		synctest.Wait()
		b.alive(0)
		b.left(0, 0)
	})
}
