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
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// What is stored with each sandbox, so that other processes find it again.
const (
	metaProduct  = "product"  // always Product
	metaPool     = "pool"     // the pool's fingerprint
	metaKind     = "kind"     // kindSession or kindEphemeral
	metaSession  = "session"  // the session's key; not without one
	metaIdentity = "identity" // the caller's key

	kindSession   = "session"
	kindEphemeral = "ephemeral"
)

// Product is how sandboxes of this product are marked.
const Product = "caddy-code-interpreter"

// metadata is stored with the sandbox of an entry. Nothing in it is readable.
func (p *Pool) metadata(e *entry) map[string]string {
	m := map[string]string{
		metaProduct:  Product,
		metaPool:     p.fingerprint,
		metaKind:     kindEphemeral,
		metaIdentity: e.identity,
	}
	if e.key != "" {
		m[metaKind] = kindSession
		m[metaSession] = e.key
	}
	return m
}

// list returns the sandboxes of a session, the oldest first: the one that every
// process chooses.
func (p *Pool) list(ctx context.Context, key string) ([]e2b.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	want := map[string]string{metaProduct: Product, metaPool: p.fingerprint, metaKind: kindSession, metaSession: key}
	infos, err := p.client.List(ctx, want)
	if err != nil {
		p.observeCall(err)
		return nil, err
	}
	infos = slices.DeleteFunc(infos, func(i e2b.Info) bool {
		for k, v := range want {
			if i.Metadata[k] != v {
				return true
			}
		}
		return false
	})
	slices.SortFunc(infos, func(a, b e2b.Info) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.ID, b.ID))
	})
	return infos, nil
}

// find looks for the sandbox of a session that an earlier process left, or that
// another one uses, and connects to it. It returns nil when there is none to be
// had: the list is a hint. An error is that there is one, which the provider's
// rate or concurrency keeps from being had. One sandbox was tried before.
func (p *Pool) find(ctx context.Context, e *entry, limits Limits, tried string) (*box, error) {
	infos, err := p.list(ctx, e.key)
	if err != nil && ctx.Err() == nil {
		infos, err = p.list(ctx, e.key) // a session is worth a second try
	}
	if err != nil {
		p.logger.Warn("listing sandboxes failed, a session may start anew", zap.Error(err))
		return nil, nil //nolint:nilnil // as if there were none
	}
	for _, info := range infos {
		if info.ID == tried || p.isEnding(info.ID) {
			continue
		}
		b, err := p.connect(ctx, e, info.ID, limits)
		if err == nil && len(infos) > 1 {
			p.watchTwins(e, limits)
		}
		if err == nil || e2b.KindOf(err) == e2b.RateLimited {
			return b, err
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// reach connects to a sandbox: again after a while when there were too many, as
// long as ctx lasts, and once more after a failure. It returns when the call
// began that succeeded.
func (p *Pool) reach(ctx context.Context, id string, timeout time.Duration) (*e2b.Sandbox, time.Time, error) {
	wait, failed := rateWait, false
	for {
		at := time.Now()
		sb, err := p.connectOnce(ctx, id, timeout)
		switch kind := e2b.KindOf(err); {
		case kind == e2b.Unavailable && !failed:
			failed = true
			continue
		case kind == e2b.RateLimited:
			next := rateBackoff(err, &wait)
			if deadline, _ := ctx.Deadline(); time.Until(deadline) > next && sleep(ctx, next) == nil {
				continue
			}
		}
		return sb, at, err
	}
}

func (p *Pool) connectOnce(ctx context.Context, id string, timeout time.Duration) (*e2b.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return p.client.Connect(ctx, id, timeout)
}

// connect makes another process's sandbox this one's.
func (p *Pool) connect(ctx context.Context, e *entry, id string, limits Limits) (*box, error) {
	timeout := lifetime(e, limits)
	sb, at, err := p.reach(ctx, id, timeout)
	if err != nil {
		p.observeCall(err)
		p.logger.Warn("connecting to a session's sandbox failed, it is left to its timeout", zap.String("sandbox_id", id), zap.Error(err))
		return nil, err
	}
	p.logger.Debug("sandbox found again", zap.String("sandbox_id", id))
	// Whoever had it may have died in the middle of a program.
	b := &box{id: id, sb: sb, born: at, found: true, dirty: true, suspect: at.Add(-settleTime)}
	b.extended(at, timeout)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observeSandbox(Found, e, id, time.Since(at))
	if e.left == id {
		e.lost, e.left = nothing, "" // nothing was lost after all
	}
	return b, nil
}

func (p *Pool) isEnding(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ending := p.ending[id]
	return ending
}
