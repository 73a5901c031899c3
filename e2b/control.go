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
	"math"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// killTime bounds the killing of a half-made sandbox.
const killTime = 10 * time.Second

var (
	errNotJSON   = errors.New("not the JSON that was expected")
	errBadID     = errors.New("the id is missing or not valid")
	errBadDomain = errors.New("the domain is not a host name with an optional port")
	errBadToken  = errors.New("a token cannot be sent in a header")
	errArgument  = errors.New("not an id that a server can have given")
)

// createRequest is the body of a creation. Without secure, whoever guesses the
// id can use the sandbox.
type createRequest struct {
	TemplateID string            `json:"templateID"`
	Timeout    int64             `json:"timeout"`
	Secure     bool              `json:"secure"`
	Internet   bool              `json:"allow_internet_access"`
	AutoPause  bool              `json:"autoPause,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
}

// timeoutRequest is the body of the calls that set the time to live, in seconds.
type timeoutRequest struct {
	Timeout int64 `json:"timeout"`
}

// Create makes a sandbox that lives for timeout (in whole seconds, rounded up)
// and carries metadata. It tries once; trying again is safe. A sandbox whose
// answer cannot be used is killed before Create returns.
func (c *Client) Create(ctx context.Context, timeout time.Duration, metadata map[string]string) (*Sandbox, error) {
	return c.make(ctx, timeout, metadata, false)
}

// CreatePausing is Create for a sandbox that is paused when its time is over,
// and then lives until it is killed. A server that cannot pause may refuse it.
func (c *Client) CreatePausing(ctx context.Context, timeout time.Duration, metadata map[string]string) (*Sandbox, error) {
	return c.make(ctx, timeout, metadata, true)
}

func (c *Client) make(ctx context.Context, timeout time.Duration, metadata map[string]string, autoPause bool) (*Sandbox, error) {
	call := controlCall{op: "create", method: http.MethodPost, path: "/sandboxes", body: createRequest{
		TemplateID: c.config.Template,
		Timeout:    seconds(timeout),
		Secure:     true,
		Internet:   c.config.Internet,
		AutoPause:  autoPause,
		Metadata:   metadata,
	}}
	a, err := c.versioned(ctx, &c.create, call)
	if err != nil && !a.ok() {
		return nil, err
	}
	made, id, parseErr := parseSandbox(a.body)
	if err == nil && parseErr != nil {
		err = &Error{Op: call.op, Kind: BadAnswer, Status: a.status, Err: parseErr}
	}
	if err != nil {
		if id != "" {
			c.kill(ctx, id)
		}
		return nil, err
	}
	sb := &Sandbox{ID: id}
	sb.access.Store(made.access())
	return sb, nil
}

// Connect returns the sandbox with an id, resumed if it was paused, and lets it
// live for at least timeout from now. A sandbox that is no more is Gone.
func (c *Client) Connect(ctx context.Context, id string, timeout time.Duration) (*Sandbox, error) {
	sb := &Sandbox{ID: id}
	if err := c.reconnect(ctx, "connect", sb, timeout); err != nil {
		return nil, err
	}
	return sb, nil
}

// reconnect connects to a sandbox and stores what the answer says in it.
func (c *Client) reconnect(ctx context.Context, op string, sb *Sandbox, timeout time.Duration) error {
	if !validSandboxID(sb.ID) {
		return &Error{Op: op, Kind: BadAnswer, Err: errArgument}
	}
	a, err := c.versioned(ctx, &c.connect, controlCall{
		op: op, method: http.MethodPost, path: "/sandboxes/" + sb.ID + "/connect",
		body: timeoutRequest{Timeout: seconds(timeout)},
	})
	if err != nil {
		return err
	}
	got, id, err := parseSandbox(a.body)
	if err == nil && id != sb.ID {
		err = errBadID
	}
	if err != nil {
		return &Error{Op: op, Kind: BadAnswer, Status: a.status, Err: err}
	}
	sb.access.Store(got.access())
	return nil
}

// Extend sets the time a sandbox lives to timeout from now. Where the server
// lacks that call it connects, which can only lengthen the time. A sandbox that
// is no more is Gone; any other error leaves the sandbox as it was.
func (c *Client) Extend(ctx context.Context, sb *Sandbox, timeout time.Duration) error {
	const op = "extend"
	if !validSandboxID(sb.ID) {
		return &Error{Op: op, Kind: BadAnswer, Err: errArgument}
	}
	if c.timeout.Load() == unsupported {
		return c.reconnect(ctx, op, sb, timeout)
	}
	a, err := c.control(ctx, controlCall{
		op: op, method: http.MethodPost, path: "/sandboxes/" + sb.ID + "/timeout",
		body: timeoutRequest{Timeout: seconds(timeout)},
	}, v1)
	switch {
	case err == nil:
		c.timeout.Store(supported)
		return nil
	case !callMissing(a.status):
		return err
	}
	// A 404 says either that the sandbox is gone or that there is no such call.
	if err := c.reconnect(ctx, op, sb, timeout); err != nil {
		return err
	}
	c.timeout.CompareAndSwap(supportUnknown, unsupported)
	return nil
}

// Delete kills a sandbox. It tries once; one that is no more is no error.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.end(ctx, controlCall{op: "delete", method: http.MethodDelete, path: "/sandboxes/" + id}, id, http.StatusNotFound)
}

// Pause pauses a sandbox, which then lives until it is killed. One that is
// paused already is no error; one that is no more is Gone.
func (c *Client) Pause(ctx context.Context, id string) error {
	return c.end(ctx, controlCall{op: "pause", method: http.MethodPost, path: "/sandboxes/" + id + "/pause"}, id, http.StatusConflict)
}

// end makes a call without an answer; the status done is as good as success.
func (c *Client) end(ctx context.Context, call controlCall, id string, done int) error {
	if !validSandboxID(id) {
		return &Error{Op: call.op, Kind: BadAnswer, Err: errArgument}
	}
	if a, err := c.control(ctx, call, v1); err != nil && a.status != done {
		return err
	}
	return nil
}

// kill deletes a half-made sandbox, also when ctx has ended.
func (c *Client) kill(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	for wait := 250 * time.Millisecond; ; wait *= 2 {
		err := c.Delete(ctx, id)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			c.logger.Warn("half-made sandbox could not be killed; it ends with its timeout",
				zap.String("sandbox_id", id), zap.Error(err))
			return
		case <-time.After(wait):
		}
	}
}

// seconds is a timeout as the protocol counts it.
func seconds(d time.Duration) int64 {
	return max(1, min(int64(math.Ceil(d.Seconds())), math.MaxInt32))
}
