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
	"strings"
)

// dataCall is a call of the data plane.
type dataCall struct {
	op     string
	method string
	path   string
	body   any // nil for none
	limit  int64
	runs   bool // the server runs code for it: a failure may have come after that
}

// data makes a call of the data plane. The answer has a 2xx status and a body
// that must be closed.
func (c *Client) data(ctx context.Context, sb *Sandbox, call dataCall) (*http.Response, *Error) {
	a := sb.access.Load()
	if a == nil || !validSandboxID(sb.ID) {
		return nil, &Error{Op: call.op, Kind: BadAnswer, Err: errArgument}
	}
	var payload []byte
	if call.body != nil {
		var err error
		if payload, err = json.Marshal(call.body); err != nil {
			return nil, &Error{Op: call.op, Kind: BadAnswer, Err: errArgument}
		}
	}
	var failed *Error
	for _, e := range c.endpoints(sb.ID, a.domain) {
		resp, err := c.dataAt(ctx, sb, a, e, call, payload)
		if err == nil {
			c.learnShared(e.shared, failed != nil)
			return resp, nil
		}
		failed = err
		if !e.shared || !maybeUnserved(err) || ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// learnShared remembers whether the shared host is served, once one of the two
// ways has led to an interpreter.
func (c *Client) learnShared(shared, afterFailure bool) {
	switch {
	case shared:
		c.sharedURL.Store(supported)
	case afterFailure:
		c.sharedURL.Store(unsupported)
	}
}

// maybeUnserved is whether an error can mean that the shared host is not
// served. With each of these the code has not started.
func maybeUnserved(err *Error) bool {
	switch err.Status {
	case http.StatusBadRequest, http.StatusMisdirectedRequest:
		return true
	default:
		return err.Kind == NotReady || err.Kind == Gone
	}
}

// dataAt makes a call at one endpoint.
func (c *Client) dataAt(ctx context.Context, sb *Sandbox, a *access, e endpoint, call dataCall, payload []byte) (*http.Response, *Error) {
	r, err := http.NewRequestWithContext(ctx, call.method, e.base+call.path, bytes.NewReader(payload))
	if err != nil {
		return nil, &Error{Op: call.op, Kind: BadAnswer, Err: errArgument}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("E2b-Sandbox-Id", sb.ID)
	r.Header.Set("E2b-Sandbox-Port", interpreterPort)
	setIfAny(r.Header, "X-Access-Token", a.token)
	setIfAny(r.Header, "E2B-Traffic-Access-Token", a.trafficToken)
	resp, sent, err := c.send(r, call.limit)
	if err != nil {
		return nil, c.transportError(ctx, call.op, call.lostKind(sent), err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		return resp, nil
	}
	defer resp.Body.Close()
	// A body that cannot be read says as little as an empty one.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	return nil, c.statusError(call.op, dataKind(resp.StatusCode, body, call.runs), resp, body, sb)
}

// lostKind judges a call that got no answer.
func (call dataCall) lostKind(sent bool) Kind {
	switch {
	case !sent:
		return NotReady
	case call.runs:
		return Interrupted
	default:
		return Unavailable
	}
}

func setIfAny(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// dataKind judges a status of the data plane that is no success. The proxies in
// front of sandboxes differ in what they say; only a 502 that means "not
// started" is taken for that.
func dataKind(status int, body []byte, runs bool) Kind {
	text := strings.ToLower(string(body))
	notFound := strings.Contains(text, "not found") || strings.Contains(text, "wasn't found")
	switch {
	case status == http.StatusNotFound:
		if strings.HasPrefix(strings.TrimSpace(text), "context ") && notFound {
			return ContextGone
		}
		return Gone
	case status == http.StatusBadGateway && (strings.Contains(text, "port is not open") || strings.Contains(text, "closed port")):
		return NotReady
	case status == http.StatusBadGateway && notFound:
		return Gone
	case status == http.StatusBadGateway && isHTML(text):
		return NotReady
	case status >= 500 && runs:
		return Interrupted
	default:
		return statusKind(status)
	}
}

func isHTML(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "<!doctype") || strings.HasPrefix(text, "<html") || strings.HasPrefix(text, "<head")
}
