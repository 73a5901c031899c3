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
	"math"
	"slices"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// remembered is how many ended sessions are remembered, so that a caller who
// comes back to one is told that its variables are gone.
const remembered = 10_000

// box is a live sandbox. Its fields need the pool's mutex, but for those that
// only the holder of the turn changes, when it reads them itself: sb, context and
// count.
type box struct {
	id      string // that of sb, which never changes
	sb      *e2b.Sandbox
	owner   name      // the session that it was got for
	context string    // where programs run; empty for the default context
	born    time.Time // before its creation was asked for
	until   time.Time // when the provider ends it, as far as this process knows
	renewAt time.Time // when the reaper should see to until, while in use
	found   bool      // made by another process
	dirty   bool      // programs have run in it: there are variables to lose
	ended   bool      // its deletion is under way
	count   int       // executions in its context, as far as seen
	suspect time.Time // when a program was abandoned in it; zero for never
	failed  bool      // it is given up because it failed this process
	pause   bool      // it is to be paused instead of deleted
	lease   lease     // on it, where sessions are shared
	ends    Event     // what to tell when it has ended
}

// entry is a session, or the sandbox of a request without one, and who uses it.
// Its fields need the pool's mutex. The box may be used and replaced by the
// holder of the turn only, and ended by others only while nobody uses the entry.
type entry struct {
	key      string // the session's key; empty without a session
	identity string // the caller's key

	pins     int // handles that use it: more than 0 means in use
	turn     turn
	flight   *flight // the sandbox is being got
	box      *box    // nil: there is none yet, or none any more
	place    bool    // it counts towards the caps
	lastUsed time.Time

	runs   int    // programs that were sent
	doomed Reason // why its sandbox ends when nobody uses it any more; empty: it need not

	lost loss   // what is gone and nobody was told
	left string // unless this sandbox, which was left to its timeout, is found again
}

// idle says that nobody uses the entry's sandbox, and that there is one.
func (e *entry) idle() bool {
	return e.pins == 0 && e.flight == nil && e.box != nil
}

// loss is what is gone of what programs have made.
type loss int

const (
	nothing loss = iota
	variables
	everything // files, too
)

// drop takes the sandbox out of the entry.
func (e *entry) drop() *box {
	b := e.box
	e.box = nil
	if b.dirty || e.lost == variables {
		e.lost, e.left = everything, ""
	}
	return b
}

// letGo is drop for a sandbox that another process may go on with: if it is found
// again, nothing is lost.
func (e *entry) letGo() *box {
	untold := e.lost
	b := e.drop()
	if e.lost != untold && untold == nothing && b.suspect.IsZero() {
		e.left = b.id
	}
	return b
}

// identity is what a caller has and waits for.
type identity struct {
	key    string
	recent *simplelru.LRU[string, *entry] // its sessions with a place, by use
	claims []*claim                       // in order of arrival
}

// oldestIdle returns the least recently used session that is not in use.
func (id *identity) oldestIdle() *entry {
	for _, e := range id.recent.Values() {
		if e.idle() {
			return e
		}
	}
	return nil
}

// claim waits for a place for an entry.
type claim struct {
	entry    *entry
	granted  chan struct{}
	madeRoom bool // a session was ended on its behalf
}

// table knows every entry, who waits, and what there is room for. It does no
// network I/O. Its methods need the pool's mutex.
type table struct {
	limits     Limits
	sessions   map[string]*entry
	entries    map[*entry]struct{}
	identities map[string]*identity
	waiting    []*identity // those with claims; the first gets the next place
	live       int         // places taken, those of sandboxes being deleted included

	// past holds sessions that have ended with their variables, and the id of
	// their sandbox if that was left to its timeout.
	past *simplelru.LRU[string, string]

	// retire ends the sandbox of an entry that has left the table, then frees
	// its place, for heir first if that is not nil.
	retire func(e *entry, heir *claim)
}

func newTable(limits Limits, retire func(*entry, *claim)) *table {
	return &table{
		limits:     limits,
		sessions:   make(map[string]*entry),
		entries:    make(map[*entry]struct{}),
		identities: make(map[string]*identity),
		past:       newLRU[string](remembered),
		retire:     retire,
	}
}

// newLRU keeps the order of use. The size must be positive.
func newLRU[V any](size int) *simplelru.LRU[string, V] {
	lru, err := simplelru.NewLRU[string, V](size, nil)
	if err != nil {
		panic(err) // a size that is not positive, and all are constants
	}
	return lru
}

// join returns the entry of a session, a new one if need be, and marks it as in
// use. An empty key always means a new one.
func (t *table) join(key, caller string) *entry {
	e := t.sessions[key]
	if e == nil {
		e = &entry{key: key, identity: caller}
		t.entries[e] = struct{}{}
		if key != "" {
			t.sessions[key] = e
			if left, ok := t.past.Peek(key); ok {
				e.left, e.lost = left, everything
			}
			t.past.Remove(key)
		}
	}
	e.pins++
	t.touch(e)
	return e
}

// touch makes e the most recently used session of its caller.
func (t *table) touch(e *entry) {
	if e.place && e.key != "" {
		t.identities[e.identity].recent.Get(e.key)
	}
}

// remove takes an entry out of the table. Its place, if it has one, stays taken
// until it is freed.
func (t *table) remove(e *entry) {
	delete(t.entries, e)
	if e.key == "" {
		return
	}
	delete(t.sessions, e.key)
	switch {
	case e.box != nil && e.box.dirty:
		t.past.Add(e.key, "")
	case e.lost != nothing:
		t.past.Add(e.key, e.left)
	}
	t.uncount(e)
}

// spared notes that the sandbox of a session that has ended was left to its
// timeout: if it is found again, what was in it is not lost after all. Unless a
// program was abandoned in it: that one may have ended its interpreter since.
func (t *table) spared(e *entry, b *box) {
	if b.dirty && b.suspect.IsZero() && e.lost == nothing && t.past.Contains(e.key) {
		t.past.Add(e.key, b.id)
	}
}

// uncount takes a session out of what its caller has.
func (t *table) uncount(e *entry) {
	if id := t.identities[e.identity]; id != nil {
		id.recent.Remove(e.key)
		t.tidy(id)
	}
}

// tidy forgets an identity that has nothing and waits for nothing.
func (t *table) tidy(id *identity) {
	if id.recent.Len() == 0 && len(id.claims) == 0 {
		delete(t.identities, id.key)
	}
}

func (t *table) identity(key string) *identity {
	id := t.identities[key]
	if id == nil {
		id = &identity{key: key, recent: newLRU[*entry](math.MaxInt)}
		t.identities[key] = id
	}
	return id
}

// full says that a caller can have no further session: it has as many as it may,
// all in use.
func (t *table) full(caller string) bool {
	id := t.identities[caller]
	return id != nil && id.recent.Len() >= t.limits.MaxPerIdentity && id.oldestIdle() == nil
}

// claim gives e a place at once and returns nil, or queues for one.
func (t *table) claim(e *entry) *claim {
	c := &claim{entry: e, granted: make(chan struct{})}
	id := t.identity(e.identity)
	if len(id.claims) == 0 {
		t.waiting = append(t.waiting, id)
	}
	id.claims = append(id.claims, c)
	t.serve(e.identity)
	if e.place {
		return nil
	}
	return c
}

// withdraw gives up waiting. It returns false when the place has been given.
func (t *table) withdraw(c *claim) bool {
	id := t.identities[c.entry.identity]
	if id == nil || !slices.Contains(id.claims, c) {
		return false
	}
	t.unqueue(id, c)
	return true
}

func (t *table) unqueue(id *identity, c *claim) {
	id.claims = slices.DeleteFunc(id.claims, func(o *claim) bool { return o == c })
	if len(id.claims) == 0 {
		t.waiting = slices.DeleteFunc(t.waiting, func(o *identity) bool { return o == id })
	}
	t.tidy(id)
}

// take gives a claim its place if there is one. Only the caller's own idle
// sessions make room, and only for a session.
func (t *table) take(c *claim, id *identity) bool {
	e := c.entry
	if e.key != "" {
		for id.recent.Len() >= t.limits.MaxPerIdentity {
			if !t.makeRoom(c, id) {
				return false
			}
		}
	}
	if t.live >= t.limits.Max {
		if e.key != "" && !c.madeRoom {
			t.makeRoom(c, id)
		}
		return false
	}
	t.live++
	e.place = true
	if e.key != "" {
		id.recent.Add(e.key, e)
	}
	return true
}

// makeRoom ends the caller's least recently used idle session. Its place is for
// c when there is no other; it gets free when the sandbox is gone.
func (t *table) makeRoom(c *claim, id *identity) bool {
	victim := id.oldestIdle()
	if victim == nil {
		return false
	}
	var heir *claim
	if t.live >= t.limits.Max && !c.madeRoom {
		c.madeRoom = true
		heir = c
	}
	victim.because(ReasonEvicted)
	t.remove(victim)
	t.retire(victim, heir)
	return true
}

// free gives a place back, to heir if that still waits and may have it.
func (t *table) free(heir *claim) {
	t.live--
	if heir != nil {
		if id := t.identities[heir.entry.identity]; id != nil && slices.Contains(id.claims, heir) && t.take(heir, id) {
			close(heir.granted)
			t.unqueue(id, heir)
		}
	}
	t.grant()
}

// grant gives what places there are to those who wait, one to each caller in
// turn, so that nobody's many claims stand before another's first.
func (t *table) grant() {
	for misses := 0; misses < len(t.waiting); misses++ {
		id := t.waiting[0]
		t.waiting = append(t.waiting[1:], id)
		if t.grantOne(id) {
			misses = -1
		}
	}
}

// grantOne gives a place to the first claim of a caller that may have one.
func (t *table) grantOne(id *identity) bool {
	i := slices.IndexFunc(id.claims, func(c *claim) bool { return t.take(c, id) })
	if i < 0 {
		return false
	}
	c := id.claims[i]
	close(c.granted)
	t.unqueue(id, c)
	return true
}

// serve gives a caller's claims what places they may have.
func (t *table) serve(caller string) {
	id := t.identities[caller]
	for id != nil && len(id.claims) > 0 && t.grantOne(id) {
	}
}
