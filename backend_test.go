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

package codeinterpreter

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

var alice = session.Caller{Kind: "user", Value: "alice"}

// serve gives a request to the handler as Caddy's server does.
func serve(t *testing.T, c *CodeInterpreter, r *http.Request, next caddyhttp.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
	if err := c.ServeHTTP(w, r, next); err != nil {
		t.Errorf("ServeHTTP: %v", err)
	}
	return w.Body.String()
}

func references(t *testing.T, c *CodeInterpreter) int {
	t.Helper()
	n, _ := backends.References(c.lease.key)
	return n
}

func TestReloadKeepsTheBackend(t *testing.T) {
	f := newFakeE2B(t)
	before, cleanupBefore := mustProvision(t, f.config(t, nil, nil))
	after, _ := mustProvision(t, f.config(t, map[string]any{"api_url": f.URL + "/"}, map[string]any{"idle": "1h"}))
	if before.lease.backend != after.lease.backend {
		t.Fatal("the same sandboxes have two backends")
	}
	if n := references(t, after); n != 2 {
		t.Errorf("%d references while both are loaded, want 2", n)
	}
	cleanupBefore()
	if n := references(t, after); n != 1 {
		t.Errorf("%d references after the reload, want 1", n)
	}
}

func TestCleanupIsIdempotent(t *testing.T) {
	f := newFakeE2B(t)
	a, _ := mustProvision(t, f.config(t, nil, nil))
	b, _ := mustProvision(t, f.config(t, nil, nil))
	for range 3 {
		if err := a.Cleanup(); err != nil {
			t.Error(err)
		}
	}
	if n := references(t, b); n != 1 {
		t.Errorf("%d references, want the other handler's alone", n)
	}
	if err := new(CodeInterpreter).Cleanup(); err != nil {
		t.Errorf("cleanup of a module that was never provisioned: %v", err)
	}
}

// TestFailedReloadReleasesNothing fails before a backend is acquired.
func TestFailedReloadReleasesNothing(t *testing.T) {
	f := newFakeE2B(t)
	c, _ := mustProvision(t, f.config(t, nil, nil))
	if _, _, err := provision(t, f.config(t, nil, map[string]any{"max": -1})); err == nil {
		t.Fatal("the second configuration is accepted")
	}
	if n := references(t, c); n != 1 {
		t.Errorf("%d references after a failed reload, want 1", n)
	}
}

// busy is whether a second session of alice's would be refused.
func busy(t *testing.T, c *CodeInterpreter) bool {
	t.Helper()
	var busy *session.BusyError
	err := c.lease.backend.pool.Admit(alice, "second")
	if err != nil && !errors.As(err, &busy) {
		t.Fatal(err)
	}
	return err != nil
}

func TestLastLoadedLimitsHold(t *testing.T) {
	f := newFakeE2B(t)
	one := f.config(t, nil, map[string]any{"max_per_identity": 1})
	two := f.config(t, nil, map[string]any{"max_per_identity": 2})
	first, cleanupFirst := mustProvision(t, one)
	handle := first.lease.backend.pool.Open(alice, "first")
	defer handle.Close()
	if out := handle.Run(t.Context(), "1", func(e2b.Event) {}); out.Status != session.Done {
		t.Fatal(out.Err)
	}
	if !busy(t, first) {
		t.Fatal("a second session is admitted with a cap of 1")
	}

	_, cleanupFailed := mustProvision(t, two)
	if busy(t, first) {
		t.Error("the raised cap does not hold for the living pool")
	}
	cleanupFailed() // another part of the configuration has failed to load
	if !busy(t, first) {
		t.Error("the cap of a configuration that failed to load still holds")
	}

	second, _ := mustProvision(t, two)
	cleanupFirst()
	if busy(t, second) {
		t.Error("the cap is lost with the configuration before")
	}
}

func TestHandlersOfOneConfigurationAreToldOfDifferentLimits(t *testing.T) {
	f := newFakeE2B(t)
	c, _ := mustProvision(t, f.config(t, nil, nil))
	later := make(chan struct{})
	for _, tc := range []struct {
		name          string
		configuration <-chan struct{}
		change        func(*session.Limits)
		want          []any // options that are named
	}{
		{"same limits", c.lease.configuration, func(*session.Limits) {}, nil},
		{"a reload", later, func(l *session.Limits) { l.ExecTimeout++ }, nil},
		{"one option", c.lease.configuration, func(l *session.Limits) { l.ExecTimeout++ }, []any{"exec_timeout"}},
		{"two options", c.lease.configuration, func(l *session.Limits) { l.Max++; l.QueueTimeout++ }, []any{"queue_timeout", "sessions max"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			core, logs := observer.New(zapcore.WarnLevel)
			second := &lease{backend: c.lease.backend, share: c.lease.share, configuration: tc.configuration}
			second.logger = zap.New(core)
			tc.change(&second.limits)
			second.backend.add(second)
			defer second.backend.drop(second)
			var named []any
			for _, entry := range logs.All() {
				named = append(named, entry.ContextMap()["options"].([]any)...)
			}
			if !slices.Equal(named, tc.want) {
				t.Errorf("the warning names %v, want %v", named, tc.want)
			}
		})
	}
}

func TestEachLimitIsCompared(t *testing.T) {
	a := share{limits: session.Limits{Pause: true, DeleteOnExit: true}}
	fields := reflect.ValueOf(&a.limits).Elem()
	for _, field := range fields.Fields() {
		if field.CanInt() {
			field.SetInt(1)
		}
	}
	if options := differing(&a, &share{}); len(options) != fields.NumField() {
		t.Errorf("of %d limits these are compared: %q", fields.NumField(), options)
	}
}

func TestChangedSandboxesHaveTheirOwnBackend(t *testing.T) {
	f := newFakeE2B(t)
	c, _ := mustProvision(t, f.config(t, nil, nil))
	seen := map[*backend]string{c.lease.backend: "the first"}
	for name, sandbox := range map[string]map[string]any{
		"api_key":     {"api_key": "e2b_other"},
		"api_url":     {"api_url": f.URL + "/other"},
		"sandbox_url": {"sandbox_url": f.URL + "/other"},
		"domain":      {"domain": "other.example"},
		"template":    {"template": "other"},
		"internet":    {"internet": false},
		"secret":      {"secret": "0123456789abcdef"},
	} {
		other, _ := mustProvision(t, f.config(t, sandbox, nil))
		if same, ok := seen[other.lease.backend]; ok {
			t.Errorf("another %s has the backend of %s", name, same)
		}
		seen[other.lease.backend] = name
	}
}

// TestReloadWithChangedBackend changes the backend while a session is idle and
// while a request is under way that has no sandbox yet: the idle sandbox goes,
// and the request gets one.
func TestReloadWithChangedBackend(t *testing.T) {
	f := newFakeE2B(t)
	before, cleanup := mustProvision(t, f.config(t, nil, nil))
	serve(t, before, chat("idle"), new(upstream))
	idle := <-f.created

	u := &upstream{before: func(turn int) {
		if turn == 1 {
			mustProvision(t, f.config(t, map[string]any{"template": "other"}, nil))
			cleanup()
			cleanup()
		}
	}}
	if answer := serve(t, before, chat(""), u); !strings.Contains(answer, "result: ok") {
		t.Errorf("the request of the old configuration got %s", answer)
	}
	own := <-f.created
	drains.work.Wait()
	gone := map[string]bool{<-f.deleted: true, <-f.deleted: true}
	if !gone[idle] || !gone[own] {
		t.Errorf("deleted %v, want %s and %s", gone, idle, own)
	}
}

// TestExitEndsSandboxes drains a backend that a reload has left behind with a
// request under way when the process exits.
func TestExitEndsSandboxes(t *testing.T) {
	defer func(d *drainage) { drains = d }(drains)
	drains = newDrainage()
	f := newFakeE2B(t)
	c, cleanup := mustProvision(t, f.config(t, nil, nil))
	u := &upstream{before: func(turn int) {
		if turn == 2 {
			cleanup()
			drains.exit(context.Background())
		}
	}}
	serve(t, c, chat(""), u)
	if own, gone := <-f.created, <-f.deleted; own != gone {
		t.Errorf("deleted %s, want %s", gone, own)
	}
}

// TestExitKeepsSessions leaves them to their timeout, unless on_exit is delete.
func TestExitKeepsSessions(t *testing.T) {
	for onExit, want := range map[string]int{onExitKeep: 0, onExitDelete: 1} {
		t.Run(onExit, func(t *testing.T) {
			defer func(d *drainage) { drains = d }(drains)
			drains = newDrainage()
			f := newFakeE2B(t)
			c, cleanup := mustProvision(t, f.config(t, nil, map[string]any{"on_exit": onExit}))
			serve(t, c, chat("mine"), new(upstream))
			drains.leave()
			cleanup()
			drains.exit(context.Background())
			if got := len(f.deleted); got != want {
				t.Errorf("%d sandboxes deleted, want %d", got, want)
			}
		})
	}
}

// TestReloads checks that nothing is left of many reloads.
func TestReloads(t *testing.T) {
	f := newFakeE2B(t)
	current, cleanup := mustProvision(t, f.config(t, nil, nil))
	for i := range 100 {
		next, cleanupNext := mustProvision(t, f.config(t, nil, map[string]any{"max": 10 + i}))
		if next.lease.backend != current.lease.backend {
			t.Fatal("the backend is not kept")
		}
		cleanup()
		current, cleanup = next, cleanupNext
	}
	if n := references(t, current); n != 1 || len(current.lease.backend.leases) != 1 {
		t.Errorf("%d references and %d leases, want one of each", n, len(current.lease.backend.leases))
	}
}
