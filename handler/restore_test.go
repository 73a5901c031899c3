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
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// meddling is a chain that changes the request as rewrite, request_header and
// route groups do.
func meddling(next reply) reply {
	return func(w http.ResponseWriter, r *http.Request) error {
		r.URL.Path = "/rewritten" + r.URL.Path
		r.URL.RawQuery += "&again"
		r.RequestURI = "/rewritten"
		r.Method = http.MethodPut
		r.Header.Add("X-Added", "a")
		r.Header["X-Mine"][0] = "changed"
		r.Header.Del("X-Mine")
		groups := r.Context().Value(caddy.CtxKey("route_group")).(map[string]struct{})
		if _, done := groups["group1"]; done {
			return nothing(w, r)
		}
		groups["group1"] = struct{}{}
		return next(w, r)
	}
}

func TestEveryTurnSeesTheSameRequest(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(meddling(runs("say 1")), meddling(runs("say 2")), meddling(fails(http.StatusServiceUnavailable)), meddling(says("done")))
		f.post(ask(nil), "X-Mine", "1", "Accept-Encoding", "gzip", "Idempotency-Key", "k", "Digest", "d", "Expect", "100-continue").says(t, "stop", "done")
		seen := f.upstream.asked()
		if len(seen) != 4 {
			t.Fatalf("%d requests", len(seen))
		}
		for i, a := range seen {
			if a.url.String() != "/v1/chat/completions?q=1" || a.method != http.MethodPost || a.uri != "/v1/chat/completions?q=1" {
				t.Errorf("turn %d: %s %s (%s)", i+1, a.method, a.url.String(), a.uri)
			}
			if a.length != int64(len(a.body)) {
				t.Errorf("turn %d: Content-Length %d for %d bytes", i+1, a.length, len(a.body))
			}
			a.header.Del("Content-Length")
			want := http.Header{"Content-Type": {"application/json"}, "X-Mine": {"1"}}
			if !reflect.DeepEqual(a.header, want) {
				t.Errorf("turn %d: header %v", i+1, a.header)
			}
		}
	})
}

func TestRequestIsRestoredAfterwards(t *testing.T) {
	for name, last := range map[string]reply{"answered": says("done"), "failed": fails(http.StatusBadRequest), "aborted": broken("{")} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(meddling(runs("say hi")), meddling(last))
				f.upstream.always = meddling(last)
				w := newResponse()
				r := request(context.Background(), w, ask(nil), "X-Mine", "1", "Accept-Encoding", "gzip")
				header := r.Header.Clone()
				f.serve(w, r)
				if r.URL.String() != "/v1/chat/completions?q=1" || r.Method != http.MethodPost || r.RequestURI != "/v1/chat/completions?q=1" {
					t.Errorf("%s %s (%s)", r.Method, r.URL, r.RequestURI)
				}
				if !maps.EqualFunc(r.Header, header, func(a, b []string) bool { return reflect.DeepEqual(a, b) }) {
					t.Errorf("header %v, want %v", r.Header, header)
				}
				if groups := r.Context().Value(caddy.CtxKey("route_group")).(map[string]struct{}); len(groups) != 0 {
					t.Errorf("groups %v", groups)
				}
			})
		})
	}
}

// A server that prepares its requests differently has no groups, and works.
func TestRequestWithoutRouteGroups(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("say hi"), says("done"))
		w := newResponse()
		r := request(context.Background(), w, ask(nil))
		r = r.WithContext(context.WithValue(r.Context(), caddy.CtxKey("route_group"), "something else"))
		f.serve(w, r)
		w.says(t, "stop", "done")
	})
}

func TestOtherRequestsPassUntouched(t *testing.T) {
	plain := `{"model":"m","messages":[{"role":"user","content":"A\u00e9 < > &"}],"temperature":1.0e0,"x":12345678901234567890}`
	for name, c := range map[string]struct {
		method, path, contentType, encoding, body, want string
	}{
		"without the tool":     {"POST", "/v1/chat/completions", "application/json", "", plain, plain},
		"another path":         {"POST", "/v1/responses", "application/json", "", ask(nil), ask(nil)},
		"another content type": {"POST", "/v1/chat/completions", "text/plain", "", ask(nil), ask(nil)},
		"encoded":              {"POST", "/v1/chat/completions", "application/json", "gzip", ask(nil), ask(nil)},
		"no JSON":              {"POST", "/v1/chat/completions", "application/json", "", `{"tools": [{"type": "code_interpreter"}],`, `{"tools": [{"type": "code_interpreter"}],`},
		"a byte order mark":    {"POST", "/v1/chat/completions", "application/json", "", "\ufeff" + ask(nil), "\ufeff" + ask(nil)},
		"PUT":                  {"PUT", "/v1/chat/completions", "application/json", "", ask(nil), ask(nil)},
		"session_id": {
			"POST", "/v1/chat/completions", "application/json", "",
			`{"model":"m", "metadata": {"session_id": "s", "user": 1 }, "messages": [ ]}`, `{"model":"m", "metadata": {"user": 1 }, "messages": [ ]}`,
		},
		"session_id alone": {
			"POST", "/v1/chat/completions", "application/json", "",
			`{"model":"m", "metadata": {"session_id": "s"}, "messages": [ ]}`, `{"model":"m", "messages": [ ]}`,
		},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inBubble(t, nil, func(f *fixture) {
					w := newResponse()
					f.upstream.then(func(given http.ResponseWriter, _ *http.Request) error {
						if given != http.ResponseWriter(w) {
							t.Errorf("the response goes through %T", given)
						}
						return nil
					})
					r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
					r.Header.Set("Content-Type", c.contentType)
					r.Header.Set("Accept-Encoding", "br")
					if c.encoding != "" {
						r.Header.Set("Content-Encoding", c.encoding)
					}
					if chunked {
						r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(strings.NewReader(c.body)), -1, []string{"chunked"}
					}
					f.serve(w, caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{}))
					seen := f.upstream.asked()
					if len(seen) != 1 {
						t.Fatalf("%d requests", len(seen))
					}
					if seen[0].body != c.want {
						t.Errorf("the body is\n%s, want\n%s", seen[0].body, c.want)
					}
					if c.body == c.want && chunked != (seen[0].length == -1) {
						t.Errorf("the length is %d", seen[0].length)
					}
					if seen[0].header.Get("Accept-Encoding") != "br" {
						t.Errorf("the header is %v", seen[0].header)
					}
				})
			})
		}
	}
}

// A server that reads the body as JSON would get a tool and a session id that
// are not for it.
func TestContentTypeOfJSON(t *testing.T) {
	for _, kind := range []string{
		"application/json", "Application/JSON; charset=utf-8", "application/json; charset", "application/json; charset=utf-8; =", "application/vnd.api+json",
	} {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(says("hello"))
			w := newResponse()
			r := request(context.Background(), w, ask(map[string]any{"metadata": inSession("s")}))
			r.Header.Set("Content-Type", kind)
			f.serve(w, r)
			w.says(t, "stop", "hello")
			if body := f.upstream.asked()[0].body; strings.Contains(body, "code_interpreter") || strings.Contains(body, "session_id") {
				t.Errorf("%q went upstream as it was: %s", kind, body)
			}
		})
	}
}

func TestHandlerErrorOfAPassedRequestIsReturned(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(unreachable)
		w := f.post(ask(map[string]any{"tools": nil}))
		if w.err == nil || w.status != 0 {
			t.Errorf("error %v, status %d", w.err, w.status)
		}
	})
}

// Matchers behind the directive choose an upstream by it.
func TestPlaceholderOfTheBodyHasThatOfTheTurn(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		reads := func(next reply) reply {
			return func(w http.ResponseWriter, r *http.Request) error {
				repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
				seen, _ := repl.GetString("http.request.body")
				asked := f.upstream.asked()
				if sent := asked[len(asked)-1].body; seen != sent {
					t.Errorf("turn %d: the placeholder has %q of %q", len(asked), seen, sent)
				}
				return next(w, r)
			}
		}
		f.upstream.then(reads(runs("x = 1")), reads(says("done")))
		f.post(ask(nil)).says(t, "stop", "done")
	})
}
