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

package caddytest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Caddy remembers in the request's context which groups of routes a request has
// been through, under a key that it does not export. The module sets the groups
// back before each turn; where it can not, the second turn goes past handle,
// rewrite and root. When this test fails after an upgrade of Caddy, look at
// routeGroups in the package handler first.
func TestContractRouteGroupsOfARequest(t *testing.T) {
	const group = "group1"
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	routes := caddyhttp.RouteList{
		{Group: group, HandlersRaw: []json.RawMessage{[]byte(`{"handler":"static_response","status_code":204}`)}},
	}
	if err := routes.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	chain := routes.Compile(caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusTeapot) // past the group
		return nil
	}))
	w := httptest.NewRecorder()
	r := caddyhttp.PrepareRequest(httptest.NewRequest(http.MethodPost, "/", http.NoBody), caddy.NewReplacer(), w, &caddyhttp.Server{})
	groups, ok := r.Context().Value(caddy.CtxKey("route_group")).(map[string]struct{})
	if !ok || len(groups) != 0 {
		t.Fatalf("under the key route_group is a %T (%v), want an empty map[string]struct{}",
			r.Context().Value(caddy.CtxKey("route_group")), groups)
	}
	call := func() int {
		w := httptest.NewRecorder()
		if err := chain.ServeHTTP(w, r); err != nil {
			t.Fatal(err)
		}
		return w.Code
	}
	if status := call(); status != http.StatusNoContent {
		t.Fatalf("the first call has status %d", status)
	}
	if _, marked := groups[group]; !marked {
		t.Fatalf("the group is not marked in the map, which has %v", groups)
	}
	if status := call(); status != http.StatusTeapot {
		t.Fatalf("the second call has status %d: groups do not hold any more, and nothing has to be set back", status)
	}
	clear(groups)
	if status := call(); status != http.StatusNoContent {
		t.Fatalf("with the mark taken away the status is %d", status)
	}
}
