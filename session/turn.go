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

import "slices"

// turn is the right to use a sandbox. One holds it, the others wait in the order
// in which they came. Its methods need the pool's mutex.
type turn struct {
	taken bool
	queue []chan struct{}
}

// try takes the turn if nobody has it.
func (t *turn) try() bool {
	if t.taken {
		return false
	}
	t.taken = true
	return true
}

// join returns a channel that is closed when the caller's turn has come.
func (t *turn) join() chan struct{} {
	c := make(chan struct{})
	t.queue = append(t.queue, c)
	return c
}

// leave gives up waiting. It returns false when the turn had come already: the
// caller then holds it.
func (t *turn) leave(c chan struct{}) bool {
	i := slices.Index(t.queue, c)
	if i < 0 {
		return false
	}
	t.queue = slices.Delete(t.queue, i, i+1)
	return true
}

// pass ends the holder's turn and gives it to the first in the queue.
func (t *turn) pass() {
	if len(t.queue) == 0 {
		t.taken = false
		return
	}
	close(t.queue[0])
	t.queue = slices.Delete(t.queue, 0, 1)
}
