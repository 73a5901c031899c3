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

package handler

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire"
)

// bodyDigests are headers that speak of the bytes of the client's body.
var bodyDigests = []string{"Content-Md5", "Digest", "Content-Digest", "Repr-Digest"}

// ownHeaders are headers of the client's request that are not for the requests
// made in its place: the answers are read here, the bodies are others, and one
// key must not stand for several of them. Their names are canonical.
var ownHeaders = append([]string{"Accept-Encoding", "Expect", "Idempotency-Key", "X-Idempotency-Key"}, bodyDigests...)

// setBody gives r a body. A length of -1 leaves it open.
func setBody(r *http.Request, p *wire.Segments, length int64) {
	r.Body = p.NewReader()
	r.GetBody = func() (io.ReadCloser, error) { return p.NewReader(), nil }
	if length >= 0 {
		r.TransferEncoding, r.Trailer = nil, nil
	}
	if length >= 0 && length != r.ContentLength {
		r.Header["Content-Length"] = []string{strconv.FormatInt(length, 10)}
	}
	r.ContentLength = length
}

// original is the client's request as it came. The handlers behind us may
// change a request for good, as rewrite and request_header do, and route
// groups are satisfied once: each turn starts from what was at first. The
// request itself stays the same one, since placeholders refer to it.
type original struct {
	r      *http.Request
	url    url.URL
	header http.Header
	method string
	uri    string
	groups map[string]struct{} // the live one, nil when there is none
	marked map[string]struct{} // what was in it
	vars   map[string]any      // the live variables, nil when there are none
}

// routeGroups is the key under which Caddy keeps the groups of routes that
// have been satisfied.
const routeGroups = caddy.CtxKey("route_group")

func newOriginal(r *http.Request) *original {
	o := &original{r: r, url: *r.URL, header: r.Header.Clone(), method: r.Method, uri: r.RequestURI}
	if groups, ok := r.Context().Value(routeGroups).(map[string]struct{}); ok {
		o.groups, o.marked = groups, maps.Clone(groups)
	}
	o.vars, _ = r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	return o
}

// restore undoes what handlers have changed.
func (o *original) restore() {
	*o.r.URL = o.url
	o.r.Method, o.r.RequestURI = o.method, o.uri
	clear(o.r.Header)
	maps.Copy(o.r.Header, o.header.Clone())
	if o.groups != nil {
		clear(o.groups)
		maps.Copy(o.groups, o.marked)
	}
	caddyhttp.SetVar(o.r.Context(), "unhandled", nil)
}

// What can become of a request to the next handler, beside an answer.
var (
	errAborted   = errors.New("the connection to the upstream broke off")
	errUnhandled = errors.New("no handler behind code_interpreter answered the request: is reverse_proxy after it?")
)

// send makes a request with the body and has the answer written to w. It
// returns when the next handler does.
func (o *original) send(ctx context.Context, w http.ResponseWriter, p *wire.Segments, length int64, drop string, next caddyhttp.Handler) error {
	o.restore()
	r, done := o.turn(ctx)
	defer done()
	for _, name := range ownHeaders {
		delete(r.Header, name)
	}
	if drop != "" {
		r.Header.Del(drop)
	}
	setBody(r, p, length)
	shown := p.NewReader() // what the placeholder of the body reads
	defer shown.Close()
	o.r.Body = shown
	err := callNext(w, r, next)
	if unhandled, _ := caddyhttp.GetVar(r.Context(), "unhandled").(bool); err == nil && unhandled {
		return errUnhandled
	}
	return err
}

// turn returns the request of one turn, which has variables of its own, and
// what to call when the next handler has returned. Caddy's variables are a map
// without a lock, and a transport that still dials a connection for one turn,
// which it got elsewhere meanwhile, reads them while the next turn writes. The
// original gets the context too, because placeholders refer to its variables.
func (o *original) turn(ctx context.Context) (r *http.Request, done func()) {
	before := *o.r
	vars := maps.Clone(o.vars)
	if vars != nil {
		ctx = context.WithValue(ctx, caddyhttp.VarsCtxKey, vars)
	}
	r = o.r.WithContext(ctx)
	*o.r = *r
	return r, func() {
		*o.r = before
		maps.Copy(o.vars, vars)
	}
}

// callNext calls the next handler. The panic by which reverse_proxy says that
// an upstream broke off in the middle of an answer becomes an error; others
// are not ours to stop.
func callNext(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) (err error) {
	defer func() {
		if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // the value itself is the signal
			err = errAborted
		} else if p != nil {
			panic(p)
		}
	}()
	return next.ServeHTTP(w, r)
}
