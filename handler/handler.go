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

// Package handler is the tool loop: what happens to one chat request that asks
// for the code interpreter. It calls the upstream through the next handler,
// runs the code that the model asks for in the sandbox of the caller's
// session, and gives the client one answer.
package handler

import (
	"errors"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// Offer says which requests get the tool.
type Offer int

const (
	// OfferRequested gives the tool to requests that ask for it.
	OfferRequested Offer = iota
	// OfferAlways gives it to every chat request that it can be given to.
	OfferAlways
)

// Config is what a Handler works by. Every field but Metrics, Identity and
// SessionID has to be set; the defaults are those of the module.
type Config struct {
	// Pool has the sandboxes. The handler does not close it.
	Pool *session.Pool
	// Metrics counts what happens; nil for none.
	Metrics *Metrics
	// Logger gets what an operator has to know.
	Logger *zap.Logger
	// Offer says which requests get the tool.
	Offer Offer
	// ToolName is the name of the function tool at the upstream.
	ToolName string
	// MaxRounds is the number of turns with code of one request.
	MaxRounds int
	// RequestTimeout bounds the whole exchange.
	RequestTimeout time.Duration
	// Keepalive is how long a stream may be silent.
	Keepalive time.Duration
	// MaxOutput is the number of characters of a result that the model gets.
	MaxOutput int
	// MaxBody is the size of a request body in bytes.
	MaxBody int64
	// MaxImages is the size in bytes of all images and charts of one answer.
	MaxImages int64
	// Show gives executed_tools to the client.
	Show bool
	// LogCode puts code and output into debug logs.
	LogCode bool
	// Identity is a placeholder for who the caller is.
	Identity string
	// SessionID is a placeholder for the session of a request that names none.
	SessionID string
}

// Handler handles chat requests. It is safe for concurrent use.
type Handler struct {
	Config
	sessionHeader string // a header that SessionID reads, which stays here
	proxyWarning  warning
}

// headerPlaceholder is a placeholder that stands for a request header, in the
// long and in the short form.
var headerPlaceholder = regexp.MustCompile(`\{(?:http\.request\.)?header\.([^}]+)\}`)

// New returns a handler for the configuration.
func New(c Config) *Handler {
	h := &Handler{Config: c}
	if m := headerPlaceholder.FindStringSubmatch(c.SessionID); m != nil {
		h.sessionHeader = http.CanonicalHeaderKey(m[1])
	}
	return h
}

// ServeHTTP gives a request without the tool to next as it is, but for its
// session id, and carries out the others.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !isChat(r) {
		return next.ServeHTTP(w, r)
	}
	body, err := wire.ReadBody(r.Body, r.ContentLength, h.MaxBody)
	if err != nil {
		return h.unreadable(w, err)
	}
	defer body.Release()
	if h.Offer == OfferRequested && !body.MayConcern() {
		return h.passAsIs(w, r, next, body)
	}
	if err := body.Complete(); err != nil {
		return h.unreadable(w, err)
	}
	req, ok := wire.Scan(body)
	if !ok {
		return h.passAsIs(w, r, next, body)
	}
	if !h.wants(req) {
		return h.pass(w, r, next, req)
	}
	x := &exchange{h: h, w: w, r: r, next: next, req: req}
	switch refusal, run := x.admit(); {
	case refusal != nil:
		return x.refuse(refusal)
	case !run:
		return h.pass(w, r, next, req)
	}
	return x.once()
}

// isChat says whether a request may be ours by all but its body.
func isChat(r *http.Request) bool {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") || r.Body == nil {
		return false
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return false
	}
	header := r.Header.Get("Content-Type")
	if header == "application/json" {
		return true // as it mostly is
	}
	kind, _, err := mime.ParseMediaType(header)
	if errors.Is(err, mime.ErrInvalidMediaParameter) {
		err = nil // servers read such a body as JSON all the same
	}
	return err == nil && (kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json"))
}

// pass hands a request that does not use the tool to next. Only a session id
// is taken out: no upstream has a use for it, and some refuse metadata.
func (h *Handler) pass(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, req *wire.Request) error {
	edited := req.Rewrite(wire.RewriteOptions{Name: h.ToolName})
	if !edited.Changed() {
		return h.passAsIs(w, r, next, req.Body())
	}
	h.dropSessionHeader(r)
	for _, name := range bodyDigests {
		r.Header.Del(name)
	}
	segments := edited.Turn(wire.Turn{})
	setBody(r, segments, segments.Len())
	return next.ServeHTTP(w, r)
}

// passAsIs hands a request to next with the body that came.
func (h *Handler) passAsIs(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, body *wire.Body) error {
	h.dropSessionHeader(r)
	setBody(r, body.Segments(), r.ContentLength)
	return next.ServeHTTP(w, r)
}

func (h *Handler) dropSessionHeader(r *http.Request) {
	if h.sessionHeader != "" {
		r.Header.Del(h.sessionHeader)
	}
}

// unreadable answers a request of which the body cannot be read. What Caddy
// says of it, such as the limit of request_body, is for Caddy to answer.
func (h *Handler) unreadable(w http.ResponseWriter, err error) error {
	var known caddyhttp.HandlerError
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, wire.ErrTooLarge):
		w.Header().Set("Connection", "close")
		return refuse(http.StatusRequestEntityTooLarge, "",
			"The request body is larger than %d bytes. Send less, or ask the operator of the gateway to raise max_body.", h.MaxBody).answer(w)
	}
	return refuse(http.StatusBadRequest, "", "The request body could not be read to its end. Send it again.").answer(w)
}
