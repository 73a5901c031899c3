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
	"net/http"
	"strings"
	"testing"
)

// shares says whether what one sets in a session is there for the other in a
// session of the same name.
func shares(t *testing.T, one, other *client) bool {
	t.Helper()
	one.insist(run("x = 'mine'", in("shared"))).says(t, "(no output)")
	a := other.insist(run("print(x)", in("shared")))
	switch {
	case strings.Contains(a.content, "returned: mine"):
		return true
	case strings.Contains(a.content, "NameError"):
		return false
	}
	t.Fatalf("status %d: %s", a.status, a.body)
	return false
}

func TestSessionsBelongToTheKey(t *testing.T) {
	forEngines(t, func(t *testing.T, e engine) {
		u := newModel(t)
		g := start(t, e.interpreter(t)+"\n"+u.proxy())
		alice, bob := g.client("Authorization", "Bearer sk-alice"), g.client("Authorization", "Bearer sk-bob")
		if shares(t, alice, bob) {
			t.Error("two keys share a session")
		}
		if !shares(t, alice, g.client("Authorization", "Bearer sk-alice")) {
			t.Error("one key has no session")
		}
		// Without a key, and with one that stands for none, the caller is the address.
		if !shares(t, g.client("Authorization", "Bearer ollama"), g.client()) {
			t.Error("a dummy key is a caller")
		}
		for _, a := range u.asked() {
			if strings.Contains(string(a.body), "session_id") {
				t.Errorf("the session id went upstream: %s", a.body)
			}
		}
	})
}

func TestSessionsBelongToTheUser(t *testing.T) {
	u := newModel(t)
	g := start(t, users+"\n"+embedded.interpreter(t)+"\n"+u.proxy())
	const alice, bob = "Basic YWxpY2U6YWxpY2U=", "Basic Ym9iOmJvYg=="
	if shares(t, g.client("Authorization", alice), g.client("Authorization", bob)) {
		t.Error("two users share a session")
	}
	if !shares(t, g.client("Authorization", alice, "X-Api-Key", "one"), g.client("Authorization", alice, "X-Api-Key", "two")) {
		t.Error("a user with two keys is two callers")
	}
	u.asked()
	if a := g.client("Authorization", "Basic YWxpY2U6d3Jvbmc=").ask(run("print(1)")); a.status != http.StatusUnauthorized || len(u.asked()) != 0 {
		t.Errorf("status %d with a wrong password", a.status)
	}
}

func TestSessionsBehindProxies(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
	proxied := func(address string) *client { return g.client("X-Forwarded-For", address) }
	if shares(t, proxied("1.1.1.1"), proxied("1.1.1.1")) {
		t.Error("a proxy that is not trusted gives its users one session")
	}
	if err := g.loadWith("trusted_proxies static 127.0.0.1/32", embedded.interpreter(t)+"\n"+u.proxy()); err != nil {
		t.Fatal(err)
	}
	if !shares(t, proxied("1.1.1.1"), proxied("1.1.1.1")) {
		t.Error("a user behind a trusted proxy has no session")
	}
	if shares(t, proxied("1.1.1.1"), proxied("2.2.2.2")) {
		t.Error("two users behind a trusted proxy share a session")
	}
	// A proxy appends its peer's address to the list that the client sent.
	if shares(t, proxied("1.1.1.1"), proxied("1.1.1.1, 2.2.2.2")) {
		t.Error("a client behind a trusted proxy chooses whose session it has")
	}
	if err := g.loadWith("trusted_proxies static 127.0.0.1/32\ntrusted_proxies_strict", embedded.interpreter(t)+"\n"+u.proxy()); err != nil {
		t.Fatal(err)
	}
	if shares(t, proxied("3.3.3.3"), proxied("3.3.3.3, 2.2.2.2")) {
		t.Error("a client behind a strictly trusted proxy chooses whose session it has")
	}
	if !shares(t, proxied("9.9.9.9, 4.4.4.4"), proxied("8.8.8.8, 4.4.4.4")) {
		t.Error("a user behind a strictly trusted proxy has no session")
	}
}

func TestSessionIDOfAHeader(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t, "sessions {\nid {header.X-Session}\n}")+"\n"+u.proxy())
	c := func(name string) *client { return g.client("Api-Key", "k", "X-Session", name) }
	c("one").ask(run("x = 42")).says(t, "(no output)")
	c("one").ask(run("print(x)", streamed)).says(t, "42")
	c("two").ask(run("print(x)")).says(t, "NameError")
	c("two").ask(run("y = 7", in("body"))).says(t, "(no output)")
	c("three").ask(run("print(y)", in("body"))).says(t, "7")
	c("one").ask(run("print(x)", fields{"tools": nil})).says(t, "No tool")
	for _, a := range u.asked() {
		if a.header.Get("X-Session") != "" {
			t.Errorf("the header went upstream: %v", a.header)
		}
	}
}

func TestConfiguredIdentity(t *testing.T) {
	u := newModel(t)
	g := start(t, `
		@tenant path /tenants/*
		vars @tenant tenant {http.request.uri.path.1}
		`+embedded.interpreter(t, "sessions {\nidentity {vars.tenant}\n}")+"\n"+u.proxy())
	tenant := func(name, key string) *client {
		return newClient(t, g.url+"/tenants/"+name, "Authorization", "Bearer sk-"+key)
	}
	if !shares(t, tenant("a", "one"), tenant("a", "two")) || shares(t, tenant("a", "one"), tenant("b", "one")) {
		t.Error("the configured identity is not the caller")
	}
	u.asked()
	g.client().ask(run("print(1)")).refuses(t, http.StatusUnauthorized, "authentication_error")
	if len(u.asked()) != 0 {
		t.Error("a request of nobody went upstream")
	}
	g.client().ask(run("print(1)", fields{"tools": nil})).says(t, "No tool")
}

func TestSitesShareTheirSandboxes(t *testing.T) {
	forEngines(t, func(t *testing.T, e engine) {
		u := newModel(t)
		// What is not about the sandboxes may differ.
		g := start(t, e.interpreter(t)+"\n"+u.proxy(), e.interpreter(t, "tool_name other_name", "max_rounds 3")+"\n"+u.proxy())
		one, other := newClient(t, g.urls[0]+"/v1", "Api-Key", "k"), newClient(t, g.urls[1]+"/v1", "Api-Key", "k")
		if !shares(t, one, other) {
			t.Error("two sites with the same sandboxes do not share them")
		}
	})
}

func TestEverySessionIsBusy(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t, "sessions {\nmax_per_identity 1\n}")+"\n"+u.proxy())
	c := g.client("Api-Key", "k")
	s := c.open(run("import subprocess\nsubprocess.run(['sleep', '300'])", in("busy"), streamed))
	s.next("executed_tools")
	eventually(t, "the program runs", func() bool { return len(processes("sleep")) > 0 })
	u.asked()
	for _, form := range []fields{nil, streamed} {
		a := c.ask(run("print(1)", in("other"), form))
		a.refuses(t, http.StatusTooManyRequests, "rate_limit_error")
		if a.header.Get("Retry-After") == "" {
			t.Error("there is no Retry-After")
		}
	}
	if n := len(u.asked()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	g.client("Api-Key", "other").ask(run("print(1)", in("other"))).says(t, "1")
	s.leave()
	_ = s.resp.Body.Close()
	eventually(t, "the session is free", func() bool {
		return c.ask(run("print(1)", in("other"))).status == http.StatusOK
	})
}

func TestOfferAlways(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t, "offer always")+"\n"+u.proxy())
	c := g.client("Api-Key", "k")
	plain := fields{"tools": nil}
	for _, form := range []fields{nil, streamed} {
		c.ask(run("print(6*7)", plain, form)).says(t, "returned: 42").ran(t, "print(6*7)", "42")
	}
	c.ask(run("x = 42", plain, in("a"))).says(t, "(no output)")
	c.ask(run("print(x)", plain, in("a"))).says(t, "42")
	for name, more := range map[string]fields{
		"response_format": {"response_format": fields{"type": "json_object"}},
		"tool_choice":     {"tool_choice": "none"},
		"n":               {"n": 2},
		"functions":       {"functions": []any{fields{"name": "f"}}},
	} {
		if a := c.ask(run("print(1)", plain, more)); a.status != http.StatusOK || len(a.executed) != 0 {
			t.Errorf("%s: status %d: %s", name, a.status, a.body)
		}
	}
}
