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
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// expire ends a session that was idle for too long, or has it paused. It needs
// the mutex.
func (p *Pool) expire(e *entry) {
	b := e.box
	p.table.remove(e)
	if !p.pauses(e) {
		p.retire(e, nil)
		return
	}
	b.pause = true
	p.table.spared(e, b) // already for a request that comes meanwhile
	p.end(b, e, func() { p.table.free(nil) })
}

// pauses says whether a session's sandbox is paused rather than deleted. It needs
// the mutex.
func (p *Pool) pauses(e *entry) bool {
	return p.remote && e.key != "" && p.table.limits.Pause && !p.noPause
}

// make asks for a new sandbox. That of a session is one that the provider pauses
// when this process is not there to do it.
func (p *Pool) make(ctx context.Context, e *entry, timeout time.Duration, limits Limits) (*e2b.Sandbox, error) {
	p.mu.Lock()
	pauses := limits.Pause && p.pauses(e)
	p.mu.Unlock()
	if !pauses {
		return p.client.Create(ctx, timeout, p.metadata(e))
	}
	sb, err := p.client.CreatePausing(ctx, timeout, p.metadata(e))
	if e2b.KindOf(err) != e2b.Refused {
		return sb, err
	}
	sb, without := p.client.Create(ctx, timeout, p.metadata(e))
	if without == nil {
		p.cannotPause(err) // for what else was it refused
	}
	return sb, without
}

// suspend has a sandbox paused, however often that takes in deleteTimeout. It
// returns false when it is to be deleted instead.
func (p *Pool) suspend(ctx context.Context, b *box) bool {
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	for wait := deleteWait; ; wait *= 2 {
		err := p.pauseOnce(ctx, b.id)
		switch {
		case err == nil:
			p.logger.Debug("sandbox paused", zap.String("sandbox_id", b.id))
			return true
		case p.lacksPause(ctx, b, err):
			p.cannotPause(err)
			return false
		case e2b.KindOf(err) == e2b.Gone:
			return false
		case sleep(ctx, jitter(wait)) != nil:
			p.logger.Warn("pausing a sandbox failed, it is deleted", zap.String("sandbox_id", b.id), zap.Error(err))
			return false
		}
	}
}

func (p *Pool) pauseOnce(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout/2)
	defer cancel()
	return p.client.Pause(ctx, id)
}

// lacksPause says whether a failure to pause tells that the provider cannot. A 404
// does if the sandbox is there.
func (p *Pool) lacksPause(ctx context.Context, b *box, err error) bool {
	var failure *e2b.Error
	if !errors.As(err, &failure) {
		return false
	}
	switch {
	case failure.Status == http.StatusNotImplemented, failure.Kind == e2b.Refused:
		return true
	case failure.Status != http.StatusNotFound:
		return false
	}
	infos, err := p.list(ctx, b.owner.session)
	if err != nil {
		return false
	}
	for _, info := range infos {
		if info.ID == b.id {
			return true
		}
	}
	return false
}

// cannotPause notes that the provider has no such thing, and says so once.
func (p *Pool) cannotPause(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.noPause {
		return
	}
	p.noPause = true
	p.logger.Error("the provider cannot pause sandboxes, idle sessions are deleted instead: remove the option on_idle pause", zap.Error(err))
}
