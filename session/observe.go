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

// EventType is what an Event tells of.
type EventType int

// What there is to tell of a pool.
const (
	// Created: a sandbox was made, in Event.Took.
	Created EventType = iota + 1
	// Found: a session's sandbox that another process made was connected to.
	Found
	// Lost: a sandbox was gone, or failed and is given up.
	Lost
	// Deleted: a sandbox ends, for Event.Reason.
	Deleted
	// Paused: the sandbox of a session that was idle for too long is paused.
	Paused
	// CallFailed: a call of the provider failed with Event.Err.
	CallFailed
	// ProviderFailing: it failed so often that it is given pauses.
	ProviderFailing
	// ProviderRecovered: it makes sandboxes again, Event.Took after it failed.
	ProviderRecovered
)

// Reason is why a sandbox ends.
type Reason string

// The reasons for the end of a sandbox.
const (
	ReasonIdle     Reason = "idle"     // its session was not used for Limits.Idle
	ReasonEvicted  Reason = "evicted"  // its caller needed room for another session
	ReasonRequest  Reason = "request"  // the request that it was made for has ended
	ReasonReplaced Reason = "replaced" // it failed
	ReasonDrained  Reason = "drained"  // no configuration uses it, or an operator drained the pool
	ReasonOperator Reason = "operator" // an operator ended it
	ReasonExit     Reason = "exit"     // the process exits
	ReasonTwin     Reason = "twin"     // its session has an older one
	ReasonKept     Reason = "kept"     // it was paused for longer than Limits.Keep
)

// Reasons are all of them.
var Reasons = []Reason{
	ReasonIdle, ReasonEvicted, ReasonRequest, ReasonReplaced, ReasonDrained, ReasonOperator, ReasonExit, ReasonTwin, ReasonKept,
}

// Event is something that happened in a pool.
type Event struct {
	Type      EventType
	SandboxID string // of Created, Found, Lost and Deleted
	Key       string // the session's, if it has one
	Identity  string // the caller's
	Reason    Reason // of Deleted
	Took      time.Duration
	Err       error // of CallFailed, Lost and ProviderFailing
}

// because notes why the entry's sandbox ends, unless it is ending already. It
// needs the mutex.
func (e *entry) because(reason Reason) {
	if e.box != nil && !e.box.ended {
		e.box.ends = Event{Type: Deleted, SandboxID: e.box.id, Key: e.key, Identity: e.identity, Reason: reason}
	}
}

// observe tells the pool's observer.
func (p *Pool) observe(ev Event) {
	if p.observer != nil {
		p.observer(ev)
	}
}

// observeSandbox tells of a sandbox that an entry gets.
func (p *Pool) observeSandbox(t EventType, e *entry, id string, took time.Duration) {
	p.observe(Event{Type: t, SandboxID: id, Key: e.key, Identity: e.identity, Took: took})
}

// observeLoss tells that an entry's sandbox was gone or has failed.
func (p *Pool) observeLoss(e *entry, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observe(e.lossOf(cause))
}

// lossOf needs the mutex.
func (e *entry) lossOf(cause error) Event {
	return Event{Type: Lost, SandboxID: e.box.id, Key: e.key, Identity: e.identity, Err: cause}
}

// observeCall tells of a call that failed, unless its caller gave it up or the
// program is to blame.
func (p *Pool) observeCall(err error) {
	failure, ok := errors.AsType[*e2b.Error](err)
	if !ok || errors.Is(err, context.Canceled) || failure.Kind == e2b.TimedOut || failure.Kind == e2b.TooLarge {
		return
	}
	p.observe(Event{Type: CallFailed, Err: err})
}
