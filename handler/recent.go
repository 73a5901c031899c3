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

package handler

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// recent keeps values for a time, and gives up the oldest when there are too
// many or they are too large together. A timer removes what is too old; there
// is one while there are values, so that nothing has to be closed. It is safe
// for concurrent use.
type recent[K comparable, V any] struct {
	keepFor  time.Duration
	maxBytes int // of all values

	mu      sync.Mutex
	entries *simplelru.LRU[K, dated[V]] // in the order of their dates: they are only peeked at
	bytes   int
	timed   bool
}

type dated[V any] struct {
	value V
	bytes int
	until time.Time
}

func newRecent[K comparable, V any](keepFor time.Duration, maxEntries, maxBytes int) *recent[K, V] {
	t := &recent[K, V]{keepFor: keepFor, maxBytes: maxBytes}
	entries, err := simplelru.NewLRU(maxEntries, func(_ K, e dated[V]) { t.bytes -= e.bytes })
	if err != nil {
		panic(err) // the size is a positive constant
	}
	t.entries = entries
	return t
}

// empty says that there are no values.
func (t *recent[K, V]) empty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.entries.Len() == 0
}

func (t *recent[K, V]) get(key K) (value V, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.entries.Peek(key)
	return e.value, ok
}

// add keeps a value of a size, unless it is too large on its own.
func (t *recent[K, V]) add(key K, value V, bytes int) {
	if bytes > t.maxBytes {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries.Remove(key)
	t.entries.Add(key, dated[V]{value, bytes, time.Now().Add(t.keepFor)})
	for t.bytes += bytes; t.bytes > t.maxBytes; {
		t.entries.RemoveOldest()
	}
	if !t.timed {
		t.timed = true
		time.AfterFunc(t.keepFor, t.expire)
	}
}

// expire removes what is too old, and comes back for the rest.
func (t *recent[K, V]) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		key, oldest, ok := t.entries.GetOldest()
		if !ok {
			t.timed = false
			return
		}
		if left := time.Until(oldest.until); left > 0 {
			time.AfterFunc(left, t.expire)
			return
		}
		t.entries.Remove(key)
	}
}
