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
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

var (
	alice = Caller{Kind: "user", Value: "alice"}
	bob   = Caller{Kind: "user", Value: "bob"}
)

// testLimits are the product's defaults.
func testLimits() Limits {
	return Limits{
		Idle: 15 * time.Minute, ExecTimeout: time.Minute, SandboxTimeout: 30 * time.Second, QueueTimeout: time.Minute,
		MaxPerIdentity: 10, Max: 1000,
	}
}

// bench is a pool in front of a server in memory. Its time stands still unless
// everything waits.
type bench struct {
	t *testing.T
	f *fakeE2B
	p *Pool
}

// inBubble runs a test with a pool, which is drained afterwards.
func inBubble(t *testing.T, edit func(*Config), test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		b := &bench{t: t, f: f, p: newTestPool(f, edit)}
		test(b)
		b.drain()
		f.wait()
	})
}

func newTestPool(f *fakeE2B, edit func(*Config)) *Pool {
	c := Config{
		Client: f.client(), Limits: testLimits(), Secret: []byte("secret"), Fingerprint: "fingerprint", Remote: true,
	}
	if edit != nil {
		edit(&c)
	}
	return NewPool(c)
}

func (b *bench) drain() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if err := b.p.Drain(ctx, false); err != nil {
		b.t.Errorf("drain: %v", err)
	}
}

// collector gathers what a program wrote.
type collector struct{ strings.Builder }

func (c *collector) emit(ev e2b.Event) {
	switch ev.Type {
	case e2b.Stdout:
		c.WriteString(ev.Text)
	case e2b.ErrorEvent:
		c.WriteString(ev.Name)
	default:
	}
}

// say is one request with one program.
func (b *bench) say(c Caller, session, code string) (Outcome, string) {
	h := b.p.Open(c, session)
	defer h.Close()
	return runIn(h, code)
}

func runIn(h *Handle, code string) (Outcome, string) {
	var out collector
	outcome := h.Run(context.Background(), code, out.emit)
	return outcome, out.String()
}

// want checks how a program ended and what it wrote.
func (b *bench) want(status Status, lost bool, output string) func(Outcome, string) {
	b.t.Helper()
	return func(o Outcome, got string) {
		b.t.Helper()
		if o.Status != status || o.StateLost != lost || got != output {
			b.t.Errorf("got %v, state lost %v, output %q (%v); want %v, %v, %q", o.Status, o.StateLost, got, o.Err, status, lost, output)
		}
	}
}

// ok checks that a program ended well, with no loss told.
func (b *bench) ok(output string) func(Outcome, string) {
	b.t.Helper()
	return b.want(Done, false, output)
}

// alive checks how many sandboxes live once everything is quiet.
func (b *bench) alive(n int) {
	b.t.Helper()
	synctest.Wait()
	time.Sleep(2 * time.Second) // deletions take a few calls
	synctest.Wait()
	if boxes := b.f.aliveBoxes(); len(boxes) != n {
		b.t.Errorf("%d sandboxes live, want %d", len(boxes), n)
	}
}

// calls checks how many calls of a kind the server got.
func (b *bench) calls(op string, n int) {
	b.t.Helper()
	if got := b.f.count(op); got != n {
		b.t.Errorf("%d calls %q, want %d", got, op, n)
	}
}

// left checks what the table holds.
func (b *bench) left(entries, places int) {
	b.t.Helper()
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	if len(b.p.table.entries) != entries || b.p.table.live != places {
		b.t.Errorf("the table holds %d entries and %d places, want %d and %d",
			len(b.p.table.entries), b.p.table.live, entries, places)
	}
}
