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

package local

import (
	"context"
	"errors"
	"net/http"
)

// Transport returns a RoundTripper that calls the server in process and behaves
// like a connection: a response is there at the handler's first write or flush,
// each write can be read at once and waits until it has been, closing the body
// ends the handler's context, and a handler that panics breaks the body.
func (s *Server) Transport() http.RoundTripper { return &transport{server: s, handler: s} }

type transport struct {
	server  *Server // counts the handlers
	handler http.Handler
}

// errBrokenAnswer is what a reader sees of a handler that panicked.
var errBrokenAnswer = errors.New("the connection was closed in the middle of the answer")

// RoundTrip serves the request. As http.RoundTripper asks for, it closes the
// request's body and leaves the request alone otherwise.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.server.join() {
		closeBody(r)
		return nil, errEngineClosed
	}
	if err := r.Context().Err(); err != nil {
		t.server.work.Done()
		closeBody(r)
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	a := newAnswer(r, cancel)
	go func() {
		defer t.server.work.Done()
		defer cancel()
		defer closeBody(r)
		// Who waits for more to read, or for it to be read, hears of the end at once.
		defer context.AfterFunc(ctx, func() { a.body.CloseWithError(context.Cause(ctx)) })()
		a.serve(t.handler, serverRequest(ctx, r), t.server.log)
	}()
	select {
	case <-a.ready:
	case <-ctx.Done():
		select {
		case <-a.ready: // both: what the handler said counts
		default:
			return nil, context.Cause(ctx)
		}
	}
	return a.response, a.err
}

// serverRequest turns a client's request into what a handler gets.
func serverRequest(ctx context.Context, r *http.Request) *http.Request {
	in := r.Clone(ctx)
	in.RequestURI = r.URL.RequestURI()
	in.RemoteAddr = "127.0.0.1:0"
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/1.1", 1, 1
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // the client's own, which has been read
	}
}
