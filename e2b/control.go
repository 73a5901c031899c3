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
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// maxControlBody bounds an answer of the control plane. A page of a list that
// ignores its filter is the largest honest one.
const maxControlBody = 8 << 20

// killTime bounds the killing of a half-made sandbox.
const killTime = 10 * time.Second

var (
	errNotJSON   = errors.New("not the JSON that was expected")
	errBadID     = errors.New("the id is missing or not valid")
	errBadDomain = errors.New("the domain is not a host name with an optional port")
	errBadToken  = errors.New("a token cannot be sent in a header")
	errArgument  = errors.New("not an id that a server can have given")
)

// The versions of calls that have two.
const (
	v1 = iota
	v2
)

var versionPrefix = [...]string{v1: "", v2: "/v2"}

// route is a call of which some servers know only one version.
type route struct {
	first int32 // the one tried first until something is known
	known atomic.Int32
}

// order returns the versions in the order in which to try them.
func (r *route) order() [2]int32 {
	first := r.first
	if k := r.known.Load(); k != 0 {
		first = k - 1
	}
	return [2]int32{first, 1 - first}
}

func (r *route) remember(version int32) { r.known.Store(version + 1) }

// callMissing is whether a status can mean that the server lacks the call.
func callMissing(status int) bool {
	switch status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusNotImplemented:
		return true
	}
	return false
}

// controlCall is a call of the control plane.
type controlCall struct {
	op     string
	method string
	path   string // without version
	query  url.Values
	body   any // nil for none
}

// answer is a whole answer of the control plane.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) ok() bool { return a.status >= 200 && a.status <= 299 }

// Create makes a sandbox that lives for timeout (in whole seconds, rounded up)
// and carries metadata. It tries once; trying again is safe. A sandbox whose
// answer cannot be used is killed before Create returns.
func (c *Client) Create(ctx context.Context, timeout time.Duration, metadata map[string]string) (*Sandbox, error) {
	call := controlCall{op: "create", method: http.MethodPost, path: "/sandboxes", body: map[string]any{
		"templateID":            c.config.Template,
		"timeout":               seconds(timeout),
		"secure":                true,
		"allow_internet_access": c.config.Internet,
		"metadata":              metadata,
	}}
	if metadata == nil {
		call.body.(map[string]any)["metadata"] = map[string]string{}
	}
	a, err := c.versioned(ctx, &c.create, call)
	if len(a.body) == 0 && err != nil {
		return nil, err
	}
	made, id, parseErr := parseSandbox(a.body)
	if err == nil && parseErr != nil {
		err = &Error{Op: call.op, Kind: BadAnswer, Status: a.status, Err: parseErr}
	}
	if err != nil {
		if a.ok() && id != "" {
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
	if !validSandboxID.MatchString(sb.ID) {
		return &Error{Op: op, Kind: BadAnswer, Err: errArgument}
	}
	a, err := c.versioned(ctx, &c.connect, controlCall{
		op: op, method: http.MethodPost, path: "/sandboxes/" + sb.ID + "/connect",
		body: map[string]any{"timeout": seconds(timeout)},
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
	if !validSandboxID.MatchString(sb.ID) {
		return &Error{Op: op, Kind: BadAnswer, Err: errArgument}
	}
	if c.timeout.Load() == unsupported {
		return c.reconnect(ctx, op, sb, timeout)
	}
	a, err := c.control(ctx, controlCall{
		op: op, method: http.MethodPost, path: "/sandboxes/" + sb.ID + "/timeout",
		body: map[string]any{"timeout": seconds(timeout)},
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
	if !validSandboxID.MatchString(id) {
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

// versioned makes a call in the version that the server knows.
func (c *Client) versioned(ctx context.Context, r *route, call controlCall) (answer, error) {
	order := r.order()
	first, firstErr := c.control(ctx, call, order[0])
	if !callMissing(first.status) {
		return first, firstErr
	}
	second, err := c.control(ctx, call, order[1])
	if second.ok() {
		r.remember(order[1])
		return second, err
	}
	switch {
	case second.status == 0, !callMissing(second.status):
		return second, err
	case second.status == http.StatusNotFound && first.status != http.StatusNotFound:
		return second, err // the version that the server lacks says nothing about a sandbox
	default:
		return first, firstErr
	}
}

// control makes a call of the control plane and reads the whole answer. Beside
// an error it returns as much of an answer as there is.
func (c *Client) control(ctx context.Context, call controlCall, version int32) (answer, error) {
	var payload io.Reader
	if call.body != nil {
		encoded, err := json.Marshal(call.body)
		if err != nil {
			return answer{}, &Error{Op: call.op, Kind: BadAnswer, Err: errArgument}
		}
		payload = bytes.NewReader(encoded)
	}
	u := *c.api
	u.Path += versionPrefix[version] + call.path
	u.RawPath = ""
	u.RawQuery = call.query.Encode()
	r, err := http.NewRequestWithContext(ctx, call.method, u.String(), payload)
	if err != nil {
		return answer{}, &Error{Op: call.op, Kind: BadAnswer, Err: errArgument}
	}
	if payload != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json")
	if c.config.APIKey != "" {
		r.Header.Set("X-API-Key", c.config.APIKey)
	}
	return c.receive(ctx, call.op, r)
}

// receive sends a request of the control plane and judges its answer.
func (c *Client) receive(ctx context.Context, op string, r *http.Request) (answer, error) {
	resp, _, err := c.send(r, maxControlBody)
	if err != nil {
		return answer{}, c.transportError(ctx, op, Unavailable, err)
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	a.body, err = io.ReadAll(resp.Body)
	if !a.ok() {
		return a, c.statusError(op, controlKind(a.status, op), resp, a.body, nil)
	}
	if err != nil {
		failed := c.transportError(ctx, op, Unavailable, err)
		failed.Status = a.status
		return a, failed
	}
	return a, nil
}

// controlKind judges a status of the control plane that is no success.
func controlKind(status int, op string) Kind {
	switch {
	case status == http.StatusNotFound && op != "create" && op != "list":
		return Gone
	case status == http.StatusNotImplemented:
		return Refused
	default:
		return statusKind(status)
	}
}

// seconds is a timeout as the protocol counts it.
func seconds(d time.Duration) int64 {
	return max(1, min(int64(math.Ceil(d.Seconds())), math.MaxInt32))
}
