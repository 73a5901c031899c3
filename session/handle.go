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

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// maxCreates is how often a request may ask for a sandbox to be made, refusals
// for rate apart, before it is told that there is none.
const maxCreates = 2

// Handle is one request's use of a sandbox. Its methods are called one after
// the other, Close always.
type Handle struct {
	pool   *Pool
	key    string // the session's key; empty without a session
	caller string // the caller's key

	// Guarded by the pool's mutex.
	entry    *entry
	closed   bool
	ahead    *flight // begun by Prepare, its result not yet looked at
	creates  int     // attempts to create a sandbox
	replaced bool    // a sandbox was replaced for this request
	failure  error   // why this request gets no sandbox any more
}

// Prepare begins to get the sandbox ready in the background and returns at once:
// it has one made or found, or the life of the one there is extended. From then
// on the session is in use until Close. Further calls do nothing.
func (h *Handle) Prepare() {
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.closed || h.entry != nil {
		return
	}
	e := h.join()
	switch {
	case e.flight != nil:
	case e.box == nil:
		h.ahead = p.launch(h)
	case e.box.suspect.IsZero() && !p.prepared(e):
		p.keepAlive(e)
	}
}

// prepared says that a program may be sent to an entry's sandbox as it is. It
// needs the mutex.
func (p *Pool) prepared(e *entry) bool {
	limits := p.table.limits
	return e.box.fresh(lifetime(e, limits)) && (!p.shares(e) || e.box.lease.fresh(limits))
}

// join binds the handle to its entry. It needs the pool's mutex.
func (h *Handle) join() *entry {
	if h.entry == nil {
		h.entry = h.pool.table.join(h.key, h.caller)
	}
	return h.entry
}

// Run waits for the sandbox and its turn in it, and runs code there once. The
// events are given to emit in order, on the calling goroutine. A program that
// may have begun is never sent again; one that has not is sent to another
// sandbox if there is something wrong with this one.
func (h *Handle) Run(ctx context.Context, code string, emit func(e2b.Event)) Outcome {
	start := time.Now()
	p := h.pool
	p.mu.Lock()
	if h.closed {
		p.mu.Unlock()
		return Outcome{Status: Unavailable, Err: errors.New("session: Run after Close")}
	}
	e := h.join()
	limits := p.table.limits
	p.mu.Unlock()

	if err := p.takeTurn(ctx, e); err != nil {
		status := Canceled
		if errors.Is(err, errNoTurn) {
			status = Busy
		}
		return Outcome{Status: status, Waited: time.Since(start), Err: err}
	}
	defer p.passTurn(e)

	r := &run{pool: p, handle: h, entry: e, limits: limits, code: code, emit: emit}
	r.do(ctx)
	r.tell(start)
	return r.out
}

// Close ends the request's use of its sandbox. One of its own is deleted, in the
// background; that of a session becomes idle. Further calls do nothing.
func (h *Handle) Close() {
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	if e := h.entry; e != nil {
		e.pins--
		p.rest(e)
	}
}
