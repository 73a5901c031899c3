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

package handler_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// who is how a request says whose it is.
type who struct {
	header  []string
	user    string // whom Caddy authenticated
	address string // of the peer
	client  string // what Caddy found behind a trusted proxy
}

func (x who) request(w http.ResponseWriter, body string) *http.Request {
	r := request(context.Background(), w, body, x.header...)
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if x.user != "" {
		repl.Set("http.auth.user.id", x.user)
	}
	if x.address != "" {
		caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, x.address)
	}
	if x.client != "" {
		caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, x.client)
		caddyhttp.SetVar(r.Context(), caddyhttp.TrustedProxyVarKey, true)
	}
	return r
}

// shares says whether a variable of one is there for the other, in a session of
// the same name.
func shares(f *fixture, one, other who) bool {
	f.t.Helper()
	body := ask(map[string]any{"metadata": inSession("s")})
	results := make([]any, 0, 2)
	for i, x := range []who{one, other} {
		f.upstream.then(runs([]string{"x = mine\nprint x", "print x"}[i]), says("done"))
		w := newResponse()
		f.serve(w, x.request(w, body))
		w.says(f.t, "stop", "done")
		seen := f.upstream.asked()
		results = append(results, seen[len(seen)-1].messages(f.t)[2]["content"])
	}
	if results[0] != "mine" {
		f.t.Fatalf("the first request got %q", results[0])
	}
	return results[1] == "mine"
}

func key(pairs ...string) who { return who{header: pairs} }

func TestSessionsBelongToTheirCaller(t *testing.T) {
	bearer := func(k string) who { return key("Authorization", "Bearer "+k) }
	for name, c := range map[string]struct {
		one, other who
		same       bool
	}{
		"same key":                           {bearer("sk-a"), bearer("sk-a"), true},
		"another key":                        {bearer("sk-a"), bearer("sk-b"), false},
		"another header":                     {bearer("sk-a"), key("X-Api-Key", "sk-a"), false},
		"api-key":                            {key("Api-Key", "sk-a"), key("Api-Key", "sk-a"), true},
		"another api-key":                    {key("Api-Key", "sk-a"), key("Api-Key", "sk-b"), false},
		"one key of two":                     {key("Authorization", "Bearer sk-a", "X-Api-Key", "k"), bearer("sk-a"), false},
		"another second key":                 {key("Authorization", "Bearer sk-a", "X-Api-Key", "k"), key("Authorization", "Bearer sk-a", "X-Api-Key", "l"), false},
		"both keys":                          {key("Authorization", "Bearer sk-a", "X-Api-Key", "k"), key("Authorization", "Bearer sk-a", "X-Api-Key", "k"), true},
		"a dummy and the address":            {bearer("ollama"), who{}, true},
		"dummies of the same address":        {bearer("sk-no-key-required"), bearer("LM-Studio"), true},
		"a dummy of two addresses":           {who{header: bearer("EMPTY").header, address: "1.1.1.1"}, who{header: bearer("EMPTY").header, address: "2.2.2.2"}, false},
		"a dummy beside a key":               {key("Authorization", "Bearer none", "X-Api-Key", "k"), key("X-Api-Key", "k"), true},
		"same address":                       {who{address: "1.1.1.1"}, who{address: "1.1.1.1"}, true},
		"another address":                    {who{address: "1.1.1.1"}, who{address: "2.2.2.2"}, false},
		"same user, another key":             {who{user: "alice", header: bearer("sk-a").header}, who{user: "alice", header: bearer("sk-b").header}, true},
		"another user, same key":             {who{user: "alice", header: bearer("sk-a").header}, who{user: "bob", header: bearer("sk-a").header}, false},
		"a user named like a key":            {bearer("sk-a"), who{user: "Bearer sk-a"}, false},
		"a user named like an address":       {who{address: "1.1.1.1"}, who{user: "1.1.1.1"}, false},
		"behind a trusted proxy":             {who{client: "1.1.1.1", header: []string{"X-Forwarded-For", "1.1.1.1"}}, who{client: "1.1.1.1", header: []string{"X-Forwarded-For", "1.1.1.1"}}, true},
		"another one behind a trusted proxy": {who{client: "1.1.1.1", header: []string{"X-Forwarded-For", "1.1.1.1"}}, who{client: "2.2.2.2", header: []string{"X-Forwarded-For", "2.2.2.2"}}, false},
		"behind another proxy":               {key("X-Forwarded-For", "1.1.1.1"), key("X-Forwarded-For", "1.1.1.1"), false},
		"behind another proxy (Forwarded)":   {key("Forwarded", "for=1.1.1.1"), key("Forwarded", "for=1.1.1.1"), false},
		"a key behind another proxy":         {key("X-Forwarded-For", "1.1.1.1", "Api-Key", "k"), key("X-Forwarded-For", "2.2.2.2", "Api-Key", "k"), true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				if got := shares(f, c.one, c.other); got != c.same {
					t.Errorf("shared: %v, want %v", got, c.same)
				}
			})
		})
	}
}

func TestEveryDummyKeyIsNoKey(t *testing.T) {
	for _, dummy := range []string{"", "ollama", "EMPTY", "none", "dummy", "lm-studio", "sk-no-key-required"} {
		for _, value := range []string{dummy, "Bearer " + dummy, "bearer " + strings.ToUpper(dummy)} {
			inBubble(t, nil, func(f *fixture) {
				one, other := key("Authorization", value), key("Authorization", value)
				one.address, other.address = "1.1.1.1", "2.2.2.2"
				if shares(f, one, other) {
					t.Errorf("%q makes strangers one caller", value)
				}
			})
		}
	}
}

func TestConfiguredIdentity(t *testing.T) {
	configured := func(c *handler.Config, _ *session.Limits) { c.Identity = "{http.vars.tenant}" }
	serve := func(f *fixture, tenant, key, body string) *response {
		w := newResponse()
		r := request(context.Background(), w, body, "Authorization", "Bearer "+key)
		if tenant != "" {
			caddyhttp.SetVar(r.Context(), "tenant", tenant)
		}
		f.serve(w, r)
		return w
	}
	t.Run("it is the caller", func(t *testing.T) {
		inBubble(t, configured, func(f *fixture) {
			body := ask(map[string]any{"metadata": inSession("s")})
			for _, c := range []struct{ tenant, key, code, want string }{
				{"a", "sk-1", "x = 1\nprint x", "1"}, {"a", "sk-2", "print x", "1"}, {"b", "sk-1", "print x", "NameError: x"},
			} {
				f.upstream.then(runs(c.code), says("done"))
				serve(f, c.tenant, c.key, body).says(t, "stop", "done")
				seen := f.upstream.asked()
				if got := seen[len(seen)-1].messages(t)[2]["content"]; got != c.want {
					t.Errorf("%s with %s: %q, want %q", c.tenant, c.key, got, c.want)
				}
			}
		})
	})
	t.Run("empty with the tool", func(t *testing.T) {
		inBubble(t, configured, func(f *fixture) {
			serve(f, "", "sk-1", ask(nil)).refuses(t, http.StatusUnauthorized, "authentication_error")
			f.upstream.wants(0)
		})
	})
	t.Run("empty without the tool", func(t *testing.T) {
		inBubble(t, configured, func(f *fixture) {
			f.upstream.then(says("hello"))
			serve(f, "", "sk-1", ask(map[string]any{"tools": nil})).says(t, "stop", "hello")
		})
	})
	t.Run("empty under offer always", func(t *testing.T) {
		edit := func(c *handler.Config, l *session.Limits) {
			configured(c, l)
			c.Offer = handler.OfferAlways
		}
		inBubble(t, edit, func(f *fixture) {
			f.upstream.then(says("hello"))
			serve(f, "", "sk-1", ask(map[string]any{"tools": nil})).says(t, "stop", "hello")
			if tools := f.upstream.asked()[0].member(t, "tools"); tools != nil {
				t.Errorf("the tool was given to nobody: %v", tools)
			}
		})
	})
}

func TestUntrustedProxyIsWarnedOfOnce(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	edit := func(c *handler.Config, _ *session.Limits) { c.Logger = zap.New(core) }
	inBubble(t, edit, func(f *fixture) {
		proxied := key("X-Forwarded-For", "1.1.1.1")
		shares(f, proxied, proxied)
		if n := logs.FilterMessageSnippet("trusted_proxies").Len(); n != 1 {
			t.Errorf("%d warnings", n)
		}
	})
}

func TestSessionIDOfAPlaceholder(t *testing.T) {
	edit := func(c *handler.Config, _ *session.Limits) { c.SessionID = "{http.request.header.X-Session}" }
	say := func(f *fixture, code, header string, fields map[string]any) any {
		f.upstream.then(runs(code), says("done"))
		f.post(ask(fields), "Authorization", "Bearer sk-a", "X-Session", header).says(t, "stop", "done")
		seen := f.upstream.asked()
		for _, a := range seen {
			if a.header.Get("X-Session") != "" {
				t.Errorf("the header went upstream")
			}
		}
		return seen[len(seen)-1].messages(t)[2]["content"]
	}
	inBubble(t, edit, func(f *fixture) {
		say(f, "x = 1", "one", nil)
		if got := say(f, "print x", "one", nil); got != "1" {
			t.Errorf("the same header: %v", got)
		}
		if got := say(f, "print x", "two", nil); got == "1" {
			t.Errorf("another header: %v", got)
		}
		if got := say(f, "print x", "two", map[string]any{"metadata": inSession("one")}); got != "1" {
			t.Errorf("the body's own session_id: %v", got)
		}
		f.upstream.then(says("hello"))
		f.post(ask(map[string]any{"tools": nil}), "X-Session", "one").says(t, "stop", "hello")
		seen := f.upstream.asked()
		if seen[len(seen)-1].header.Get("X-Session") != "" {
			t.Error("the header went upstream with a request without the tool")
		}
		f.post(ask(nil), "X-Session", strings.Repeat("x", 513)).refuses(t, http.StatusBadRequest, "512")
	})
}

func TestSessionHeaderStaysHereWhateverTheBodyIs(t *testing.T) {
	h := handler.New(handler.Config{Logger: zap.NewNop(), ToolName: "run_python", SessionID: "{header.X-Session}"})
	for _, body := range []string{``, `{"messages":[]}`, `{"messages":`, `{"messages":"session_id"`, `{"metadata":{"session_id":"s"}}`} {
		r := httptest.NewRequest(http.MethodPost, "/chat/completions", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Session", "one")
		err := h.ServeHTTP(httptest.NewRecorder(), r, caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
			if r.Header.Get("X-Session") != "" {
				t.Errorf("the header went upstream with %q", body)
			}
			return nil
		}))
		if err != nil {
			t.Error(err)
		}
	}
}

func TestBodiesThatCannotBeRead(t *testing.T) {
	edit := func(c *handler.Config, _ *session.Limits) { c.MaxBody = 1000 }
	post := func(f *fixture, body io.Reader) *response {
		w := newResponse()
		r := httptest.NewRequest(http.MethodPost, "/chat/completions", body)
		if d, ok := body.(declared); ok {
			r.ContentLength = int64(d.length)
		}
		r.Header.Set("Content-Type", "application/json")
		f.serve(w, caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{}))
		return w
	}
	long := ask(map[string]any{"x": strings.Repeat("x", 1000)})
	t.Run("too long by its length", func(t *testing.T) {
		inBubble(t, edit, func(f *fixture) {
			post(f, strings.NewReader(long)).refuses(t, http.StatusRequestEntityTooLarge, "1000 bytes")
		})
	})
	t.Run("too long without a length", func(t *testing.T) {
		inBubble(t, edit, func(f *fixture) {
			post(f, io.MultiReader(strings.NewReader(long))).refuses(t, http.StatusRequestEntityTooLarge, "1000 bytes")
		})
	})
	t.Run("broken off", func(t *testing.T) {
		inBubble(t, edit, func(f *fixture) {
			post(f, io.MultiReader(strings.NewReader("{"), failing{errGone})).refuses(t, http.StatusBadRequest, "could not be read")
		})
	})
	t.Run("broken off before its last byte", func(t *testing.T) {
		inBubble(t, edit, func(f *fixture) {
			body := ask(nil)
			r := io.MultiReader(strings.NewReader(body[:len(body)-1]), failing{errGone})
			post(f, declared{r, len(body)}).refuses(t, http.StatusBadRequest, "could not be read")
		})
	})
	t.Run("longer than declared", func(t *testing.T) {
		inBubble(t, edit, func(f *fixture) {
			body := ask(nil)
			post(f, declared{strings.NewReader(body + "\n\n"), len(body)}).refuses(t, http.StatusBadRequest, "could not be read")
		})
	})
	t.Run("refused by Caddy", func(t *testing.T) {
		inBubble(t, edit, func(f *fixture) {
			tooLarge := caddyhttp.Error(http.StatusRequestEntityTooLarge, errors.New("request_body"))
			if w := post(f, failing{tooLarge}); !errors.Is(w.err, tooLarge) || w.status != 0 {
				t.Errorf("error %v, status %d", w.err, w.status)
			}
		})
	})
}

// declared is a body with the length that its request declares.
type declared struct {
	io.Reader
	length int
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
