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
	"slices"
	"time"
)

// shortHash is how much of a key is shown: enough to tell callers apart.
const shortHash = 12

// Short returns what is shown of a key in logs, traces and to operators.
func Short(key string) string { return key[:min(shortHash, len(key))] }

// State is what a sandbox is doing.
type State string

// The states of sandboxes.
const (
	Starting State = "starting" // being created or found again
	InUse    State = "busy"     // a request has it, though no program may be running
	Idle     State = "idle"     // kept for the next request of its session
	Ending   State = "ending"   // being deleted
)

// Info is what an operator may know of a sandbox and its session. Nothing in it
// gives away who the caller is or what was run.
type Info struct {
	Key       string // hash of caller and session id; empty for a sandbox without a session
	Identity  string // hash of the caller
	SandboxID string // empty while it is being created
	State     State
	Found     bool      // made by another process, or an earlier one
	Created   time.Time // when it came to this process; zero while it is being created
	LastUsed  time.Time // when its last request ended; zero before that

	Requests   int // that have it
	Waiting    int // programs that wait for their turn in it
	Executions int // programs that were sent
}

// Sandboxes returns what the pool holds, the least recently used first.
func (p *Pool) Sandboxes() []Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	infos := make([]Info, 0, len(p.table.entries))
	for e := range p.table.entries {
		infos = append(infos, e.info())
	}
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(a.LastUsed.Compare(b.LastUsed), a.Created.Compare(b.Created), cmp.Compare(a.SandboxID, b.SandboxID))
	})
	return infos
}

// info describes an entry. It needs the mutex.
func (e *entry) info() Info {
	i := Info{
		Key: e.key, Identity: e.identity, State: e.state(), LastUsed: e.lastUsed,
		Requests: e.pins, Waiting: len(e.turn.queue), Executions: e.runs,
	}
	if b := e.box; b != nil {
		i.SandboxID, i.Created, i.Found = b.id, b.born, b.found
	}
	return i
}

func (e *entry) state() State {
	switch {
	case e.box == nil:
		return Starting
	case e.box.ended:
		return Ending
	case e.pins > 0:
		return InUse
	}
	return Idle
}

// Stats are numbers of a pool.
type Stats struct {
	Limits  Limits
	Places  int           // taken of Limits.Max, those of sandboxes being deleted included
	States  map[State]int // sandboxes by state; every state is there
	Waiting int           // requests that wait for room for a sandbox, or for their turn in one
	Paused  int           // sandboxes at the provider, those of other processes too, minutes ago
	Health  Health
}

// Stats returns the pool's numbers of this moment.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{
		Limits: p.table.limits,
		Places: p.table.live,
		Paused: p.stored,
		Health: p.circuit.health(),
		States: map[State]int{Starting: 0, InUse: 0, Idle: 0, Ending: 0},
	}
	inUse := 0
	for e := range p.table.entries {
		state := e.state()
		s.Waiting += len(e.turn.queue)
		if state == Starting && !e.place {
			continue // it waits for room, see below
		}
		if e.place && state != Ending {
			inUse++
		}
		s.States[state]++
	}
	for _, id := range p.table.waiting {
		s.Waiting += len(id.claims)
	}
	s.States[Ending] = p.table.live - inUse // most have left the table
	return s
}

// End ends the sandboxes that match, those in use too: the programs in them do not
// finish, and their callers are told that variables are lost. One that is being
// created ends when the requests that wait for it have. End does not wait for the provider. It returns the
// number of sandboxes. Match must not call the pool.
func (p *Pool) End(match func(Info) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for e := range p.table.entries {
		info := e.info()
		if info.State == Ending || !match(info) {
			continue
		}
		n++
		switch {
		case e.idle():
			e.because(ReasonOperator)
			p.table.remove(e)
			p.end(e.box, nil, func() { p.table.free(nil) })
		case e.box != nil:
			e.because(ReasonOperator)
			p.end(e.box, nil, nil)
		default:
			e.doomed = ReasonOperator
		}
	}
	return n
}

// Recycle ends all sandboxes without disturbing anyone: idle ones at once, those
// in use when their last request has ended. It returns the numbers of both. The
// pool remains in use.
func (p *Pool) Recycle() (now, later int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := range p.table.entries {
		switch {
		case e.idle():
			now++
			e.because(ReasonDrained)
			p.table.remove(e)
			p.retire(e, nil)
		case e.state() != Ending:
			later++
			if e.key != "" && e.doomed == "" { // others end with their request anyway
				e.doomed = ReasonDrained
			}
		}
	}
	return now, later
}
