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

// Package session decides which sandbox belongs to which caller, for how long,
// and who may use it now.
//
// A Pool holds the sandboxes of one backend. A request opens a Handle, runs
// programs with it and closes it. With a session id the sandbox outlives the
// request and is found again by the next one of the same caller; without, it is
// the request's own and deleted with it.
package session

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// Caller is who a request comes from: a kind of name ("user", "key", "ip", ...)
// and the name. Callers of different kinds are never the same.
type Caller struct {
	Kind, Value string
}

// Limits are the limits of a pool. All durations and numbers must be positive,
// unless they say otherwise.
type Limits struct {
	// Idle is how long a session may be unused before its sandbox ends.
	Idle time.Duration

	// ExecTimeout is how long one program may run.
	ExecTimeout time.Duration

	// SandboxTimeout is how long getting a sandbox may take, retries included.
	SandboxTimeout time.Duration

	// QueueTimeout is how long a program waits for its turn in a busy sandbox,
	// and how long for room when there are as many sandboxes as allowed.
	QueueTimeout time.Duration

	// MaxPerIdentity is how many sessions a caller may have. A further one ends
	// the caller's least recently used session that is not in use.
	MaxPerIdentity int

	// Max is how many sandboxes the pool may have, those of requests without a
	// session included.
	Max int

	// CreateEvery is the least time between two creations of sandboxes. Those who
	// have to wait for longer than SandboxTimeout get none. 0 means none.
	CreateEvery time.Duration

	// Pause lets the provider pause a session that is idle for too long, instead
	// of deleting it: it then costs nothing, does not count towards the caps, and
	// goes on when it is used again. Not for a pool that is not remote.
	Pause bool

	// Keep is how long a session stays paused before it is deleted. 0 means that
	// it is never.
	Keep time.Duration

	// DeleteOnExit ends the sandboxes of sessions when the process exits, except
	// those that another process has used too. The default leaves them to their
	// timeout, so that the next process finds them again.
	DeleteOnExit bool
}

// Config says what a Pool is made of.
type Config struct {
	Client *e2b.Client
	Limits Limits

	// Secret is the HMAC key of all that leaves the process in place of callers
	// and session ids. Processes with the same secret find each other's
	// sessions. Empty stands for a random one: no other process will find them.
	Secret []byte

	// Fingerprint tells the sandboxes of this backend configuration from others
	// in the same account. It is stored with each sandbox.
	Fingerprint string

	// Remote is whether sandboxes outlive the process and may be shared with
	// other processes. They are then looked for before one is created, and left
	// to their timeout on exit.
	Remote bool

	// Logger is for the operator. Nil means none.
	Logger *zap.Logger

	// Observer is told what happens, from many goroutines. It must neither block
	// nor call the pool. Nil means none.
	Observer func(Event)
}

// Status is how a Run ended.
type Status int

// What can become of a program.
const (
	// Done: it ran to its end, which an exception may have been.
	Done Status = iota + 1
	// TimedOut: it was stopped after Limits.ExecTimeout.
	TimedOut
	// Interrupted: the sandbox was lost under way. The program may have run in
	// whole, in part, or not at all; its sandbox is not used again.
	Interrupted
	// TooMuchOutput: it was stopped because it wrote more than is read.
	TooMuchOutput
	// Unavailable: no sandbox was to be had. The program has not run.
	Unavailable
	// Busy: its turn, or room for a sandbox, did not come within
	// Limits.QueueTimeout, or too many were being created. The program has not run.
	Busy
	// Canceled: the request ended. The program may have run in part.
	Canceled
	// Restarted: the program ended its interpreter (crash, exit, out of memory).
	// Variables are lost, files are not; the session goes on.
	Restarted
)

var statusText = map[Status]string{
	Done:          "done",
	TimedOut:      "timed_out",
	Interrupted:   "interrupted",
	TooMuchOutput: "too_much_output",
	Unavailable:   "unavailable",
	Busy:          "busy",
	Canceled:      "canceled",
	Restarted:     "restarted",
}

// String returns the status in snake case, fit for a log field.
func (s Status) String() string {
	if text, ok := statusText[s]; ok {
		return text
	}
	return fmt.Sprintf("status_%d", int(s))
}

// Outcome is what became of one Run.
type Outcome struct {
	Status Status

	// StateLost is whether variables that earlier programs of the session have
	// set are gone. It is told once per loss, with the first program that ran
	// after it or lost it: never with Unavailable, Busy or Canceled. With
	// Interrupted and Restarted it is the loss that these statuses speak of.
	StateLost bool

	// FilesLost is whether the files are gone, too: with another sandbox. It is
	// not without StateLost.
	FilesLost bool

	// SandboxID is the sandbox that the program was sent to, if any.
	SandboxID string

	// Waited is the time until the program was sent (or given up), Ran the time
	// from then on.
	Waited, Ran time.Duration

	// Err is why the status is not Done, for the operator's log.
	Err error
}

// BusyError is the answer to a caller who needs one more session while all that
// it may have are in use.
type BusyError struct {
	// RetryAfter is when it makes sense to ask again.
	RetryAfter time.Duration
}

// Error says what is exhausted.
func (e *BusyError) Error() string {
	return fmt.Sprintf("all sessions of this caller are in use; try again in %v or use one of them", e.RetryAfter)
}
