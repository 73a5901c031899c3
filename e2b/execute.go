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

package e2b

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// drainTime is how long the end of a body is waited for after the execution's
// last line. Closing it before would look to the server like a caller that went
// away, and make it interrupt what runs next.
const drainTime = 500 * time.Millisecond

// errDeadline is why a run's context ends when its own clock has run out.
var errDeadline = errors.New("execution deadline")

// Execution is code to run.
type Execution struct {
	Code string

	// ContextID is the context to run in; empty means the default context of
	// Language. Servers refuse an execution that names both.
	ContextID string

	// Language is empty for the server's default, Python.
	Language string

	// EnvVars are set for this execution only.
	EnvVars map[string]string

	// Timeout is how long it may take, waiting in the server included; the
	// server's keep-alives do not extend it. 0 means no limit but the context's.
	Timeout time.Duration
}

// executeRequest is the body of /execute.
type executeRequest struct {
	Code      string            `json:"code"`
	ContextID string            `json:"context_id,omitempty"`
	Language  string            `json:"language,omitempty"`
	EnvVars   map[string]string `json:"env_vars,omitempty"`
}

// Execute runs code once and gives its events to emit, in order, on the calling
// goroutine. It returns nil only when the execution's end has arrived, which is
// also an event. When it returns early, for the end of ctx or one of its own
// limits, the connection is closed, on which the server interrupts the code,
// though not reliably at once.
func (c *Client) Execute(ctx context.Context, sb *Sandbox, ex Execution, emit func(Event)) error {
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if ex.Timeout > 0 {
		deadline := time.AfterFunc(ex.Timeout, func() { cancel(errDeadline) })
		defer deadline.Stop()
	}
	resp, failed := c.data(run, sb, dataCall{
		op: "execute", method: http.MethodPost, path: "/execute", limit: c.config.MaxRead, runs: true,
		body: executeRequest{Code: ex.Code, ContextID: ex.ContextID, Language: ex.Language, EnvVars: ex.EnvVars},
	})
	if failed != nil {
		return abandoned(ctx, run, failed)
	}
	defer resp.Body.Close()
	// Not every transport ends a Read when the context does.
	stop := context.AfterFunc(run, func() { _ = resp.Body.Close() })
	defer stop()

	ended, err := readEvents(resp.Body, c.config.MaxRead, emit)
	if ended {
		drain(resp.Body, cancel)
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	failed = c.transportError(run, "execute", Interrupted, err)
	failed.Status = resp.StatusCode
	return abandoned(ctx, run, failed)
}

// abandoned says whose end it was when a run failed because its context had
// ended: the caller's or that of the execution's own clock.
func abandoned(ctx, run context.Context, failed *Error) error {
	switch {
	case run.Err() == nil || !errors.Is(failed, run.Err()):
	case ctx.Err() != nil:
		failed.Err = ctx.Err()
	case errors.Is(context.Cause(run), errDeadline):
		failed.Kind, failed.Err = TimedOut, nil
	}
	return failed
}

// drain reads to the end of a body, so that its connection can be used again.
// When the end came with the last line there is nothing to wait for, and no timer
// to start: that would wake a thread.
func drain(body io.Reader, cancel context.CancelCauseFunc) {
	if b, ok := body.(*answerBody); ok && b.whole {
		return
	}
	late := time.AfterFunc(drainTime, func() { cancel(nil) })
	defer late.Stop()
	// Whatever comes after the last line, and however it ends, is of no interest.
	_, _ = io.Copy(io.Discard, body)
}
