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
	"time"

	"go.uber.org/zap"
)

// reapEvery is the least time between two looks at the table, and so the most by
// which a session may outlive its idle time.
const reapEvery = time.Second

// dormancy is how long the reaper sleeps when there is nothing to look after,
// unless it is woken.
const dormancy = time.Hour

// startReaper starts the reaper, or wakes it if it has nothing to do. It needs
// the mutex.
func (p *Pool) startReaper() {
	switch {
	case !p.reaping:
		p.reaping = true
		p.spawn(p.reap)
	case p.dormant:
		p.wakeReaper()
	}
}

// wakeReaper makes the reaper look at once. It needs no mutex.
func (p *Pool) wakeReaper() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// reap ends idle sessions, keeps alive what is in use between two programs, and
// looks for twins and for what others have left, until the pool is drained.
func (p *Pool) reap(context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-p.wake:
		}
		next, over := p.sweep()
		if over {
			return
		}
		timer.Reset(max(next, reapEvery))
	}
}

// sweep does what is due and returns when to look again, or that the pool is
// drained.
func (p *Pool) sweep() (wait time.Duration, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.draining && (p.exiting || len(p.table.entries) == 0) {
		p.reaping = false
		return 0, true
	}
	now := time.Now()
	scan := p.scanWhenDue(now)
	p.dormant = len(p.table.entries) == 0 && len(p.checks) == 0
	if p.dormant {
		return min(dormancy, scan), false
	}
	idle := p.table.limits.Idle
	next := now.Add(min(idle, margin, scan))
	for e := range p.table.entries {
		if e.box == nil {
			continue
		}
		due := e.box.renewAt
		if renew := e.box.lease.renewAt; !renew.IsZero() && renew.Before(due) {
			due = renew
		}
		if e.idle() {
			due = e.lastUsed.Add(idle)
		}
		if e.idle() && !e.box.lease.until.IsZero() {
			p.release(e) // it could not be when its request ended
		}
		switch {
		case due.After(now):
			if due.Before(next) {
				next = due
			}
		case e.idle() && e.turn.taken:
			// It is being released.
		case e.idle():
			p.logger.Debug("session idle for too long", zap.String("sandbox_id", e.box.id))
			e.because(ReasonIdle)
			p.expire(e)
		default:
			p.keepAlive(e)
		}
	}
	if due := p.checkTwins(now); due.Before(next) && !due.IsZero() {
		next = due
	}
	return next.Sub(now), false
}

// keepAlive extends the life of a sandbox whose request is about to use it, or
// is between two programs: the model may take longer to write one than the
// provider's timeout. It needs the mutex.
func (p *Pool) keepAlive(e *entry) {
	if e.pins == 0 || !e.turn.try() {
		return // released, or a program runs that had its timeout set
	}
	b, limits := e.box, p.table.limits
	fresh := b.fresh(lifetime(e, limits))
	p.spawn(func(ctx context.Context) {
		defer p.passTurn(e)
		if p.keepLease(ctx, e, b, limits) == nil && !fresh {
			_ = p.extend(ctx, b, lifetime(e, limits)) // logged; the next program finds out
		}
	})
}
