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
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// What is known of the slowest of storages, a directory: its locks are polled,
// and those of a process that has died are taken for free after a while.
const (
	lockPoll  = time.Second
	lockStale = 10 * time.Second
)

// memory is a storage that several processes share.
type memory struct {
	mu      sync.Mutex
	values  map[string]string
	locks   map[string]*process
	latency time.Duration
	fault   func(op string) error // nil for none
	calls   map[string]int
}

func newMemory() *memory {
	return &memory{values: map[string]string{}, locks: map[string]*process{}, calls: map[string]int{}, latency: time.Millisecond}
}

// inject says what fails from now on; nil for nothing.
func (m *memory) inject(fault func(op string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = fault
}

func (m *memory) count(op string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls[op]
}

// records returns what there is.
func (m *memory) records(t *testing.T) map[string]*record {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]*record{}
	for key, value := range m.values {
		rec, err := parseRecord([]byte(value))
		if err != nil {
			t.Fatal(err)
		}
		found[key] = rec
	}
	return found
}

// process is one of several that share a server and a storage. It can die.
type process struct {
	f   *fakeE2B
	m   *memory
	p   *Pool
	ctx context.Context //nolint:containedctx // that of its life
	die context.CancelFunc

	mu   sync.Mutex
	died time.Time
}

var errDead = errors.New("the process is dead")

func newProcess(f *fakeE2B, m *memory, edit func(*Config)) *process {
	p := &process{f: f, m: m}
	p.ctx, p.die = context.WithCancel(context.Background())
	client, err := e2b.New(e2b.Config{APIKey: "test-key", APIURL: "http://api.test", SandboxURL: "http://box.test", Transport: p})
	if err != nil {
		panic(err)
	}
	c := Config{Client: client, Limits: testLimits(), Secret: []byte("secret"), Fingerprint: "fingerprint", Remote: true}
	if edit != nil {
		edit(&c)
	}
	p.p = NewPool(c)
	if m != nil {
		p.p.Share(p)
	}
	return p
}

// RoundTrip is the server's, until the process dies.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	context.AfterFunc(p.ctx, cancel)
	resp, err := p.f.RoundTrip(r.WithContext(ctx))
	if p.ctx.Err() != nil {
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, &net.OpError{Op: "dial", Err: errDead}
	}
	return resp, err
}

// kill is kill -9.
func (p *process) kill() {
	p.mu.Lock()
	p.died = time.Now()
	p.mu.Unlock()
	p.die()
}

// bury ends the goroutines of a process.
func (p *process) bury(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if err := p.p.Drain(ctx, true); err != nil {
		t.Errorf("drain: %v", err)
	}
	p.die()
}

func (p *process) stale() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.died.IsZero() && time.Since(p.died) > lockStale
}

func (p *process) begin(ctx context.Context, op string) error {
	if err := sleep(ctx, p.m.latency); err != nil {
		return err
	}
	if p.ctx.Err() != nil {
		return errDead
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.m.calls[op]++
	if p.m.fault != nil {
		return p.m.fault(op)
	}
	return nil
}

func (p *process) Lock(ctx context.Context, name string) error {
	if err := p.begin(ctx, "lock"); err != nil {
		return err
	}
	for {
		p.m.mu.Lock()
		if owner := p.m.locks[name]; owner == nil || owner.stale() {
			p.m.locks[name] = p
			p.m.mu.Unlock()
			return nil
		}
		p.m.mu.Unlock()
		if err := sleep(ctx, lockPoll); err != nil {
			return err
		}
		if p.ctx.Err() != nil {
			return errDead
		}
	}
}

func (p *process) Unlock(ctx context.Context, name string) error {
	if err := p.begin(ctx, "unlock"); errors.Is(err, errDead) {
		return err
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.m.locks[name] != p {
		return fmt.Errorf("lock %s is not held", name)
	}
	delete(p.m.locks, name)
	return nil
}

func (p *process) Store(ctx context.Context, key string, value []byte) error {
	if err := p.begin(ctx, "store"); err != nil {
		return err
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.m.values[key] = string(value)
	return nil
}

func (p *process) Load(ctx context.Context, key string) ([]byte, error) {
	if err := p.begin(ctx, "load"); err != nil {
		return nil, err
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	value, ok := p.m.values[key]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(value), nil
}

func (p *process) Delete(ctx context.Context, key string) error {
	if err := p.begin(ctx, "delete"); err != nil {
		return err
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	delete(p.m.values, key)
	return nil
}

func (p *process) List(ctx context.Context, prefix string, _ bool) ([]string, error) {
	if err := p.begin(ctx, "list"); err != nil {
		return nil, err
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	keys := slices.Sorted(maps.Keys(p.m.values))
	keys = slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) })
	if len(keys) == 0 {
		return nil, fs.ErrNotExist
	}
	return append(keys, prefix), nil // directories are listed by some
}

// bench returns the usual helpers for a process.
func (p *process) bench(t *testing.T) *bench {
	t.Helper()
	return &bench{t: t, f: p.f, p: p.p}
}

// logged returns an edit that gives a pool a logger.
func logged(logger *zap.Logger) func(*Config) {
	return func(c *Config) { c.Logger = logger }
}
