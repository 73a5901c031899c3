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
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// The circuit opens after so many creations in a row that failed, none longer
// than failureGap after the one before. The first sandbox is asked for again
// after minPause; each time that fails the pause doubles, up to maxPause.
const (
	failuresToOpen = 5
	failureGap     = time.Minute
	minPause       = time.Second
	maxPause       = 30 * time.Second
)

// circuit keeps requests from waiting for a provider that makes no sandboxes.
// Its methods need the pool's mutex.
type circuit struct {
	failures int       // in a row
	last     time.Time // when the last one was
	cause    error     // of the last one

	since   time.Time // when it opened; zero: closed
	pause   time.Duration
	next    time.Time // when a sandbox may be asked for again
	probing bool      // a probe is under way
	asked   bool      // and the provider has answered
}

func (c *circuit) open() bool { return !c.since.IsZero() }

// refusal is why no sandbox may be asked for, nil if one may.
func (c *circuit) refusal(now time.Time) error {
	if c.open() && (c.probing || now.Before(c.next)) {
		return fmt.Errorf("session: the provider keeps failing and is given a pause, the last time with %w", c.cause)
	}
	return nil
}

// admit says whether a sandbox may be asked for. If probe is true it is the one
// that finds out whether the provider works again, and done must be called when
// it has ended in whatever way.
func (c *circuit) admit(now time.Time) (probe bool, err error) {
	if err := c.refusal(now); err != nil {
		return false, err
	}
	c.probing, c.asked = c.open(), false
	return c.probing, nil
}

// done ends a probe. The pause grows if the provider was asked and the circuit is
// still open.
func (c *circuit) done(now time.Time) {
	c.probing = false
	if !c.open() || !c.asked {
		return
	}
	c.pause = min(2*c.pause, maxPause)
	c.next = now.Add(c.pause)
}

// failed counts a failure and returns true when it opens the circuit.
func (c *circuit) failed(now time.Time, cause error) bool {
	if now.Sub(c.last) > failureGap {
		c.failures = 0
	}
	c.failures++
	c.last, c.cause = now, cause
	if c.open() || c.failures < failuresToOpen {
		return false
	}
	c.since, c.pause, c.next = now, minPause, now.Add(minPause)
	return true
}

// succeeded closes the circuit and returns how long it was open, 0 if it was
// not.
func (c *circuit) succeeded(now time.Time) time.Duration {
	var d time.Duration
	if c.open() {
		d = max(now.Sub(c.since), 1)
	}
	*c = circuit{}
	return d
}

// Health says whether the provider makes sandboxes. The zero value says yes.
type Health struct {
	Failing  bool
	Since    time.Time // when the pool stopped asking for each request
	Next     time.Time // when it asks again, with the first request from then on
	Failures int       // in a row, also while it is not failing yet
	Err      error     // the last one
}

func (c *circuit) health() Health {
	return Health{Failing: c.open(), Since: c.since, Next: c.next, Failures: c.failures, Err: c.cause}
}

// refused is why a flight need not begin, nil if it may.
func (p *Pool) refused() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.circuit.refusal(time.Now())
}

// admitted says whether the provider may be asked by a flight, which has all else
// that it needs: a probe that waited would keep everybody out. At its end over
// must be called.
func (p *Pool) admitted() (over func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	probe, err := p.circuit.admit(time.Now())
	if err != nil || !probe {
		return func() {}, err
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.circuit.done(time.Now())
	}, nil
}

// answered tells the circuit that the provider has given a sandbox, or why not.
func (p *Pool) answered(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.circuit.asked = true
	switch {
	case err == nil:
		if d := p.circuit.succeeded(now); d > 0 {
			p.logger.Info("the provider makes sandboxes again", zap.Duration("failed_for", d))
			p.observe(Event{Type: ProviderRecovered, Took: d})
		}
	case e2b.KindOf(err) == e2b.RateLimited: // it works
	case p.circuit.failed(now, err):
		p.logger.Error("the provider keeps failing: until it makes sandboxes again, programs that need a new one are refused at once",
			zap.Int("failures", p.circuit.failures), zap.Error(err))
		p.observe(Event{Type: ProviderFailing, Err: err})
	}
}
