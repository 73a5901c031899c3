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
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
)

// maxControlBody bounds an answer of the control plane. A page of a list that
// ignores its filter is the largest honest one.
const maxControlBody = 8 << 20

// The versions of calls that have two.
const (
	v1 = iota
	v2
)

var versionPrefix = [...]string{v1: "", v2: "/v2"}

// route is a call of which some servers know only one version.
type route struct {
	first int32        // the one tried first until something is known
	known atomic.Int32 // the one that worked last plus 1, 0 for none
}

// pick returns the version to try first, and whether it has worked before.
func (r *route) pick() (version int32, known bool) {
	if k := r.known.Load(); k != 0 {
		return k - 1, true
	}
	return r.first, false
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

// versioned makes a call in the version that the server knows.
func (c *Client) versioned(ctx context.Context, r *route, call controlCall) (answer, error) {
	version, known := r.pick()
	first, firstErr := c.control(ctx, call, version)
	if first.ok() {
		r.remember(version)
	}
	if !callMissing(first.status) {
		return first, firstErr
	}
	other := 1 - version
	second, err := c.control(ctx, call, other)
	switch {
	case second.ok():
		r.remember(other)
		return second, err
	case known:
		return first, firstErr // the server has the first version: its answer is meant
	case second.status == http.StatusNotFound, !callMissing(second.status):
		return second, err // lacking the first version says nothing about a sandbox
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
	u := c.api.JoinPath(versionPrefix[version] + call.path)
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
		r.Header.Set("X-Api-Key", c.config.APIKey)
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
