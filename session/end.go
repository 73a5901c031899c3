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
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

const (
	// deleteTimeout is how long a sandbox's deletion is tried before it is left
	// to its timeout, deleteWait the first wait between attempts.
	deleteTimeout = 10 * time.Second
	deleteWait    = 100 * time.Millisecond

	// clockSlack is by how much a provider's account of a sandbox's life may
	// differ from this process's without another process being the reason.
	clockSlack = 10 * time.Second
)

// rest is called when nobody uses an entry any more. It needs the mutex.
func (p *Pool) rest(e *entry) {
	if e.pins > 0 {
		return
	}
	e.lastUsed = time.Now()
	switch {
	case e.flight != nil:
		e.flight.drop() // which comes back here when it has ended
	case e.box == nil:
		p.vacate(e)
		p.table.remove(e)
		p.announce()
	case e.key == "" || e.doomed != "" || e.box.ended || p.draining && !p.exiting:
		reason := ReasonDrained
		if e.key == "" {
			reason = ReasonRequest
		}
		e.because(cmp.Or(e.doomed, reason))
		p.table.remove(e)
		p.retire(e, nil)
		p.announce()
	case p.exiting:
		p.drainEntry(e)
	default:
		p.release(e)
	}
}

// release makes a session idle: it ends Limits.Idle from now, at the provider as
// in the table.
func (p *Pool) release(e *entry) {
	p.table.touch(e)
	p.table.serve(e.identity)
	if e.box == nil || p.table.sessions[e.key] != e || !e.turn.try() {
		return // it had to make room, or is being released already
	}
	b, idle := e.box, p.table.limits.Idle
	p.spawn(func(ctx context.Context) {
		defer p.passTurn(e)
		if !p.endLease(ctx, e, b) { // others need it longer
			_ = p.extend(ctx, b, idle) // logged; a program that comes finds out
		}
	})
}

// retire ends the sandbox of an entry that has left the table, and frees its
// place. That of a session is left alone if another process uses it too, unless
// an operator ends it. It needs the mutex.
func (p *Pool) retire(e *entry, heir *claim) {
	var session *entry
	if e.key != "" && e.doomed != ReasonOperator {
		session = e
	}
	p.end(e.box, session, func() { p.table.free(heir) })
}

// discard takes an entry's sandbox away from it and ends it; a guarded one only
// if no other process uses it. The caller holds the turn.
func (p *Pool) discard(e *entry, guarded bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.because(ReasonReplaced)
	b := e.letGo()
	b.failed = !guarded
	e.place = false
	p.table.uncount(e)
	var session *entry
	if guarded && e.key != "" {
		session = e
	}
	p.end(b, session, func() { p.table.free(nil) })
}

// end deletes a sandbox in the background, unless it is that of a session
// (given, else nil) and another process uses it. Then after is called with the
// mutex held, as it must be here. It does nothing for a sandbox whose deletion is
// under way.
func (p *Pool) end(b *box, session *entry, after func()) {
	if b.ended {
		if after != nil {
			after()
		}
		return
	}
	b.ended = true
	id := b.id
	p.ending[id] = struct{}{}
	leave := p.leave(b)
	p.spawn(func(ctx context.Context) {
		became := p.conclude(ctx, b, session != nil)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.ending, id)
		leave()
		switch became {
		case ended:
			p.observe(b.ends)
		case paused:
			ev := b.ends
			ev.Type = Paused
			p.observe(ev)
		case spared:
			p.logger.Debug("another process may use a sandbox, it is left to its timeout", zap.String("sandbox_id", id))
		}
		if became != ended && session != nil {
			p.table.spared(session, b)
		}
		if after != nil {
			after()
		}
	})
}

// leave notes that a session's sandbox is about to end if it is not sure to: it may
// be spared or paused, and then no other one must be made. It returns what says
// that this is over. Both need the mutex.
func (p *Pool) leave(b *box) (over func()) {
	key := b.owner.session
	if key == "" || !b.pause && !p.shelf.on() {
		return func() {}
	}
	done := make(chan struct{})
	p.leaving[key] = done
	return func() {
		if p.leaving[key] == done {
			delete(p.leaving, key)
		}
		close(done)
	}
}

// awaitLeaving waits until it is known what has become of a session's last
// sandbox.
func (p *Pool) awaitLeaving(ctx context.Context, e *entry) error {
	for {
		p.mu.Lock()
		done := p.leaving[e.key]
		p.mu.Unlock()
		if done == nil {
			return nil
		}
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fate is what has become of a sandbox that was to end.
type fate int

const (
	ended fate = iota
	paused
	spared // another process uses it
)

// conclude deletes or pauses a sandbox, with its record, unless another process
// uses it. What ends on an operator's word is spared for nobody, what has failed
// only for those who use it at this moment.
func (p *Pool) conclude(ctx context.Context, b *box, guarded bool) fate {
	h := p.recordOf(ctx, b)
	others := false
	switch {
	case h != nil:
		defer h.release()
		others = (guarded || b.failed) && h.rec.leased(p.shelf.owner) || guarded && h.rec.UsedBy != p.shelf.owner
	case guarded || b.failed && p.shelf.on():
		others = p.shared(ctx, b)
	}
	switch {
	case others:
		return spared
	case b.pause && p.suspend(ctx, b):
		if h != nil {
			rec := h.rec.used(b.id, p.shelf.owner, time.Time{})
			rec.Paused = true
			_ = h.put(ctx, rec) // logged; whoever uses it finds out
		}
		return paused
	}
	p.kill(ctx, b.id)
	if h != nil {
		_ = h.remove(ctx) // logged; whoever finds it will miss the sandbox
	}
	return ended
}

// recordOf returns the held record of a sandbox, nil if there is none to be had.
func (p *Pool) recordOf(ctx context.Context, b *box) *held {
	if b.owner.session == "" {
		return nil
	}
	h, err := p.shelf.hold(ctx, b.owner, lockTimeout)
	if err != nil {
		return nil
	}
	if h.rec == nil || h.rec.Sandbox != b.id || h.rec.Paused {
		h.release()
		return nil
	}
	return h
}

// shared says whether another process may use a session's sandbox: it has made
// it, or has extended its life, or that cannot be told.
func (p *Pool) shared(ctx context.Context, b *box) bool {
	key := b.owner.session
	if !p.remote || key == "" {
		return false
	}
	p.mu.Lock()
	found, life := b.found, b.until.Sub(b.born)
	p.mu.Unlock()
	if found {
		return true
	}
	infos, err := p.list(ctx, key)
	if err != nil {
		p.logger.Warn("listing sandboxes failed, one is left to its timeout", zap.String("sandbox_id", b.id), zap.Error(err))
		return true
	}
	for _, info := range infos {
		if info.ID == b.id {
			// Durations of one clock each: the two need not agree.
			return info.EndAt.IsZero() || info.StartedAt.IsZero() || info.EndAt.Sub(info.StartedAt) > life+clockSlack
		}
	}
	return false // gone, or the list lags behind a young one
}

// kill deletes a sandbox, however often that takes in deleteTimeout.
func (p *Pool) kill(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	for wait := deleteWait; ; wait *= 2 {
		err := p.deleteOnce(ctx, id)
		if err == nil {
			p.logger.Debug("sandbox deleted", zap.String("sandbox_id", id))
			return
		}
		p.observeCall(err)
		if e2b.KindOf(err) == e2b.Refused || e2b.KindOf(err) == e2b.Unauthorized || sleep(ctx, jitter(wait)) != nil {
			p.logger.Warn("deleting a sandbox failed, it is left to its timeout", zap.String("sandbox_id", id), zap.Error(err))
			return
		}
	}
}

func (p *Pool) deleteOnce(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout/2)
	defer cancel()
	return p.client.Delete(ctx, id)
}
