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
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// creations returns when sandboxes were made, in order.
func (f *fakeE2B) creations() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	var at []time.Time
	for i := range len(f.boxes) {
		at = append(at, f.boxes[fmt.Sprintf("box%05d", i)].started)
	}
	return at
}

func TestCreationsKeepTheirDistance(t *testing.T) {
	edit := func(c *Config) { c.Limits.CreateEvery = 200 * time.Millisecond }
	inBubble(t, edit, func(b *bench) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { b.ok("")(b.say(Caller{"user", fmt.Sprint(i % 7)}, "", "None")) })
			time.Sleep(10 * time.Millisecond)
		}
		wg.Wait()
		time.Sleep(time.Minute)
		b.ok("")(b.say(alice, "", "None")) // nothing was saved up
		b.ok("")(b.say(alice, "", "None"))
		at := b.f.creations()
		for i := range at[1:] {
			if d := at[i+1].Sub(at[i]); d < 200*time.Millisecond {
				t.Errorf("creation %d comes %v after the one before", i+1, d)
			}
		}
		if took := at[19].Sub(at[0]); took > 4*time.Second {
			t.Errorf("twenty took %v", took)
		}
	})
}

// TestPaceIsSharedFairly: somebody with a hundred requests does not stand before
// another one's first.
func TestPaceIsSharedFairly(t *testing.T) {
	edit := func(c *Config) { c.Limits.CreateEvery = time.Second }
	inBubble(t, edit, func(b *bench) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		ran := map[Status]int{}
		for i := range 100 {
			wg.Go(func() {
				o, _ := b.say(alice, fmt.Sprint(i), "None")
				mu.Lock()
				defer mu.Unlock()
				ran[o.Status]++
			})
		}
		time.Sleep(5 * time.Second)
		for range 5 {
			start := time.Now()
			b.ok("")(b.say(bob, "", "None"))
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("bob waited %v", took)
			}
		}
		wg.Wait()
		if ran[Done] < 20 || ran[Busy] < 20 || ran[Done]+ran[Busy] != 100 {
			t.Errorf("alice's programs: %v", ran)
		}
	})
}

func TestWaitThatWouldBeTooLongIsRefusedAtOnce(t *testing.T) {
	edit := func(c *Config) { c.Limits.CreateEvery = time.Minute }
	inBubble(t, edit, func(b *bench) {
		b.ok("")(b.say(alice, "", "None"))
		start := time.Now()
		h := b.p.Open(alice, "s")
		b.want(Busy, false, "")(runIn(h, "None"))
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
		time.Sleep(time.Minute)
		b.ok("")(runIn(h, "None")) // the request may try again
		h.Close()
	})
}

func TestPaceWithoutWaiters(t *testing.T) {
	edit := func(c *Config) { c.Limits.CreateEvery = 10 * time.Second }
	inBubble(t, edit, func(b *bench) {
		b.ok("")(b.say(alice, "", "None"))
		ctx, leave := context.WithTimeout(context.Background(), time.Second)
		defer leave()
		h := b.p.Open(alice, "")
		if o := h.Run(ctx, "None", func(e2b.Event) {}); o.Status != Canceled {
			t.Errorf("%+v", o)
		}
		h.Close()
		start := time.Now()
		b.drain()
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("draining took %v", took)
		}
		b.calls("create", 1)
	})
}

// TestRateThatIsLifted lets those go who wait.
func TestRateThatIsLifted(t *testing.T) {
	edit := func(c *Config) { c.Limits.CreateEvery = 10 * time.Second }
	inBubble(t, edit, func(b *bench) {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { b.ok("")(b.say(alice, "", "None")) })
		}
		time.Sleep(time.Second)
		start := time.Now()
		b.p.SetLimits(testLimits())
		wg.Wait()
		if took := time.Since(start); took > 11*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
