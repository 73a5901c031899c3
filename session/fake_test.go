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

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// fault is what goes wrong with one call.
type fault struct {
	status int           // answered instead of doing anything
	body   string        // of that answer
	retry  string        // its Retry-After
	dial   bool          // no connection
	cut    bool          // done, but the answer is lost
	hang   bool          // no answer until the caller gives up
	delay  time.Duration // before anything else
}

// fakeE2B is an E2B server in memory: sandboxes that time out, contexts with
// variables, and programs of a tiny language, one command a line:
//
//	x = 1        sets a variable
//	print x      writes a variable, or a NameError
//	get x        the same, but writes nothing in place of a NameError
//	say text     writes text
//	sleep 3s     runs for a while
//	spin         runs until it is interrupted
//	wedge        runs until its context is restarted
//	exit         ends the interpreter
//	None         does nothing
type fakeE2B struct {
	t  *testing.T
	mu sync.Mutex

	boxes map[string]*fakeBox
	calls []string // "op id", in order of arrival

	// interrupt is how long after a disconnect a program goes on.
	interrupt time.Duration
	// fault says what goes wrong; nil for nothing.
	fault func(op, id string) *fault
	// latency is the time that each call takes.
	latency time.Duration

	programs []string // that began, probes excluded
	runs     sync.WaitGroup
}

type fakeBox struct {
	id       string
	token    string
	metadata map[string]string
	started  time.Time
	end      time.Time
	timeouts []time.Duration // that were asked for, in order
	deleted  bool
	lost     bool          // ended by something else than a call
	attached int           // programs that run and have a client
	killed   chan struct{} // closed when it is no more
	usedDead bool          // deleted while one of them ran
	orphan   bool          // the answer to its creation was lost
	paused   bool          // it lives, but does nothing
	pauses   bool          // it is paused when its time is over
	resets   int           // how often variables were lost in it
	contexts map[string]*fakeContext
	order    []string
}

type fakeContext struct {
	vars    map[string]string
	free    chan struct{} // holds one token while nothing runs
	restart chan struct{} // closed and replaced by a restart
	count   int
}

func newContext() *fakeContext {
	c := &fakeContext{vars: map[string]string{}, free: make(chan struct{}, 1), restart: make(chan struct{})}
	c.free <- struct{}{}
	return c
}

func newFake(t *testing.T) *fakeE2B {
	return &fakeE2B{t: t, boxes: map[string]*fakeBox{}, interrupt: 300 * time.Millisecond, latency: 10 * time.Millisecond}
}

// client returns a client of the server.
func (f *fakeE2B) client() *e2b.Client {
	c, err := e2b.New(e2b.Config{
		APIKey: "test-key", APIURL: "http://api.test", SandboxURL: "http://box.test", Transport: f,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

func (b *fakeBox) alive() bool {
	return !b.deleted && !b.lost && (b.paused || b.pauses || time.Now().Before(b.end))
}

// sleeps says whether it is paused.
func (b *fakeBox) sleeps() bool {
	return b.alive() && (b.paused || !time.Now().Before(b.end))
}

// aliveBoxes returns those that live, the oldest first.
func (f *fakeE2B) aliveBoxes() []*fakeBox {
	f.mu.Lock()
	defer f.mu.Unlock()
	boxes := slices.DeleteFunc(slices.Collect(maps.Values(f.boxes)), func(b *fakeBox) bool { return !b.alive() })
	slices.SortFunc(boxes, func(a, b *fakeBox) int { return strings.Compare(a.id, b.id) })
	return boxes
}

func (f *fakeE2B) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c == op || strings.HasPrefix(c, op+" ") {
			n++
		}
	}
	return n
}

func (f *fakeE2B) began() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.programs)
}

// inject says what goes wrong from now on; nil for nothing.
func (f *fakeE2B) inject(fault func(op, id string) *fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// timeouts returns what a sandbox was asked to live, in order.
func (f *fakeE2B) timeouts(id string) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.boxes[id].timeouts)
}

// vanish ends a sandbox without a call.
func (f *fakeE2B) vanish(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.boxes[id]; b != nil && b.alive() {
		b.lost = true
		close(b.killed)
	}
}

// wait waits for the programs that still run.
func (f *fakeE2B) wait() { f.runs.Wait() }

// operation names a request and the sandbox that it is about.
func operation(r *http.Request) (op, id string) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if parts[0] == "v2" {
		parts = parts[1:]
	}
	if r.URL.Host != "api.test" {
		id = r.Header.Get("E2b-Sandbox-Id")
		switch {
		case parts[0] == "execute":
			return "execute", id
		case r.Method == http.MethodGet:
			return "contexts", id
		case len(parts) == 3:
			return "restart", id
		default:
			return "context", id
		}
	}
	switch {
	case len(parts) == 1 && r.Method == http.MethodGet:
		return "list", ""
	case len(parts) == 1:
		return "create", ""
	case r.Method == http.MethodDelete:
		return "delete", parts[1]
	default:
		return parts[2], parts[1] // connect, timeout
	}
}

// RoundTrip answers a call of either plane.
func (f *fakeE2B) RoundTrip(r *http.Request) (*http.Response, error) {
	op, id := operation(r)
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.calls = append(f.calls, strings.TrimSpace(op+" "+id))
	var bad fault
	if f.fault != nil {
		if b := f.fault(op, id); b != nil {
			bad = *b
		}
	}
	f.mu.Unlock()

	if bad.hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if err := sleep(r.Context(), f.latency+bad.delay); err != nil {
		return nil, err
	}
	switch {
	case bad.dial:
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	case bad.status != 0:
		if op == "execute" && bad.body == contextGone.body {
			f.loseContext(id, body)
		}
		resp := answer(r, bad.status, bad.body)
		if bad.retry != "" {
			resp.Header.Set("Retry-After", bad.retry)
		}
		return resp, nil
	}
	resp := f.serve(r, op, id, body)
	if bad.cut {
		f.orphaned(resp)
		_ = resp.Body.Close()
		return nil, &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
	}
	return resp, nil
}

// created is the header that names the sandbox that a call has created.
const created = "X-Created"

// orphaned marks the sandbox that a lost answer tells of.
func (f *fakeE2B) orphaned(resp *http.Response) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.boxes[resp.Header.Get(created)]; b != nil {
		b.orphan = true
	}
}

// loseContext makes it true that the context of an execution is gone.
func (f *fakeE2B) loseContext(id string, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	in := struct {
		ContextID string `json:"context_id"`
	}{}
	if err := json.Unmarshal(body, &in); err != nil {
		f.t.Error(err)
	}
	if b := f.boxes[id]; b != nil {
		name := cmp.Or(in.ContextID, "default")
		delete(b.contexts, name)
		b.order = slices.DeleteFunc(b.order, func(c string) bool { return c == name })
	}
}

func answer(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func (f *fakeE2B) serve(r *http.Request, op, id string, body []byte) *http.Response {
	f.mu.Lock()
	defer f.mu.Unlock()
	var in struct {
		Timeout   int               `json:"timeout"`
		Metadata  map[string]string `json:"metadata"`
		Code      string            `json:"code"`
		ContextID string            `json:"context_id"`
		AutoPause bool              `json:"autoPause"`
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &in); err != nil {
			return answer(r, http.StatusBadRequest, `{"message":"bad body"}`)
		}
	}
	timeout := time.Duration(in.Timeout) * time.Second
	switch op {
	case "create":
		b := f.create(timeout, in.Metadata)
		b.pauses = in.AutoPause
		resp := answer(r, http.StatusCreated, b.view())
		resp.Header.Set(created, b.id)
		return resp
	case "list":
		return answer(r, http.StatusOK, f.list(r.URL.Query()))
	}
	b := f.boxes[id]
	dead := b == nil || !b.alive()
	if r.URL.Host == "api.test" {
		if dead {
			return answer(r, http.StatusNotFound, `{"code":404,"message":"sandbox not found"}`)
		}
		return b.control(r, op, timeout)
	}
	switch {
	case dead, b.sleeps():
		return answer(r, http.StatusBadGateway, fmt.Sprintf(`{"sandboxId":%q,"message":"The sandbox was not found","code":502}`, id))
	case r.Header.Get("X-Access-Token") != b.token:
		return answer(r, http.StatusUnauthorized, `{"message":"unauthorized"}`)
	case op == "execute":
		return f.execute(r, b, in.Code, in.ContextID)
	}
	return b.manage(r, op)
}

func (f *fakeE2B) create(timeout time.Duration, metadata map[string]string) *fakeBox {
	b := &fakeBox{
		id: fmt.Sprintf("box%05d", len(f.boxes)), metadata: metadata,
		started: time.Now(), end: time.Now().Add(timeout), timeouts: []time.Duration{timeout}, killed: make(chan struct{}),
		contexts: map[string]*fakeContext{"default": newContext()}, order: []string{"default"},
	}
	b.token = "token-" + b.id
	f.boxes[b.id] = b
	return b
}

func (b *fakeBox) view() string {
	return encode(map[string]any{"sandboxID": b.id, "envdAccessToken": b.token, "domain": nil})
}

func (f *fakeE2B) list(query url.Values) string {
	want, err := url.ParseQuery(query.Get("metadata"))
	if err != nil {
		panic(err)
	}
	out := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(f.boxes)) {
		b := f.boxes[id]
		match := b.alive()
		for k := range want {
			match = match && b.metadata[k] == want.Get(k)
		}
		state := "running"
		if b.sleeps() {
			state = "paused"
		}
		if match {
			out = append(out, map[string]any{
				"sandboxID": b.id, "metadata": b.metadata, "state": state,
				"startedAt": b.started.UTC().Format(time.RFC3339), "endAt": b.end.UTC().Format(time.RFC3339),
			})
		}
	}
	slices.Reverse(out) // the order is no promise
	return encode(out)
}

// control answers the calls about one living sandbox.
func (b *fakeBox) control(r *http.Request, op string, timeout time.Duration) *http.Response {
	switch op {
	case "delete":
		b.deleted = true
		b.usedDead = b.usedDead || b.attached > 0
		close(b.killed)
		return answer(r, http.StatusNoContent, "")
	case "connect":
		b.paused = false
		if end := time.Now().Add(timeout); end.After(b.end) {
			b.end = end
		}
		return answer(r, http.StatusOK, b.view())
	case "pause":
		if b.sleeps() {
			return answer(r, http.StatusConflict, `{"message":"already paused"}`)
		}
		b.paused, b.end = true, time.Now()
		b.usedDead = b.usedDead || b.attached > 0
		return answer(r, http.StatusNoContent, "")
	case "timeout":
		if b.sleeps() {
			return answer(r, http.StatusNotFound, `{"message":"sandbox not found"}`)
		}
		b.end = time.Now().Add(timeout)
		b.timeouts = append(b.timeouts, timeout)
		return answer(r, http.StatusNoContent, "")
	default:
		return answer(r, http.StatusNotFound, `{"message":"no such route"}`)
	}
}

// manage answers the calls about contexts.
func (b *fakeBox) manage(r *http.Request, op string) *http.Response {
	switch op {
	case "contexts":
		out := make([]map[string]string, 0, len(b.order))
		for _, id := range b.order {
			out = append(out, map[string]string{"id": id, "language": "python", "cwd": "/home/user"})
		}
		return answer(r, http.StatusOK, encode(out))
	case "context":
		id := fmt.Sprintf("context%d", b.resets)
		b.order = append(b.order, id)
		b.resets++
		b.contexts[id] = newContext()
		return answer(r, http.StatusOK, encode(map[string]string{"id": id, "language": "python", "cwd": "/home/user"}))
	default: // restart
		id := strings.Split(r.URL.Path, "/")[2]
		c := b.contexts[id]
		if c == nil {
			return answer(r, http.StatusNotFound, "Context "+id+" not found")
		}
		c.vars, c.count = map[string]string{}, 0
		b.resets++
		close(c.restart)
		c.restart = make(chan struct{})
		return answer(r, http.StatusOK, "null")
	}
}
