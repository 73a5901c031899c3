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
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// Events of Caddy's events app, beside those that session.Event tells of.
const (
	eventCreated   = "sandbox_created"
	eventDeleted   = "sandbox_deleted"
	eventPaused    = "sandbox_paused"
	eventLost      = "sandbox_lost"
	eventEvicted   = "session_evicted"
	eventFailing   = "provider_failing"
	eventRecovered = "provider_recovered"
)

// maxPendingEvents is how many events wait for slow handlers before further
// ones are dropped.
const maxPendingEvents = 1000

// announcer emits the events of a configuration. Nobody hears of any before
// Caddy has started the configuration: until then subscriptions still come in.
type announcer struct {
	app     *caddyevents.App
	ctx     caddy.Context
	running atomic.Bool
}

// newAnnouncer returns nil when there is no events app.
func newAnnouncer(ctx caddy.Context) (*announcer, error) {
	app, err := ctx.AppIfConfigured("events")
	if errors.Is(err, caddy.ErrNotConfigured) {
		return nil, nil //nolint:nilnil // no app, no events
	}
	if err != nil {
		return nil, err
	}
	a := &announcer{app: app.(*caddyevents.App), ctx: ctx}
	return a, a.app.On("started", a)
}

// Handle hears that the configuration runs.
func (a *announcer) Handle(context.Context, caddy.Event) error {
	a.running.Store(true)
	return nil
}

// wants says whether an event is of interest to anybody.
func (a *announcer) wants(name string) bool {
	return a != nil && a.running.Load() && a.ctx.Err() == nil && a.app.ShouldEmit(name)
}

// queue runs functions one after the other on a goroutine that exists while
// there are any. It is safe for concurrent use.
type queue struct {
	mu      sync.Mutex
	pending []func()
	running bool
	work    sync.WaitGroup
}

// add returns false when too many wait already.
func (q *queue) add(f func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending) >= maxPendingEvents {
		return false
	}
	q.pending = append(q.pending, f)
	if !q.running {
		q.running = true
		q.work.Go(q.run)
	}
	return true
}

func (q *queue) run() {
	for {
		q.mu.Lock()
		if len(q.pending) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		next := q.pending[0]
		q.pending = q.pending[1:]
		q.mu.Unlock()
		next()
	}
}

// observe hears from the pool, which may be locked: it waits for nothing.
func (b *backend) observe(ev session.Event) {
	sandboxMetrics.count(b.engine, ev)
	if ev.Type == session.Deleted && ev.Reason == session.ReasonEvicted {
		b.announce(eventEvicted, ev)
	}
	if name := eventNames[ev.Type]; name != "" {
		b.announce(name, ev)
	}
}

var eventNames = map[session.EventType]string{
	session.Created:           eventCreated,
	session.Deleted:           eventDeleted,
	session.Paused:            eventPaused,
	session.Lost:              eventLost,
	session.ProviderFailing:   eventFailing,
	session.ProviderRecovered: eventRecovered,
}

// announce has an event emitted by the configuration that was loaded last.
func (b *backend) announce(name string, ev session.Event) {
	a := b.announcer.Load()
	if !a.wants(name) {
		return
	}
	data := map[string]any{"backend": b.id, "engine": b.engine}
	for key, value := range map[string]string{
		"sandbox": ev.SandboxID, "session": session.Short(ev.Key), "identity": session.Short(ev.Identity), "reason": string(ev.Reason),
	} {
		if value != "" {
			data[key] = value
		}
	}
	if ev.Err != nil {
		data["error"] = ev.Err.Error()
	}
	if !b.events.add(func() { a.app.Emit(a.ctx, name, data) }) {
		b.relay.logger().Warn("an event is dropped: the handlers of events are too slow", zap.String("event", name))
	}
}
