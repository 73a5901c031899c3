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
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
)

// fills is a chat request without the tool, of about that many bytes, with
// everything in it that re-encoding would change.
func fills(size int) []byte {
	const entry = `{"role":"user" , "content":"\u00e9\u2028 </script> & \/ \ud83d\ude00 ` + "\u2028é" + `","n":1.50e+3,"big":123456789012345678901234567890, "a":null,"a":1},` + "\n\t"
	var b bytes.Buffer
	b.WriteString(` {"model":"m","temperature":1.0,"messages":[`)
	for b.Len() < size-200 {
		b.WriteString(entry)
	}
	b.WriteString(`{"role":"user","content":""}], "x":[ ],"stream":false}` + "\r\n ")
	return b.Bytes()
}

func TestOtherRequestsPassByteForByte(t *testing.T) {
	u := newUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
	for _, size := range []int{1 << 10, 64 << 10, 64<<10 + 1, 1 << 20, 5 << 20} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d bytes, chunked %v", size, chunked), func(t *testing.T) {
				plain := fills(size)
				before, after, _ := bytes.Cut(plain, []byte(`"temperature"`))
				named := bytes.Join([][]byte{before, []byte(`"metadata": {"session_id":"s"},`), []byte(`"temperature"`), after}, nil)
				kept := bytes.Join([][]byte{before, []byte(`"metadata": {"user":"u"},`), []byte(`"temperature"`), after}, nil)
				both := bytes.Replace(kept, []byte(`{"user"`), []byte(`{"session_id":"s","user"`), 1)
				cases := []struct{ sent, want []byte }{{plain, plain}, {named, plain}, {both, kept}, {kept, kept}}
				if size > 1<<20 {
					cases = cases[:2] // the rest differs by a few bytes
				}
				for _, c := range cases {
					var body io.Reader = bytes.NewReader(c.sent)
					if chunked {
						body = io.MultiReader(body)
					}
					pass(t, g, u, body, c.want, chunked && len(c.sent) == len(c.want))
				}
			})
		}
	}
}

// pass sends a body and looks at what went upstream and what came back.
func pass(t *testing.T, g *gateway, u *upstream, body io.Reader, want []byte, chunked bool) {
	t.Helper()
	s, err := g.client().send(context.Background(), body)
	if err != nil {
		t.Fatal(err)
	}
	defer s.leave()
	defer s.resp.Body.Close()
	back, err := io.ReadAll(s.resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	seen := u.asked()
	if len(seen) != 1 {
		t.Fatalf("%d requests went upstream", len(seen))
	}
	if sha256.Sum256(seen[0].body) != sha256.Sum256(want) {
		t.Errorf("%d bytes went upstream that differ from the %d wanted, the first at %d", len(seen[0].body), len(want), difference(seen[0].body, want))
	}
	if sha256.Sum256(back) != sha256.Sum256(want) {
		t.Errorf("%d bytes came back that differ from the %d wanted", len(back), len(want))
	}
	if seen[0].chunked != chunked {
		t.Errorf("chunked upstream: %v, want %v", seen[0].chunked, chunked)
	}
}

func difference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// What the module only passes on has all that it would have without it:
// informational answers, trailers, and each flush.
func TestOtherAnswersPassUnwrapped(t *testing.T) {
	for name, path := range map[string]string{"chat": "/v1/chat/completions", "another path": "/v1/responses"} {
		t.Run(name, func(t *testing.T) {
			gate := newGate()
			u := newUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Link", "</a>")
				w.WriteHeader(http.StatusEarlyHints)
				w.Header().Set("Trailer", "X-Sum")
				w.Header().Set("Etag", `"one"`)
				w.Header().Set("Content-Type", "text/event-stream")
				for _, text := range []string{"data: one\n\n", "id: 2\nevent: odd\ndata: two\n\n"} {
					_, _ = io.WriteString(w, text)
					_ = http.NewResponseController(w).Flush()
					if !gate.wait(r) {
						return
					}
				}
				w.Header().Set("X-Sum", "42")
			}))
			g := start(t, "encode gzip\nlog\n"+embedded.interpreter(t)+"\n"+u.proxy())
			hints := 0
			ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
				Got1xxResponse: func(int, textproto.MIMEHeader) error { hints++; return nil },
			})
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+path, strings.NewReader(encode(run("none", fields{"tools": nil}))))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept-Encoding", "identity")
			resp, err := g.client().http.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var got strings.Builder
			for _, text := range []string{"data: one\n\n", "id: 2\nevent: odd\ndata: two\n\n"} {
				if _, err := io.CopyN(&got, resp.Body, int64(len(text))); err != nil {
					t.Fatal(err)
				}
				gate.open <- struct{}{}
			}
			if _, err := io.Copy(&got, resp.Body); err != nil {
				t.Fatal(err)
			}
			if hints != 1 || resp.Header.Get("Etag") != `"one"` || resp.Trailer.Get("X-Sum") != "42" || strings.Count(got.String(), "data: ") != 2 {
				t.Errorf("%d early hints, header %v, trailer %v, body %q", hints, resp.Header, resp.Trailer, got.String())
			}
		})
	}
}

func TestOtherRequestsKeepTheirHeader(t *testing.T) {
	u := newModel(t)
	g := start(t, embedded.interpreter(t)+"\n"+u.proxy())
	header := []string{"Accept-Encoding", "br", "Idempotency-Key", "k", "Digest", "sha-256=x", "X-Mine", "1"}
	g.client(header...).ask(run("none", fields{"tools": nil}))
	for _, a := range u.asked() {
		for i := 0; i < len(header); i += 2 {
			if got := a.header.Get(header[i]); got != header[i+1] {
				t.Errorf("%s: %q went upstream, want %q", header[i], got, header[i+1])
			}
		}
	}
}
