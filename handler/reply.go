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
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire"
)

// reply is the answer to the client, streamed or in one piece. Its methods are
// called by one goroutine.
type reply interface {
	// begin says that a stream of the upstream has begun.
	begin(header http.Header) error
	// begun says whether the client has been answered in part.
	begun() bool
	// chunk gives a piece of an answer that a has observed. header is that of
	// an answer in one piece, nil for others.
	chunk(header http.Header, c *wire.Chunk, a *wire.Answer) error
	// hide ends a turn after which another one comes.
	hide(a *wire.Answer)
	// executed tells what runs, or has run: one of executed_tools.
	executed(tool []byte) error
	// finish ends the answer after the last turn.
	finish(res result, o wire.Outcome) error
	// refuse ends it with an error of the upstream. plain says that nothing was
	// done before it.
	refuse(r *response, plain bool) error
	// failure ends it with an error that the upstream reported in a stream.
	failure(object []byte) error
	// fail ends it with an error of our own.
	fail(e *refusal) error
	// flush sends what there is.
	flush() error
	// flushSoon does so in a moment, unless more comes to be sent with it.
	flushSoon() error
	// failed returns why the client cannot be written to.
	failed() error
	// close waits for what the reply has running.
	close()
}

func newReply(x *exchange) reply {
	if x.req.Stream {
		return newStreamed(x)
	}
	return &whole{x: x, w: x.w, completion: wire.Completion{Tools: &x.tools}}
}

// ownAnswer are headers of the upstream's answer that do not hold for ours.
var ownAnswer = []string{
	"Content-Length", "Content-Encoding", "Content-Type", "Transfer-Encoding", "Trailer", "Server", "Date", "Etag", "Last-Modified",
	"Content-Md5", "Digest", "Content-Digest", "Repr-Digest", "Connection", "Keep-Alive",
}

// copyHeader gives the client the headers of the upstream that are for it.
func copyHeader(dst, src http.Header) {
	maps.Copy(dst, src)
	for _, name := range ownAnswer {
		if _, ok := src[name]; ok {
			dst.Del(name)
		}
	}
}

// errorObject makes of an error of the upstream an object with a member
// `error` that clients of streams can read.
func errorObject(r *response) []byte {
	if object, ok := wire.ErrorIn(r.body); ok {
		return object
	}
	for line := range bytes.Lines(r.body) { // of events, in spite of the status
		if data, found := bytes.CutPrefix(line, []byte("data:")); found {
			if object, ok := wire.ErrorIn(data); ok {
				return object
			}
		}
	}
	if answers(r.status) {
		return wire.ErrorObject("The upstream answered with something that is no chat completion.", "upstream_error", "")
	}
	text := http.StatusText(r.status) // "" for those that only some proxies know, such as 520
	status := strings.TrimSpace(fmt.Sprintf("%d %s", r.status, text))
	return wire.ErrorObject("The upstream answered with status "+status+".", "upstream_error", strings.ToLower(strings.ReplaceAll(text, " ", "_")))
}

// whole is an answer in one piece.
type whole struct {
	x          *exchange
	w          http.ResponseWriter
	completion wire.Completion
}

func (*whole) begin(http.Header) error                            { return nil }
func (*whole) begun() bool                                        { return false }
func (*whole) chunk(http.Header, *wire.Chunk, *wire.Answer) error { return nil }
func (*whole) executed([]byte) error                              { return nil }
func (*whole) flush() error                                       { return nil }
func (*whole) flushSoon() error                                   { return nil }
func (*whole) failed() error                                      { return nil }
func (*whole) close()                                             {}
func (n *whole) hide(a *wire.Answer)                              { n.completion.Hide(a) }

func (n *whole) finish(res result, o wire.Outcome) error {
	body := n.completion.Final(res.whole, res.answer, o)
	n.x.settle(&answered{header: res.header, body: body})
	copyHeader(n.w.Header(), res.header)
	return writeJSON(n.w, http.StatusOK, body)
}

// refuse gives an error as it came. What is no error by its status, such as a
// redirect, would have the client take it for an answer to its own request.
func (n *whole) refuse(r *response, plain bool) error {
	n.x.settle(nil)
	if plain || r.status >= http.StatusBadRequest {
		copyHeader(n.w.Header(), r.header)
		for _, name := range []string{"Content-Type", "Content-Encoding"} {
			if values := r.header[name]; len(values) > 0 {
				n.w.Header()[name] = values
			}
		}
		noEvents(n.w.Header(), r.status)
		n.w.WriteHeader(r.status)
		_, err := n.w.Write(n.told(r.body))
		return err
	}
	return writeJSON(n.w, http.StatusBadGateway, n.told(errorObject(r)))
}

func (n *whole) failure(object []byte) error {
	n.x.settle(nil)
	return writeJSON(n.w, http.StatusBadGateway, n.told(object))
}

func (n *whole) fail(e *refusal) error {
	n.x.settle(nil)
	return e.write(n.w, n.told(e.object()))
}

// told adds to an error, if it is an object, what has been run before it: the
// client has to know what a second request would run again.
func (n *whole) told(object []byte) []byte {
	executed := n.x.log.shown()
	body := bytes.TrimSpace(object)
	if executed == nil || len(body) == 0 || body[0] != '{' || bytes.IndexByte(body, '"') < 0 || !json.Valid(body) {
		return object
	}
	return slices.Concat(body[:len(body)-1], []byte(`,"executed_tools":`), executed, []byte("}"))
}
