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
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// Waits between attempts to create a sandbox: doubled after each refusal for
// rate, the same after each failure.
const (
	rateWait    = 500 * time.Millisecond
	maxRateWait = 8 * time.Second
	failureWait = 250 * time.Millisecond
)

// flight is the getting of a sandbox for an entry; there is one at a time.
type flight struct {
	owner *Handle
	done  chan struct{}
	err   error // after done

	// drop says that nobody waits for the sandbox any more. A call that is under
	// way goes on: only its answer tells what there is to delete.
	drop context.CancelFunc
}

// launch begins to get a sandbox for the handle's entry. It needs the mutex.
func (p *Pool) launch(h *Handle) *flight {
	e := h.entry
	wanted, drop := context.WithCancel(p.base)
	f := &flight{owner: h, done: make(chan struct{}), drop: drop}
	e.flight = f
	p.spawn(func(ctx context.Context) { p.fly(ctx, wanted, f, e) })
	return f
}

// fly gets the sandbox and says so. Waiting ends with wanted, calls with ctx.
func (p *Pool) fly(ctx, wanted context.Context, f *flight, e *entry) {
	b, err := p.obtain(ctx, wanted, f, e)
	p.mu.Lock()
	defer p.mu.Unlock()
	f.drop()
	f.err = err
	e.flight = nil
	close(f.done)
	if err != nil {
		p.vacate(e)
	} else {
		e.box, b.owner = b, e.name()
		e.lastUsed = time.Now()
		p.startReaper()
	}
	switch {
	case e.pins == 0:
		p.rest(e)
	case p.exiting && e.box != nil:
		p.drainEntry(e)
	}
}

// vacate gives the place of an entry without a sandbox back.
func (p *Pool) vacate(e *entry) {
	if !e.place {
		return
	}
	e.place = false
	p.table.uncount(e)
	p.table.free(nil)
}

// obtain takes a place, then finds the session's sandbox or creates one.
func (p *Pool) obtain(ctx, wanted context.Context, f *flight, e *entry) (*box, error) {
	if err := p.refused(); err != nil && !p.findable(e) {
		return nil, err
	}
	if err := p.awaitLeaving(wanted, e); err != nil {
		return nil, err
	}
	limits, err := p.reserve(wanted, e)
	if err != nil {
		return nil, err
	}
	if p.shares(e) {
		return p.obtainShared(ctx, wanted, f, e, limits)
	}
	return p.obtainAlone(ctx, wanted, f, e, limits)
}

// obtainAlone is obtain without a word to other processes.
func (p *Pool) obtainAlone(ctx, wanted context.Context, f *flight, e *entry, limits Limits) (*box, error) {
	ctx, cancel := context.WithTimeout(ctx, limits.SandboxTimeout)
	defer cancel()
	if p.findable(e) {
		if b, err := p.find(ctx, e, limits, ""); b != nil || err != nil {
			return b, err
		}
	}
	return p.create(ctx, wanted, f, e, limits)
}

// findable says that there may be a sandbox of an entry that this process does
// not know: of a session that is paused, or that another process began.
func (p *Pool) findable(e *entry) bool { return p.remote && e.key != "" }

// reserve waits for a place and returns the limits in force.
func (p *Pool) reserve(wanted context.Context, e *entry) (Limits, error) {
	p.mu.Lock()
	limits := p.table.limits
	if p.exiting {
		p.mu.Unlock()
		return limits, errClosed
	}
	if e.place {
		p.mu.Unlock()
		return limits, nil
	}
	c := p.table.claim(e)
	p.mu.Unlock()
	if c == nil {
		return limits, nil
	}

	timer := time.NewTimer(limits.QueueTimeout)
	defer timer.Stop()
	var err error
	select {
	case <-c.granted:
		return limits, nil
	case <-wanted.Done():
		err = wanted.Err()
	case <-timer.C:
		err = errNoPlace
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.table.withdraw(c) { // granted in the same moment
		return limits, nil
	}
	return limits, err
}

// create makes a sandbox: again after a while when there were too many, once
// more after a failure, not at all after a refusal.
func (p *Pool) create(ctx, wanted context.Context, f *flight, e *entry, limits Limits) (*box, error) {
	over, err := p.admitted()
	if err != nil {
		return nil, err
	}
	defer over()
	wait := rateWait
	for {
		if err := p.awaitPace(ctx, wanted, e.identity); err != nil {
			return nil, err
		}
		if err := p.mayCreate(wanted, f); err != nil {
			return nil, err
		}
		timeout := lifetime(e, limits)
		born := time.Now()
		sb, err := p.make(ctx, e, timeout, limits)
		if err == nil {
			p.logger.Debug("sandbox created", zap.String("sandbox_id", sb.ID), zap.Duration("took", time.Since(born)))
			b := &box{id: sb.ID, sb: sb, born: born}
			b.extended(born, timeout)
			p.answered(nil)
			p.observeSandbox(Created, e, sb.ID, time.Since(born))
			p.watchTwins(e, limits)
			return b, nil
		}
		p.observeCall(err)
		p.answered(err)
		if ctx.Err() != nil {
			p.watchTwins(e, limits) // it may have been made all the same
			p.logger.Warn("creating a sandbox took too long", zap.Error(err))
			return nil, err
		}
		if e2b.KindOf(err) == e2b.Unavailable {
			p.watchTwins(e, limits)
		}
		next := p.failed(f, err, &wait)
		if deadline, _ := ctx.Deadline(); next == 0 || time.Until(deadline) <= next {
			return nil, err
		}
		if err := sleep(wanted, next); err != nil {
			return nil, err
		}
	}
}

// mayCreate counts an attempt to create a sandbox, or says why there is none.
func (p *Pool) mayCreate(wanted context.Context, f *flight) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := wanted.Err(); err != nil {
		return err
	}
	if p.exiting {
		return errClosed
	}
	if f.owner.creates >= maxCreates && f.owner.failure == nil {
		f.owner.failure = errors.New("session: this request's sandboxes failed, it gets no more")
	}
	if f.owner.failure != nil {
		return f.owner.failure
	}
	f.owner.creates++
	return nil
}

// failed judges a failure to create: how long to wait for the next attempt, 0
// for none.
func (p *Pool) failed(f *flight, err error, wait *time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	kind := e2b.KindOf(err)
	switch {
	case kind == e2b.RateLimited:
		f.owner.creates-- // nothing was made
		return rateBackoff(err, wait)
	case kind == e2b.Unavailable && f.owner.creates < maxCreates:
		return jitter(failureWait)
	case kind == e2b.Unavailable:
		p.logger.Warn("creating a sandbox failed", zap.Error(err))
	default:
		p.logger.Error("creating a sandbox was refused: check the key, the template and the provider's limits", zap.Error(err))
	}
	f.owner.failure = err
	return 0
}

// rateBackoff is how long to wait after a refusal for the provider's rate. wait
// grows for the next one.
func rateBackoff(err error, wait *time.Duration) time.Duration {
	next := jitter(*wait)
	*wait = min(2**wait, maxRateWait)
	if failure, ok := errors.AsType[*e2b.Error](err); ok {
		next = max(next, failure.RetryAfter)
	}
	return next
}

// jitter returns between a half and the whole of d, so that those who were
// refused together do not come back together.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1) //nolint:gosec // spreads load, guards nothing
}

// lifetime is how long the provider is to keep a sandbox that is about to be
// used.
func lifetime(e *entry, limits Limits) time.Duration {
	if e.key == "" {
		return limits.ExecTimeout + margin
	}
	return max(limits.Idle, limits.ExecTimeout) + margin
}

// extended notes that the provider was asked at a time to keep the sandbox for d
// from then on.
func (b *box) extended(at time.Time, d time.Duration) {
	b.until = at.Add(d)
	b.renewAt = b.until.Add(-margin)
}

// sandbox returns the sandbox of the handle's entry, got if there is none. The
// caller holds the turn.
func (p *Pool) sandbox(ctx context.Context, h *Handle) (*box, error) {
	for {
		p.mu.Lock()
		e, f := h.entry, h.ahead
		h.ahead = nil
		if e.box != nil {
			b := e.box
			p.mu.Unlock()
			return b, nil
		}
		if f == nil {
			f = e.flight
		}
		if f == nil {
			if h.failure != nil {
				p.mu.Unlock()
				return nil, h.failure
			}
			f = p.launch(h) //nolint:contextcheck // it outlives the request, which may leave before it ends
		}
		p.mu.Unlock()

		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		// What another request could not get may still be had by this one.
		if f.err != nil && f.owner == h {
			return nil, f.err
		}
	}
}
