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

package local

import (
	"runtime"
	"sync"
)

// thread runs functions on one OS thread that lives until close. The kernel ends
// a sandbox with the thread that started it (--die-with-parent is PR_SET_PDEATHSIG),
// and Go ends threads at will.
type thread struct {
	mu     sync.Mutex
	jobs   chan func()
	closed bool
}

func newThread() *thread {
	t := &thread{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the function
		for job := range t.jobs {
			job()
		}
	}()
	return t
}

func (t *thread) do(f func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errEngineClosed
	}
	result := make(chan error, 1)
	t.jobs <- func() { result <- f() }
	return <-result
}

func (t *thread) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		close(t.jobs)
	}
}
