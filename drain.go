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

package codeinterpreter

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
)

// exitTimeout is how long the end of the process waits for sandboxes to end.
const exitTimeout = 10 * time.Second

// drains are the backends that no configuration has any more and that end in
// the background.
var drains = newDrainage()

func init() {
	caddy.OnExit(func(ctx context.Context) { drains.exit(ctx) })
}

// drainage ends backends, each on a goroutine of its own.
type drainage struct {
	leaving context.Context //nolint:containedctx // ends when the process does, which no caller can know
	leave   context.CancelFunc
	work    sync.WaitGroup
}

func newDrainage() *drainage {
	d := new(drainage)
	d.leaving, d.leave = context.WithCancel(context.Background())
	return d
}

// Destruct ends the backend when its last lease is released. It does not wait:
// on a reload Caddy holds the lock of its configuration meanwhile, requests of
// the old configuration still run, and on exit all backends end at once.
func (b *backend) Destruct() error {
	if caddy.Exiting() {
		drains.leave()
	}
	drains.work.Go(func() { b.drain(drains.leaving) })
	return nil
}

// exit waits for all backends, those that a reload has left behind included,
// no longer than exitTimeout.
func (d *drainage) exit(ctx context.Context) {
	d.leave()
	ctx, cancel := context.WithTimeout(ctx, exitTimeout)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.work.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		caddy.Log().Named(moduleID).Warn("not all sandboxes have ended in time; they are left to their timeout", zap.Duration("waited", exitTimeout))
	}
}

// drain ends the sandboxes: idle ones at once, others when their request has
// ended, until the process exits, and then all that do not outlive it.
func (b *backend) drain(leaving context.Context) {
	defer fleet.remove(b)
	err := b.rest(leaving)
	if leaving.Err() != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(leaving), exitTimeout)
		defer cancel()
		err = b.pool.Drain(ctx, true)
	}
	b.events.work.Wait()
	b.client.Close()
	if b.server != nil {
		err = errors.Join(err, b.server.Close())
	}
	if err != nil {
		b.relay.logger().Warn("ending sandboxes", zap.Error(err))
	}
}

// rest drains the pool once no request can ask it for a sandbox any more. It
// touches nothing when the process exits: that keeps sessions.
func (b *backend) rest(leaving context.Context) error {
	if err := leaving.Err(); err != nil {
		return err
	}
	select {
	case <-b.unused():
		return b.pool.Drain(leaving, false)
	case <-leaving.Done():
		return leaving.Err()
	}
}

// enter counts a request that may use the backend, also when its configuration
// is gone by then.
func (b *backend) enter() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests++
}

func (b *backend) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests--
	if b.requests == 0 && b.quiet != nil {
		close(b.quiet)
		b.quiet = nil
	}
}

// unused returns a channel that is closed when no request is under way.
func (b *backend) unused() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	quiet := make(chan struct{})
	if b.requests == 0 {
		close(quiet)
	} else {
		b.quiet = quiet
	}
	return quiet
}
