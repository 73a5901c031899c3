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
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

const (
	// margin is how much longer than its use a sandbox is to live, for clocks
	// and networks: the most by which one can outlive its pool.
	margin = 30 * time.Second

	// callTimeout bounds single calls that a program has to wait for.
	callTimeout = 10 * time.Second

	// hintTimeout bounds those that it can do without.
	hintTimeout = 5 * time.Second

	// busyRetry is what a caller without a free session is asked to wait.
	busyRetry = 5 * time.Second
)

var (
	errClosed  = errors.New("session: the pool is closed")
	errNoPlace = errors.New("session: no room for another sandbox")
	errNoTurn  = errors.New("session: the sandbox was busy for too long")
)

// Pool holds the sandboxes of one backend. It is safe for concurrent use.
type Pool struct {
	client      *e2b.Client
	secret      []byte
	fingerprint string
	remote      bool
	logger      *zap.Logger
	shelf       *shelf
	observer    func(Event)

	base context.Context //nolint:containedctx // the pool's own work outlives every request
	stop context.CancelFunc

	// mu guards all below and is never held over network I/O.
	mu       sync.Mutex
	table    *table
	circuit  circuit
	ending   map[string]struct{}      // ids of sandboxes that are being deleted
	checks   map[string]*check        // sessions to look at for twins
	leaving  map[string]chan struct{} // sessions whose sandbox is being ended or paused; closed when it is
	noPause  bool                     // the provider cannot pause, and that was said
	scanAt   time.Time                // when to look at all there is at the provider
	scans    int                      // looks so far
	stored   int                      // paused sandboxes at the last look
	reaping  bool                     // the reaper runs
	dormant  bool                     // and waits for something to do
	pace     pace
	draining bool          // no session is kept any longer
	exiting  bool          // no sandbox is made any longer
	active   int           // goroutines of the pool
	changed  chan struct{} // closed and replaced when there may be less to drain

	wake chan struct{} // makes the reaper look
}

// NewPool returns an empty pool. It makes no connection, but for a remote one
// that looks after a while for what earlier processes have left. Drain ends it.
func NewPool(c Config) *Pool {
	p := &Pool{
		client:      c.Client,
		secret:      c.Secret,
		fingerprint: c.Fingerprint,
		remote:      c.Remote,
		logger:      c.Logger,
		observer:    c.Observer,
		ending:      make(map[string]struct{}),
		checks:      make(map[string]*check),
		leaving:     make(map[string]chan struct{}),
		pace:        pace{queues: make(map[string][]chan struct{})},
		changed:     make(chan struct{}),
		wake:        make(chan struct{}, 1),
	}
	if len(p.secret) == 0 {
		p.secret = []byte(rand.Text())
	}
	if p.logger == nil {
		p.logger = zap.NewNop()
	}
	p.shelf = newShelf(rand.Text(), p.fingerprint, p.logger)
	p.base, p.stop = context.WithCancel(context.Background())
	p.table = newTable(c.Limits, p.retire)
	if p.remote {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.scanAt = time.Now().Add(jitter(2 * firstScan))
		p.startReaper()
	}
	return p
}

// SetLimits replaces the limits, also for the sandboxes there are. Sessions
// above a lowered cap end when room is needed, or when they are idle for too
// long.
func (p *Pool) SetLimits(limits Limits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table.limits = limits
	p.table.grant()
	p.wakeReaper()
}

// Admit says whether a request may use a session, before anything is done for
// it: a *BusyError when that would be a new one and all that the caller may have
// are in use. A request without a session id is always admitted.
func (p *Pool) Admit(c Caller, sessionID string) error {
	if sessionID == "" {
		return nil
	}
	key, caller := Key(p.secret, c, sessionID), identityKey(p.secret, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.table.sessions[key] == nil && p.table.full(caller) {
		return &BusyError{RetryAfter: min(busyRetry, p.table.limits.ExecTimeout)}
	}
	return nil
}

// Open returns the handle of a request. It makes no connection and takes no
// place. An empty session id stands for a sandbox of the request's own.
func (p *Pool) Open(c Caller, sessionID string) *Handle {
	h := &Handle{pool: p, caller: identityKey(p.secret, c)}
	if sessionID != "" {
		h.key = Key(p.secret, c, sessionID)
	}
	return h
}

// Drain ends the pool. Sandboxes that are idle end at once, those in use when
// their handle closes; handles that are open go on working meanwhile.
//
// When the process is exiting, sandboxes of requests without a session are
// deleted even though they are in use, and no more are made. Those of sessions
// are left to their timeout if the backend is remote, unless
// Limits.DeleteOnExit says otherwise.
//
// Drain returns when all of that is done and the pool's goroutines have ended.
// When ctx ends first, it returns the context's error: what is not exiting goes
// on in the background, what is exiting is given up.
func (p *Pool) Drain(ctx context.Context, exiting bool) error {
	p.mu.Lock()
	p.draining = true
	p.shelf.leave()
	p.exiting = p.exiting || exiting
	for e := range p.table.entries {
		p.drainEntry(e)
	}
	p.announce()
	p.mu.Unlock()

	if err := p.await(ctx); err != nil {
		if exiting {
			p.stop()
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			return errors.Join(err, p.await(grace))
		}
		return err
	}
	p.stop()
	return nil
}

// drainEntry ends or leaves one entry, as the pool's state demands.
func (p *Pool) drainEntry(e *entry) {
	switch {
	case !p.exiting:
		if e.idle() {
			e.because(ReasonDrained)
			p.table.remove(e)
			p.retire(e, nil)
		}
	case e.flight != nil:
		e.flight.drop()
	case e.box == nil || e.box.ended:
	case e.key == "":
		e.because(ReasonExit)
		p.end(e.box, nil, nil)
	case !p.remote:
		e.because(ReasonExit)
		p.end(e.box, nil, nil)
	case p.table.limits.DeleteOnExit:
		e.because(ReasonExit)
		p.end(e.box, e, nil)
	case e.pins == 0:
		b := e.box
		p.spawn(func(ctx context.Context) { p.endLease(ctx, e, b) })
	}
}

// await waits until the goroutines of the pool have ended, and until no handle
// uses a sandbox unless the process is exiting.
func (p *Pool) await(ctx context.Context) error {
	for {
		p.mu.Lock()
		done := p.active == 0 && (p.exiting || len(p.table.entries) == 0)
		changed := p.changed
		p.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// announce lets Drain and the reaper look whether all is done. It needs the
// mutex.
func (p *Pool) announce() {
	if p.draining {
		close(p.changed)
		p.changed = make(chan struct{})
		p.wakeReaper()
	}
}

// spawn runs f on a goroutine that Drain waits for, with the pool's own context.
// It needs the mutex.
func (p *Pool) spawn(f func(ctx context.Context)) {
	p.active++
	go func() {
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.active--
			p.announce()
		}()
		f(p.base)
	}()
}

// takeTurn waits for the turn to use a sandbox. The error is errNoTurn or that
// of the context.
func (p *Pool) takeTurn(ctx context.Context, e *entry) error {
	p.mu.Lock()
	if e.turn.try() {
		p.mu.Unlock()
		return nil
	}
	mine := e.turn.join()
	timeout := p.table.limits.QueueTimeout
	p.mu.Unlock()

	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var err error
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = errNoTurn
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !e.turn.leave(mine) {
		e.turn.pass()
	}
	return err
}

// passTurn ends the turn.
func (p *Pool) passTurn(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.turn.pass()
}

// sleep waits, and returns the context's error when that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
