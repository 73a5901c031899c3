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
	"slices"
	"time"
)

var errPace = errors.New("session: too many sandboxes are being created")

// pace spaces the creations of sandboxes. Callers who wait get one each in turn,
// so that nobody's many stand before another's first. Its fields need the pool's
// mutex.
type pace struct {
	next   time.Time // when the next may be
	queues map[string][]chan struct{}
	order  []string // callers who wait; the first gets the next
	timer  *time.Timer
}

// awaitPace waits until one more sandbox may be created for a caller. The error is
// errPace when that is too late for ctx, which it says at once if it can be known,
// or that of wanted.
func (p *Pool) awaitPace(ctx, wanted context.Context, caller string) error {
	granted, err := p.joinPace(ctx, caller)
	if granted == nil || err != nil {
		return err
	}
	select {
	case <-granted:
		return nil
	case <-wanted.Done():
		err = wanted.Err()
	case <-ctx.Done():
		err = errPace
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pace.leave(caller, granted)
	return err
}

// joinPace takes a creation if it may be now, and returns nil. Otherwise it returns
// what is closed when it may.
func (p *Pool) joinPace(ctx context.Context, caller string) (chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	every, now := p.table.limits.CreateEvery, time.Now()
	if every <= 0 {
		return nil, nil //nolint:nilnil // nothing to wait for
	}
	if len(p.pace.order) == 0 && !p.pace.next.After(now) {
		p.pace.next = now.Add(every)
		return nil, nil //nolint:nilnil // as above
	}
	ahead := len(p.pace.queues[caller])
	if deadline, ok := ctx.Deadline(); ok && p.pace.next.Add(time.Duration(ahead)*every).After(deadline) {
		return nil, errPace
	}
	granted := make(chan struct{})
	if ahead == 0 {
		p.pace.order = append(p.pace.order, caller)
	}
	p.pace.queues[caller] = append(p.pace.queues[caller], granted)
	if len(p.pace.order) == 1 && ahead == 0 {
		p.pace.timer = time.AfterFunc(p.pace.next.Sub(now), p.grantPace)
	}
	return granted, nil
}

// grantPace gives the next creation to the caller whose turn it is.
func (p *Pool) grantPace() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pace.order) == 0 {
		return
	}
	caller := p.pace.order[0]
	first := p.pace.queues[caller][0]
	close(first)
	p.pace.order = append(p.pace.order[1:], caller)
	p.pace.leave(caller, first)
	every := p.table.limits.CreateEvery // it may have been changed, also to none
	p.pace.next = time.Now().Add(every)
	if len(p.pace.order) > 0 {
		p.pace.timer = time.AfterFunc(every, p.grantPace)
	}
}

// leave gives up waiting, or having waited.
func (c *pace) leave(caller string, granted chan struct{}) {
	queue := slices.DeleteFunc(c.queues[caller], func(other chan struct{}) bool { return other == granted })
	c.queues[caller] = queue
	if len(queue) > 0 {
		return
	}
	delete(c.queues, caller)
	c.order = slices.DeleteFunc(c.order, func(other string) bool { return other == caller })
	if len(c.order) == 0 && c.timer != nil {
		c.timer.Stop()
	}
}
