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
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// admin calls the API through its routes and decodes the answer.
func admin[T any](t *testing.T, method, path string) (T, error) {
	t.Helper()
	var (
		result T
		failed error
	)
	mux := http.NewServeMux()
	for _, route := range (adminAPI{}).Routes() {
		mux.HandleFunc(route.Pattern, func(w http.ResponseWriter, r *http.Request) { failed = route.Handler.ServeHTTP(w, r) })
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(method, path, http.NoBody))
	if failed == nil {
		if err := json.Unmarshal(w.Body.Bytes(), &result); err != nil {
			t.Fatalf("%s %s answers %q: %v", method, path, w.Body, err)
		}
	}
	return result, failed
}

func mustAdmin[T any](t *testing.T, method, path string) T {
	t.Helper()
	result, err := admin[T](t, method, path)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return result
}

// apiStatus is the status that Caddy answers an error with.
func apiStatus(t *testing.T, err error) int {
	t.Helper()
	var failed caddy.APIError
	if !errors.As(err, &failed) {
		t.Fatalf("%v is no error of the API", err)
	}
	return failed.HTTPStatus
}

// ask has a program run in a session of sk-alice.
func ask(t *testing.T, c *CodeInterpreter, name string) {
	t.Helper()
	serve(t, c, chat(name), caddyhttp.HandlerFunc(new(upstream).ServeHTTP))
}

func TestAdminListsSessionsByTheirHashes(t *testing.T) {
	f := newFakeE2B(t)
	c, _ := mustProvision(t, f.config(t, nil, nil))
	ask(t, c, theSession)
	ask(t, c, "second")
	list := mustAdmin[[]sessionInfo](t, http.MethodGet, "/code_interpreter/sessions")
	if len(list) != 2 {
		t.Fatalf("%d sessions are listed, want 2", len(list))
	}
	first := list[0]
	if first.ID != first.Session || len(first.ID) != 12 || len(first.Identity) != 12 || first.Identity != list[1].Identity ||
		first.Engine != "e2b" || first.Backend != c.lease.backend.id || first.Kind != "session" ||
		first.Created.IsZero() || first.LastUsed.IsZero() {
		t.Errorf("the first is %+v", first)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{theSession, "sk-alice", "alice", "print"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%q is shown in %s", secret, text)
		}
	}
	for _, id := range []string{first.ID, first.Sandbox} {
		if one := mustAdmin[sessionInfo](t, http.MethodGet, "/code_interpreter/sessions/"+id); one.Sandbox != first.Sandbox {
			t.Errorf("%s shows %+v", id, one)
		}
	}
}

func TestAdminEndsOneSession(t *testing.T) {
	f := newFakeE2B(t)
	c, _ := mustProvision(t, f.config(t, nil, nil))
	ask(t, c, "one")
	ask(t, c, "two")
	list := mustAdmin[[]sessionInfo](t, http.MethodGet, "/code_interpreter/sessions")
	if n := mustAdmin[ended](t, http.MethodDelete, "/code_interpreter/sessions/"+list[0].ID); n.Ended != 1 {
		t.Errorf("%d sandboxes were ended, want 1", n.Ended)
	}
	if id := <-f.deleted; id != list[0].Sandbox {
		t.Errorf("%s was deleted, want %s", id, list[0].Sandbox)
	}
	left := mustAdmin[[]sessionInfo](t, http.MethodGet, "/code_interpreter/sessions")
	if len(left) != 1 || left[0].ID != list[1].ID {
		t.Errorf("left is %+v", left)
	}
}

func TestAdminEndsAllOfAnIdentity(t *testing.T) {
	f := newFakeE2B(t)
	c, _ := mustProvision(t, f.config(t, nil, nil))
	ask(t, c, "one")
	ask(t, c, "two")
	list := mustAdmin[[]sessionInfo](t, http.MethodGet, "/code_interpreter/sessions")
	if n := mustAdmin[ended](t, http.MethodDelete, "/code_interpreter/identities/"+list[0].Identity); n.Ended != 2 {
		t.Errorf("%d sandboxes were ended, want 2", n.Ended)
	}
	<-f.deleted
	<-f.deleted
}

func TestAdminDrainsABackend(t *testing.T) {
	f := newFakeE2B(t)
	c, _ := mustProvision(t, f.config(t, nil, nil))
	ask(t, c, "one")
	ask(t, c, "two")
	result := mustAdmin[drained](t, http.MethodPost, "/code_interpreter/drain?backend="+c.lease.backend.id)
	if result != (drained{Ended: 2}) {
		t.Errorf("drained %+v, want two idle ones", result)
	}
	<-f.deleted
	<-f.deleted
	ask(t, c, "one")
	if list := mustAdmin[[]sessionInfo](t, http.MethodGet, "/code_interpreter/sessions"); len(list) != 1 || list[0].Executions != 1 {
		t.Errorf("afterwards there is %+v, want a new sandbox", list)
	}
}

func TestAdminErrorsAreCaddys(t *testing.T) {
	for _, tc := range []struct {
		method, path string
		status       int
		text         string
	}{
		{http.MethodPost, "sessions", http.StatusMethodNotAllowed, "method POST"},
		{http.MethodGet, "sessions/nobody", http.StatusNotFound, `no session or sandbox "nobody" in this process`},
		{http.MethodDelete, "sessions/nobody", http.StatusNotFound, `no session or sandbox "nobody" in this process`},
		{http.MethodDelete, "identities/nobody", http.StatusNotFound, `no sandbox of an identity "nobody" in this process`},
		{http.MethodPost, "drain", http.StatusBadRequest, "backend is missing"},
		{http.MethodPost, "drain?backend=none", http.StatusNotFound, `no backend "none"`},
		{http.MethodGet, "identities/nobody", http.StatusMethodNotAllowed, "method GET"},
	} {
		_, err := admin[any](t, tc.method, "/code_interpreter/"+tc.path)
		if err == nil || apiStatus(t, err) != tc.status || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s %s: %v, want status %d and %q", tc.method, tc.path, err, tc.status, tc.text)
		}
	}
}

func TestAdminStatsNameBackendsAndLimits(t *testing.T) {
	f := newFakeE2B(t)
	c, cleanup := mustProvision(t, f.config(t, nil, map[string]any{"max": 7, "idle": "20m"}))
	ask(t, c, "one")
	stats := mustAdmin[statsInfo](t, http.MethodGet, "/code_interpreter/stats")
	if len(stats.Backends) != 1 {
		t.Fatalf("%d backends, want 1", len(stats.Backends))
	}
	b := stats.Backends[0]
	if b.ID != c.lease.backend.id || b.Engine != "e2b" || !b.Loaded || b.Limits.Max != 7 || b.Limits.Idle != "20m0s" ||
		b.Places != 1 || b.Sandboxes[session.Idle] != 1 {
		t.Errorf("the backend is %+v", b)
	}
	cleanup()
	drains.work.Wait()
	if stats := mustAdmin[statsInfo](t, http.MethodGet, "/code_interpreter/stats"); len(stats.Backends) != 0 {
		t.Errorf("backends without a configuration are still there: %+v", stats.Backends)
	}
}
