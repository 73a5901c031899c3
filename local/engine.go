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
	"errors"
	"time"
)

// limits bound one sandbox.
type limits struct {
	memory    int64 // bytes: resident memory of all its processes
	disk      int64 // bytes: each of /home/user, /tmp and /dev/shm
	processes int   // processes and threads
}

// Limits of a sandbox that need no option.
const (
	// maxOpenFiles per process.
	maxOpenFiles = 512
	// mappedLibraries is the address space that files take which are mapped but
	// not copied; it comes on top of the memory.
	mappedLibraries = 256 << 20
)

const (
	// infoTimeout bounds bubblewrap's own start.
	infoTimeout = 10 * time.Second
	// reapTimeout is how long bubblewrap may take to notice the end of its sandbox.
	reapTimeout = 2 * time.Second
)

// errEngineClosed is returned for a start after the engine's end.
var errEngineClosed = errors.New("sandbox local: the server is closed")

// startError is a sandbox that did not come up.
type startError struct {
	complaint string // bubblewrap's or Python's own words
	err       error
}

func (e *startError) Error() string { return e.complaint + " (" + e.err.Error() + ")" }
func (e *startError) Unwrap() error { return e.err }

// tail keeps the first bytes of what bubblewrap or the driver complain about.
type tail struct {
	buf []byte
}

// maxComplaint bounds what is kept; the rest is read and dropped.
const maxComplaint = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	if room := maxComplaint - len(t.buf); room > 0 {
		t.buf = append(t.buf, p[:min(room, len(p))]...)
	}
	return len(p), nil
}
