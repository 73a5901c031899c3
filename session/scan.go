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
	"time"

	"go.uber.org/zap"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

const (
	// firstScan is how long after its start a process looks for what earlier
	// ones have left: not at once, because a configuration that is only tried
	// makes no calls.
	firstScan = 10 * time.Second

	// scanEvery is how often it looks again, scanTimeout how long that may take.
	scanEvery   = 2 * time.Minute
	scanTimeout = time.Minute

	// recordScans is how many looks there are for one at all records: reading
	// them is a call for each.
	recordScans = 30
)

// scanWhenDue begins a scan if it is time for one, and returns how long it is
// until the next. It needs the mutex.
func (p *Pool) scanWhenDue(now time.Time) time.Duration {
	if !p.remote || p.draining {
		return dormancy
	}
	if !p.scanAt.After(now) {
		p.scanAt = now.Add(scanEvery - jitter(scanEvery/10))
		records := p.scans%recordScans == 0
		p.scans++
		p.spawn(func(ctx context.Context) { p.scan(ctx, records) })
	}
	return p.scanAt.Sub(now)
}

// scan looks at all sessions there are at the provider, for what the provider's
// timeout does not end: second sandboxes of a session, and those that are paused
// for longer than they are kept.
func (p *Pool) scan(ctx context.Context, records bool) {
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	at := time.Now()
	infos, err := p.client.List(ctx, map[string]string{metaProduct: Product, metaPool: p.fingerprint, metaKind: kindSession})
	if err != nil {
		p.logger.Debug("listing sandboxes failed, what others have left is looked for later", zap.Error(err))
		return
	}
	p.mu.Lock()
	limits := p.table.limits
	p.mu.Unlock()
	alive := make(map[string]struct{}, len(infos))
	sessions := make(map[string]int)
	stored := 0
	for _, info := range infos {
		key := info.Metadata[metaSession]
		if overdue(info, limits, at) && p.removePaused(ctx, info, limits) {
			continue
		}
		alive[info.ID] = struct{}{}
		sessions[key]++
		if info.State == e2b.StatePaused {
			stored++
		}
	}
	p.mu.Lock()
	p.stored = stored
	p.mu.Unlock()
	for key, n := range sessions {
		if n > 1 {
			p.checkSoon(key)
		}
	}
	if records {
		p.scanRecords(ctx, alive, at, limits)
	}
}

// overdue says that a sandbox is paused for longer than it is kept. Those who do
// not tell when its time was over get another one.
func overdue(info e2b.Info, limits Limits, now time.Time) bool {
	since := info.EndAt
	if since.IsZero() || since.Before(info.StartedAt) {
		since = info.StartedAt
	}
	return info.State == e2b.StatePaused && limits.Keep > 0 && !since.IsZero() && now.Sub(since) > limits.Keep
}

// checkSoon has the reaper look at a session with several sandboxes.
func (p *Pool) checkSoon(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.checks[key] == nil && !p.draining {
		p.checks[key] = &check{due: time.Now()}
		p.wakeReaper()
	}
}

// removePaused deletes a sandbox that is paused for too long, unless its record
// says that it is not. It returns whether it has.
func (p *Pool) removePaused(ctx context.Context, info e2b.Info, limits Limits) bool {
	n := name{info.Metadata[metaIdentity], info.Metadata[metaSession]}
	if p.shelf.on() {
		h, err := p.shelf.hold(ctx, n, lockTimeout)
		if err != nil {
			return false // the next scan is soon enough
		}
		defer h.release()
		if h.rec != nil && h.rec.Sandbox == info.ID {
			if !h.rec.Paused && h.rec.leased("") || time.Since(h.rec.Used) < limits.Keep {
				return false
			}
			defer func() { _ = h.remove(ctx) }() // logged; the next scan finds it
		}
	}
	p.mu.Lock()
	_, ending := p.ending[info.ID]
	busy := ending || p.inUse(n.session, info.ID)
	p.mu.Unlock()
	if busy {
		return false
	}
	p.logger.Info("deleting a session that is paused for too long", zap.String("sandbox_id", info.ID))
	p.kill(ctx, info.ID)
	p.observe(Event{Type: Deleted, SandboxID: info.ID, Key: n.session, Identity: n.identity, Reason: ReasonKept})
	return true
}

// scanRecords deletes the records of sandboxes that are no more.
func (p *Pool) scanRecords(ctx context.Context, alive map[string]struct{}, at time.Time, limits Limits) {
	storage, err := p.shelf.open()
	if err != nil {
		return
	}
	records, err := p.shelf.all(ctx, storage, "")
	if err != nil {
		return // logged
	}
	for n, rec := range records {
		if ctx.Err() != nil {
			return
		}
		if staleRecord(rec, alive, at, limits) {
			p.removeRecord(ctx, n, rec)
		}
	}
}

// staleRecord says that a record is of no use: nobody has used it for long enough
// for the sandbox to have ended, and it is not listed.
func staleRecord(rec *record, alive map[string]struct{}, at time.Time, limits Limits) bool {
	_, listed := alive[rec.Sandbox]
	return !listed && !rec.leased("") && at.Sub(rec.Used) > max(limits.Idle, limits.ExecTimeout)+margin+grace(limits)
}

// removeRecord deletes a record if it is still as it was.
func (p *Pool) removeRecord(ctx context.Context, n name, seen *record) {
	h, err := p.shelf.hold(ctx, n, lockTimeout)
	if err != nil {
		return
	}
	defer h.release()
	if h.rec != nil && h.rec.Used.Equal(seen.Used) && h.rec.Sandbox == seen.Sandbox {
		_ = h.remove(ctx) // logged; the next scan finds it
	}
}
