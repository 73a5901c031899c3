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

// readyWaits are the waits before a program is sent again to a sandbox in which
// nothing listens yet.
var readyWaits = [...]time.Duration{300 * time.Millisecond, 700 * time.Millisecond, 1500 * time.Millisecond}

// maxMoves is how often a program looks for the sandbox that its session has in
// another process.
const maxMoves = 3

// run is one program on its way. Its owner holds the turn.
type run struct {
	pool   *Pool
	handle *Handle
	entry  *entry
	limits Limits
	code   string
	emit   func(e2b.Event)

	// What was tried with the sandbox in hand; anew with each.
	tries       int
	reconnected bool
	newContext  bool

	sent      time.Time // when the program was sent the last time
	moves     int       // how often another process has taken the sandbox away
	restarted bool      // the program's interpreter was restarted under it
	out       Outcome
}

// do runs the program and sets the outcome.
func (r *run) do(ctx context.Context) {
	for {
		if err := ctx.Err(); err != nil {
			r.end(ctx, err, Canceled)
			return
		}
		b, err := r.pool.sandbox(ctx, r.handle)
		if err != nil {
			r.end(ctx, err, unavailable(err))
			return
		}
		if err = r.ready(ctx, b); err == nil {
			var over bool
			if err, over = r.execute(ctx, b); over {
				return
			}
		}
		if !r.mend(ctx, b, err) {
			return
		}
	}
}

// unavailable is the status of a program for which there was no sandbox.
func unavailable(err error) Status {
	if errors.Is(err, errNoPlace) || errors.Is(err, errPace) {
		return Busy
	}
	return Unavailable
}

// end sets the outcome of a program that is not Done.
func (r *run) end(ctx context.Context, err error, status Status) {
	if ctx.Err() != nil {
		status = Canceled
	}
	r.out.Status, r.out.Err = status, err
}

// tell completes the outcome, with the loss of variables if the program's result
// will be read.
func (r *run) tell(start time.Time) {
	r.out.Waited = time.Since(start)
	if !r.sent.IsZero() {
		r.out.Waited, r.out.Ran = r.sent.Sub(start), time.Since(r.sent)
	}
	switch r.out.Status {
	case Unavailable, Busy, Canceled:
		return
	case Done, TimedOut, Interrupted, TooMuchOutput, Restarted:
	}
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	r.out.StateLost, r.out.FilesLost = r.entry.lost != nothing, r.entry.lost == everything
	r.entry.lost, r.entry.left = nothing, ""
}

// execute sends the program. It returns false when the program has not begun
// and may be sent again.
func (r *run) execute(ctx context.Context, b *box) (err error, over bool) {
	p := r.pool
	p.mu.Lock()
	had := b.dirty
	b.dirty = true
	b.suspect = time.Now()
	r.entry.runs++
	p.mu.Unlock()
	// Until its end has arrived a program counts as abandoned, whatever ends
	// this function.
	finished := false
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case finished:
			b.suspect = time.Time{}
		case !over:
			b.suspect = time.Time{}
			b.dirty = had
		default:
			b.suspect = time.Now()
		}
	}()

	over = true // also for a panic in emit
	r.sent = time.Now()
	r.out.SandboxID = b.id
	err = p.client.Execute(ctx, b.sb, e2b.Execution{
		Code: r.code, ContextID: b.context, Timeout: r.limits.ExecTimeout,
	}, r.observer(b))
	finished = err == nil
	if ctx.Err() == nil { // else the request was given up, also by its deadline
		p.observeCall(err)
	}
	over = r.judge(ctx, b, err)
	return err, over
}

// observer hands events on, counts executions and looks for the end of the
// interpreter.
func (r *run) observer(b *box) func(e2b.Event) {
	return func(ev e2b.Event) {
		if ev.Type == e2b.NumberOfExecutions {
			b.count = ev.ExecutionCount
		}
		if restarted(ev) {
			r.restarted = true
		}
		r.emit(ev)
	}
}

// restarted says that the event tells of the end of the interpreter.
func restarted(ev e2b.Event) bool {
	return ev.Type == e2b.ErrorEvent && (ev.Name == e2b.ContextRestarting || ev.Name == e2b.UnexpectedEndOfExecution)
}

// judge sets the outcome after an execution, unless it returns false: then the
// program has not begun.
func (r *run) judge(ctx context.Context, b *box, err error) bool {
	if err == nil {
		r.out.Status = Done
		if r.restarted {
			r.out.Status = Restarted
			r.pool.lose(r.entry, b)
		}
		return true
	}
	if ctx.Err() != nil {
		r.end(ctx, err, Canceled)
		return true
	}
	switch e2b.KindOf(err) {
	case e2b.ContextGone, e2b.Gone, e2b.NotReady, e2b.Unauthorized:
		r.sent = time.Time{}
		r.out.SandboxID = ""
		return false
	case e2b.TimedOut:
		r.end(ctx, err, TimedOut)
	case e2b.TooLarge:
		r.end(ctx, err, TooMuchOutput)
	default:
		// A server that answered with an error is of no use to anybody. When only
		// the connection broke, another process may still use the sandbox.
		r.end(ctx, err, Interrupted)
		r.pool.observeLoss(r.entry, err)
		r.pool.discard(r.entry, !serverError(err))
	}
	return true
}

// serverError says that a server has answered, with an error.
func serverError(err error) bool {
	var e *e2b.Error
	return errors.As(err, &e) && e.Status >= 400
}

// lose notes that the variables in a sandbox are gone.
func (p *Pool) lose(e *entry, b *box) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.dirty {
		e.lost, e.left = max(e.lost, variables), ""
	}
	b.dirty, b.count = false, 0
}

// mend does what can be done about a sandbox in which the program has not begun,
// and returns whether to send it (again). Otherwise the outcome is set.
func (r *run) mend(ctx context.Context, b *box, err error) bool {
	if ctx.Err() != nil {
		r.end(ctx, err, Canceled)
		return false
	}
	switch kind := e2b.KindOf(err); {
	case errors.Is(err, errMoved):
		if r.moves++; r.moves <= maxMoves {
			r.pool.forget(r.entry)
			return true
		}
	case errors.Is(err, errBlocked):
	case kind == e2b.ContextGone && !r.newContext:
		r.newContext = true
		if r.makeContext(ctx, b) {
			return true
		}
	case kind == e2b.NotReady && r.tries < len(readyWaits):
		r.tries++
		if sleep(ctx, readyWaits[r.tries-1]) == nil {
			return true
		}
	case (kind == e2b.Unauthorized || kind == e2b.Gone && r.limits.Pause) && !r.reconnected:
		r.reconnected = true
		if r.reconnect(ctx, b) {
			return true
		}
	}
	if ctx.Err() != nil {
		r.end(ctx, err, Canceled)
		return false
	}
	return r.replace(ctx, err)
}

// makeContext gives the sandbox a new context in place of a lost one.
func (r *run) makeContext(ctx context.Context, b *box) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	made, err := r.pool.client.CreateContext(ctx, b.sb, e2b.Context{Language: defaultLanguage, Cwd: defaultCwd})
	if err != nil {
		r.pool.logger.Warn("making a new context failed", zap.String("sandbox_id", b.id), zap.Error(err))
		return false
	}
	r.pool.lose(r.entry, b)
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	b.context = made.ID
	return true
}

// reconnect gets fresh tokens for the sandbox, and resumes one that another
// process has let the provider pause.
func (r *run) reconnect(ctx context.Context, b *box) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	sb, err := r.pool.client.Connect(ctx, b.id, lifetime(r.entry, r.limits))
	if err != nil {
		r.pool.logger.Warn("connecting to a sandbox again failed", zap.String("sandbox_id", b.id), zap.Error(err))
		return false
	}
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	b.sb = sb
	return true
}

// replace gives the sandbox up. It returns true when the request may have
// another, which happens once.
func (r *run) replace(ctx context.Context, cause error) bool {
	p := r.pool
	p.mu.Lock()
	if r.handle.replaced || r.handle.creates >= maxCreates || p.exiting {
		if r.handle.failure == nil {
			r.handle.failure = cause
		}
		p.mu.Unlock()
		p.observeLoss(r.entry, cause)
		p.discard(r.entry, false)
		r.end(ctx, cause, Unavailable)
		return false
	}
	r.handle.replaced = true
	r.tries, r.reconnected, r.newContext = 0, false, false
	p.observe(r.entry.lossOf(cause))
	r.entry.because(ReasonReplaced)
	b := r.entry.letGo()
	b.failed = true
	p.logger.Warn("sandbox replaced", zap.String("sandbox_id", b.id), zap.Error(cause))
	gone := make(chan struct{})
	p.end(b, nil, func() { close(gone) })
	p.mu.Unlock()

	if e2b.KindOf(cause) == e2b.Gone {
		return true
	}
	// The place is kept for the next one, so the old one must be gone before.
	select {
	case <-gone:
		return true
	case <-ctx.Done():
		r.end(ctx, cause, Canceled)
		return false
	}
}
