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
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// maxChecks is how often a list that fails is asked for again.
const maxChecks = 5

// check is a look at a session, some time after it got a sandbox, for others of
// the same session: two processes may have created one at the same time, or a
// creation that seemed to fail may have succeeded.
type check struct {
	due    time.Time
	failed int
	busy   bool
	ends   map[string]time.Time // when each twin was to end at the last look
}

// grace is how long a twin must have been unused before it is deleted: any
// program that ran in it has ended by then.
func grace(limits Limits) time.Duration { return limits.ExecTimeout + time.Minute }

// watchTwins has the reaper look at a session after the grace.
func (p *Pool) watchTwins(e *entry, limits Limits) {
	if !p.remote || e.key == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.checks[e.key] == nil {
		p.checks[e.key] = &check{due: time.Now().Add(grace(limits))}
		p.startReaper()
	}
}

// checkTwins begins the checks that are due and returns when the next is. It
// needs the mutex.
func (p *Pool) checkTwins(now time.Time) (next time.Time) {
	for key, c := range p.checks {
		if c.busy || p.draining {
			continue
		}
		if c.due.After(now) {
			if next.IsZero() || c.due.Before(next) {
				next = c.due
			}
			continue
		}
		c.busy = true
		p.spawn(func(ctx context.Context) { p.lookForTwins(ctx, key, c) })
	}
	return next
}

// lookForTwins deletes what nobody has used since the last look, keeps the one
// that every process chooses, and comes back while there are others. Where a
// record says which one that is, no process begins with another any more, and one
// look is enough.
func (p *Pool) lookForTwins(ctx context.Context, key string, c *check) {
	infos, err := p.list(ctx, key)
	recorded := p.chosenFirst(ctx, infos)
	p.mu.Lock()
	defer p.mu.Unlock()
	c.busy = false
	c.due = time.Now().Add(grace(p.table.limits))
	switch {
	case err != nil && c.failed < maxChecks:
		c.failed++
		return
	case err != nil || len(infos) < 2:
		delete(p.checks, key)
		return
	}
	limits := p.table.limits
	ends := make(map[string]time.Time)
	for _, twin := range infos[1:] {
		p.dropTwin(key, twin.ID)
		last, seen := c.ends[twin.ID]
		unused := seen && last.Equal(twin.EndAt)
		if recorded && !twin.EndAt.IsZero() {
			// It was to live for the idle time at least when it was used.
			rested := twin.EndAt.Add(grace(limits) - limits.Idle)
			unused = !rested.After(time.Now())
			if !unused && rested.Before(c.due) {
				c.due = rested
			}
		}
		if unused && !p.inUse(key, twin.ID) {
			p.deleteTwin(twin)
			continue
		}
		ends[twin.ID] = twin.EndAt
	}
	c.ends = ends
}

// chosenFirst puts the sandbox that the session's record names before all others,
// and says whether there is one.
func (p *Pool) chosenFirst(ctx context.Context, infos []e2b.Info) bool {
	if len(infos) < 2 || !p.shelf.on() {
		return false
	}
	first := infos[0].Metadata
	rec, err := p.shelf.peek(ctx, name{first[metaIdentity], first[metaSession]})
	if err != nil || rec == nil {
		return false
	}
	i := slices.IndexFunc(infos, func(i e2b.Info) bool { return i.ID == rec.Sandbox })
	if i < 0 {
		return false
	}
	infos[0], infos[i] = infos[i], infos[0]
	return true
}

// dropTwin makes an idle session forget a sandbox that is not the one every
// process chooses; its next program finds the right one. It needs the mutex.
func (p *Pool) dropTwin(key, id string) {
	e := p.table.sessions[key]
	if e == nil || !e.idle() || e.turn.taken || e.box.id != id {
		return
	}
	p.logger.Info("session goes on in an older sandbox of its own, its last one is left to its timeout or deleted",
		zap.String("sandbox_id", id))
	p.forgetIdle(e)
}

// forgetIdle makes an idle session forget its sandbox, which goes on without. It
// needs the mutex.
func (p *Pool) forgetIdle(e *entry) {
	e.drop()
	p.vacate(e)
	p.table.remove(e)
}

// inUse says whether a session of this pool has the sandbox. It needs the mutex.
func (p *Pool) inUse(key, id string) bool {
	e := p.table.sessions[key]
	return e != nil && e.box != nil && e.box.id == id
}

// deleteTwin deletes a sandbox that nobody has. It needs the mutex.
func (p *Pool) deleteTwin(twin e2b.Info) {
	if _, ending := p.ending[twin.ID]; ending {
		return
	}
	p.logger.Info("deleting an unused second sandbox of a session", zap.String("sandbox_id", twin.ID))
	p.ending[twin.ID] = struct{}{}
	p.spawn(func(ctx context.Context) {
		p.kill(ctx, twin.ID)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.ending, twin.ID)
		p.observe(Event{Type: Deleted, SandboxID: twin.ID, Key: twin.Metadata[metaSession], Identity: twin.Metadata[metaIdentity], Reason: ReasonTwin})
	})
}
