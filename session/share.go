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
	"time"

	"go.uber.org/zap"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// roomEvery is how often a session looks whether its caller may have it, while
// all that the caller has are in use in some process.
const roomEvery = time.Second

// errMoved says that another process has ended, paused or replaced the sandbox.
var errMoved = errors.New("session: another process has ended or paused the sandbox")

// lease is what this process has told the others about its use of a sandbox.
// Its fields need the pool's mutex.
type lease struct {
	recorded bool      // there is, or was, a record of the sandbox
	until    time.Time // when it runs out; zero for none
	renewAt  time.Time // when the reaper should see to it; zero for never
}

// leaseTime is how long a use of a sandbox can be relied on: as long as a program
// may run, and a while for clocks and networks.
func leaseTime(limits Limits) time.Duration { return limits.ExecTimeout + margin }

func (l *lease) begin(until time.Time) {
	l.recorded, l.until, l.renewAt = true, until, until.Add(-margin)
}

// fresh says that the lease lasts as long as a program that begins now.
func (l *lease) fresh(limits Limits) bool {
	return time.Until(l.until) > leaseTime(limits)-renewSlack
}

// resting says that the lease could not be had a moment ago.
func (l *lease) resting() bool {
	now := time.Now()
	return !l.until.After(now) && l.renewAt.After(now)
}

func (e *entry) name() name { return name{e.identity, e.key} }

// Share lets the pool share its sessions with the other processes that use the
// same storage; nil ends that. It makes no call. A pool that is not remote has
// nothing to share.
func (p *Pool) Share(storage Storage) {
	if p.remote {
		p.shelf.use(storage)
	}
}

// obtainShared is obtain with the session's record held: no other process gets a
// sandbox for the session meanwhile.
func (p *Pool) obtainShared(ctx, wanted context.Context, f *flight, e *entry, limits Limits) (*box, error) {
	h, err := p.claimRecord(wanted, e, limits)
	if errors.Is(err, errAlone) {
		return p.obtainAlone(ctx, wanted, f, e, limits)
	}
	if err != nil {
		return nil, err
	}
	defer h.release()
	ctx, cancel := context.WithTimeout(ctx, limits.SandboxTimeout)
	defer cancel()
	known := h.rec.Sandbox
	b, err := p.obtainHeld(ctx, wanted, f, e, limits, h.rec)
	if err != nil {
		h.settle(ctx, known)
		return nil, err
	}
	until := time.Now().Add(leaseTime(limits))
	if h.put(ctx, h.rec.used(b.id, p.shelf.owner, until)) == nil {
		b.lease.begin(until)
	}
	return b, nil
}

// obtainHeld gets the sandbox that the record names, another one that is found, or
// a new one; but none beside one that another process uses.
func (p *Pool) obtainHeld(ctx, wanted context.Context, f *flight, e *entry, limits Limits, rec *record) (*box, error) {
	if rec.Sandbox != "" && !p.isEnding(rec.Sandbox) {
		b, err := p.connect(ctx, e, rec.Sandbox, limits)
		kind := e2b.KindOf(err)
		if err == nil || kind == e2b.RateLimited || kind != e2b.Gone && rec.leased(p.shelf.owner) {
			return b, err
		}
	}
	if b, err := p.find(ctx, e, limits, rec.Sandbox); b != nil || err != nil {
		return b, err
	}
	return p.create(ctx, wanted, f, e, limits)
}

// claimRecord returns the held record of a session that counts as one of its
// caller's, made if there is none, which may end another session of the caller.
func (p *Pool) claimRecord(wanted context.Context, e *entry, limits Limits) (*held, error) {
	late := time.Now().Add(limits.QueueTimeout)
	for {
		h, err := p.shelf.hold(wanted, e.name(), limits.SandboxTimeout)
		if err != nil {
			return nil, err
		}
		if h.rec.lives() {
			return h, nil
		}
		h.release()
		h, victim, err := p.reserveRecord(wanted, e, limits)
		if h != nil || err != nil {
			return h, err
		}
		if victim != nil && p.evict(wanted, *victim) {
			continue
		}
		if !time.Now().Before(late) {
			return nil, errNoPlace
		}
		if err := sleep(wanted, roomEvery); err != nil {
			return nil, err
		}
	}
}

// reserveRecord makes a record for a session, and returns it held, if its caller
// may have one more in all processes together. Otherwise it returns the session
// that should make room, if there is one.
func (p *Pool) reserveRecord(ctx context.Context, e *entry, limits Limits) (*held, *name, error) {
	storage, unlock, err := p.shelf.lock(ctx, e.identity, lockTimeout)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	records, err := p.shelf.all(ctx, storage, e.identity)
	if err != nil {
		return nil, nil, err
	}
	delete(records, e.name())
	if victim, full := p.oldestRecord(records, limits.MaxPerIdentity); full {
		return nil, victim, nil
	}
	h, err := p.shelf.hold(ctx, e.name(), lockTimeout)
	if err != nil {
		return nil, nil, err
	}
	if h.rec.lives() {
		return h, nil, nil
	}
	known := ""
	if h.rec != nil {
		known = h.rec.Sandbox // which was paused
	}
	if err := h.put(ctx, h.rec.used(known, p.shelf.owner, time.Now().Add(limits.SandboxTimeout+margin))); err != nil {
		h.release()
		return nil, nil, err
	}
	return h, nil, nil
}

// settle takes a claim back for which no sandbox was to be had. What the storage
// does not take is logged, and counts only until the lease runs out.
func (h *held) settle(ctx context.Context, known string) {
	if known == "" {
		_ = h.remove(ctx)
		return
	}
	_ = h.put(ctx, h.rec.used(known, h.shelf.owner, time.Time{}))
}

// oldestRecord returns the least recently used session that no process uses, if
// there are as many as there may be.
func (p *Pool) oldestRecord(records map[name]*record, most int) (victim *name, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	live := 0
	for n, rec := range records {
		if !rec.lives() {
			continue
		}
		live++
		if _, ending := p.ending[rec.Sandbox]; ending {
			full = true // until it is known whether that was for good
		}
		if rec.leased("") || p.pinned(n.session) || victim != nil && !rec.Used.Before(records[*victim].Used) {
			continue
		}
		victim = &n
	}
	if full = full && live >= most; full {
		return nil, true
	}
	return victim, live >= most
}

// pinned says that requests of this process have a session. It needs the mutex.
func (p *Pool) pinned(key string) bool {
	e := p.table.sessions[key]
	return e != nil && e.pins > 0
}

// evict ends a session that no process uses, and says whether it has.
func (p *Pool) evict(ctx context.Context, n name) bool {
	h, err := p.shelf.hold(ctx, n, lockTimeout)
	if err != nil {
		return false
	}
	defer h.release()
	if !h.rec.lives() {
		return true
	}
	id := h.rec.Sandbox
	if h.rec.leased("") || !p.giveUp(n.session, id) {
		return false
	}
	p.logger.Debug("session ended to make room", zap.String("sandbox_id", id))
	if id != "" {
		p.kill(context.WithoutCancel(ctx), id)
		p.observe(Event{Type: Deleted, SandboxID: id, Key: n.session, Identity: n.identity, Reason: ReasonEvicted})
	}
	return h.remove(ctx) == nil
}

// giveUp makes this process forget a sandbox that is about to end, unless it is
// in use here.
func (p *Pool) giveUp(key, id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pinned(key) {
		return false
	}
	e := p.table.sessions[key]
	if e == nil || e.box == nil || e.box.id != id {
		return true
	}
	if !e.idle() || e.turn.taken {
		return false
	}
	p.forgetIdle(e)
	return true
}

// keepLease tells the other processes that this one uses the sandbox. The error is
// errMoved when it must not any more. That it could not be told is no error: the
// storage may be down. The caller holds the turn.
func (p *Pool) keepLease(ctx context.Context, e *entry, b *box, limits Limits) error {
	if !p.shares(e) {
		return nil
	}
	p.mu.Lock()
	done, recorded := b.lease.fresh(limits) || b.lease.resting(), b.lease.recorded
	p.mu.Unlock()
	if done {
		return nil
	}
	h, err := p.shelf.hold(ctx, e.name(), lockTimeout)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		b.lease.renewAt = time.Now().Add(storageRest)
		return ctx.Err()
	}
	defer h.release()
	known := h.rec != nil && h.rec.Sandbox == b.id && !h.rec.Paused
	if !known && (recorded || h.rec != nil && h.rec.Sandbox != "") {
		p.mu.Lock()
		defer p.mu.Unlock()
		b.lease.until, b.lease.renewAt = time.Time{}, time.Time{}
		b.renewAt = time.Now().Add(margin) // the next program finds the right one
		return errMoved
	}
	until := time.Now().Add(leaseTime(limits))
	err = h.put(ctx, h.rec.used(b.id, p.shelf.owner, until))
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		b.lease.renewAt = time.Now().Add(storageRest)
		return nil
	}
	b.lease.begin(until)
	return nil
}

// endLease tells the other processes that this one does not use the sandbox any
// more, and returns whether one of them does. The caller holds the turn, unless
// the process exits and nobody uses the sandbox.
func (p *Pool) endLease(ctx context.Context, e *entry, b *box) (others bool) {
	p.mu.Lock()
	until := b.lease.until
	b.lease.until, b.lease.renewAt = time.Time{}, time.Time{}
	p.mu.Unlock()
	if until.IsZero() {
		return false
	}
	h, err := p.shelf.hold(ctx, e.name(), lockTimeout)
	if err != nil {
		return false
	}
	defer h.release()
	if h.rec == nil || h.rec.Sandbox != b.id || h.rec.Paused {
		return false
	}
	_ = h.put(ctx, h.rec.used(b.id, p.shelf.owner, time.Time{})) // logged; the lease runs out
	return h.rec.leased(p.shelf.owner)
}

// forget lets go of a sandbox that another process has taken away. The caller
// holds the turn.
func (p *Pool) forget(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.letGo()
}

// shares says that the other processes are told what this one does with a
// session.
func (p *Pool) shares(e *entry) bool { return e.key != "" && p.shelf.on() }
