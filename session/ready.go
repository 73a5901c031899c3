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
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

const (
	// settleTime is how long an abandoned program is given to be interrupted
	// before its context is used again. A program sent earlier can hang behind
	// it: https://github.com/e2b-dev/code-interpreter interrupts a kernel on
	// disconnect, but not reliably at once.
	settleTime = time.Second

	// probeTimeout is how long a context that may be blocked has to answer.
	probeTimeout = 3 * time.Second

	// probe is the smallest program.
	probe = "None"

	// renewSlack is how old a renewal may be and still stand for one right before
	// a run: it was done while the program was still being written.
	renewSlack = 10 * time.Second

	defaultLanguage = "python"
	defaultCwd      = "/home/user"
)

var errBlocked = errors.New("session: the sandbox is blocked by an abandoned program")

// ready sees to it that the sandbox is still this process's to use, that the
// context is free, and that it lives long enough for a program. In this order: a
// renewal would hide that another process
// has renewed before, see shared.
func (r *run) ready(ctx context.Context, b *box) error {
	if err := r.pool.keepLease(ctx, r.entry, b, r.limits); err != nil {
		return err
	}
	if err := r.settle(ctx, b); err != nil {
		return err
	}
	// That may have taken as long as another process's program.
	if err := r.pool.keepLease(ctx, r.entry, b, r.limits); err != nil {
		return err
	}
	if err := r.renew(ctx, b); err != nil {
		return err
	}
	return ctx.Err()
}

// renew extends the provider's timeout. A failure is no reason not to run, if
// only the sandbox is there.
func (r *run) renew(ctx context.Context, b *box) error {
	need := lifetime(r.entry, r.limits)
	r.pool.mu.Lock()
	fresh := b.fresh(need)
	r.pool.mu.Unlock()
	if fresh {
		return nil
	}
	err := r.pool.extend(ctx, b, need)
	if e2b.KindOf(err) == e2b.Gone {
		return err
	}
	return nil
}

// fresh says that the sandbox lives about as long as a program needs.
func (b *box) fresh(need time.Duration) bool {
	return time.Until(b.until) > need-renewSlack
}

// extend sets how long the provider keeps a sandbox. The caller holds the turn.
func (p *Pool) extend(ctx context.Context, b *box, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	at := time.Now()
	err := p.client.Extend(ctx, b.sb, d)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		b.extended(at, d)
		return nil
	}
	b.renewAt = time.Now().Add(margin / 5)
	p.observeCall(err)
	p.logger.Debug("extending a sandbox's timeout failed", zap.String("sandbox_id", b.id), zap.Error(err))
	return err
}

// settle finds out whether a context in which a program was abandoned is free,
// and frees it if it is not.
func (r *run) settle(ctx context.Context, b *box) error {
	r.pool.mu.Lock()
	suspect := b.suspect
	r.pool.mu.Unlock()
	if suspect.IsZero() {
		return nil
	}
	if wait := time.Until(suspect.Add(settleTime)); wait > 0 {
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
	err := r.unblock(ctx, b)
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	b.suspect = time.Time{}
	if err != nil {
		b.suspect = time.Now()
	}
	return err
}

// unblock probes the context and restarts it if it does not answer.
func (r *run) unblock(ctx context.Context, b *box) error {
	err := r.probe(ctx, b, probeTimeout)
	if e2b.KindOf(err) == e2b.TimedOut && r.pool.shared(ctx, b) {
		// It may be another process's program that runs: that one has as much
		// time as any.
		err = r.probe(ctx, b, r.limits.ExecTimeout)
	}
	if e2b.KindOf(err) == e2b.TimedOut {
		err = r.restart(ctx, b)
	}
	return err
}

// probe runs the smallest program. It finds out, too, whether the abandoned one
// has ended its interpreter when nobody listened any more: the count of
// executions then starts anew.
func (r *run) probe(ctx context.Context, b *box, timeout time.Duration) error {
	lost := false
	err := r.pool.client.Execute(ctx, b.sb, e2b.Execution{Code: probe, ContextID: b.context, Timeout: timeout},
		func(ev e2b.Event) {
			lost = lost || restarted(ev)
			if ev.Type == e2b.NumberOfExecutions {
				lost = lost || ev.ExecutionCount <= b.count
				b.count = ev.ExecutionCount
			}
		})
	if lost {
		r.pool.lose(r.entry, b)
	}
	return err
}

// restart ends whatever blocks the context, and the variables with it.
func (r *run) restart(ctx context.Context, b *box) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	id := b.context
	if id == "" {
		var err error
		if id, err = r.defaultContext(ctx, b); err != nil {
			return fmt.Errorf("%w: %v", errBlocked, err) //nolint:errorlint // only errBlocked decides what happens
		}
	}
	if err := r.pool.client.RestartContext(ctx, b.sb, id); err != nil {
		return fmt.Errorf("%w: %v", errBlocked, err) //nolint:errorlint // as above
	}
	r.pool.logger.Info("context restarted: an abandoned program blocked it", zap.String("sandbox_id", b.id))
	r.pool.lose(r.entry, b)
	return nil
}

// defaultContext returns the id of the context of executions that name none.
func (r *run) defaultContext(ctx context.Context, b *box) (string, error) {
	contexts, err := r.pool.client.Contexts(ctx, b.sb)
	if err != nil {
		return "", err
	}
	for _, c := range contexts {
		if c.Language == defaultLanguage && c.Cwd == defaultCwd {
			return c.ID, nil
		}
	}
	return "", errors.New("session: the sandbox lists no default context")
}
