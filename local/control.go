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
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"
)

const (
	// defaultTimeout is the life of a sandbox whose creator names none; E2B's.
	defaultTimeout = 15 * time.Second
	// maxTimeout keeps durations from overflowing.
	maxTimeout = 30 * 24 * time.Hour
	// maxControlBody bounds a control plane request.
	maxControlBody = 1 << 20
	// envdVersion is the version of E2B's agent that the answers are shaped after.
	envdVersion = "0.4.0"
)

// newSandbox is the body of a creation.
type newSandbox struct {
	TemplateID string            `json:"templateID"`
	Timeout    *int64            `json:"timeout"` // seconds
	AutoPause  bool              `json:"autoPause"`
	Metadata   map[string]string `json:"metadata"`
	EnvVars    map[string]string `json:"envVars"`
}

// createdSandbox is the answer to a creation and to connect.
type createdSandbox struct {
	TemplateID         string  `json:"templateID"`
	SandboxID          string  `json:"sandboxID"`
	ClientID           string  `json:"clientID"`
	EnvdVersion        string  `json:"envdVersion"`
	EnvdAccessToken    string  `json:"envdAccessToken"`
	TrafficAccessToken string  `json:"trafficAccessToken"`
	Domain             *string `json:"domain"` // none: sandboxes are reached where the control plane is
}

// controlRoutes are the calls of the control plane. E2B's SDKs know two versions
// of some, which mean the same here.
func (s *Server) controlRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, version := range []string{"", "/v2"} {
		mux.HandleFunc("POST "+version+"/sandboxes", s.create)
		mux.HandleFunc("GET "+version+"/sandboxes", s.list)
		mux.HandleFunc("POST "+version+"/sandboxes/{id}/connect", s.withSandbox(s.connect))
	}
	mux.HandleFunc("GET /sandboxes/{id}", s.withSandbox(s.inspect))
	mux.HandleFunc("DELETE /sandboxes/{id}", s.withSandbox(s.remove))
	mux.HandleFunc("POST /sandboxes/{id}/timeout", s.withSandbox(s.setTimeout))
	mux.HandleFunc("POST /sandboxes/{id}/pause", s.withSandbox(s.pause))
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	return mux
}

// serveControl answers a call of the control plane.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	key := []byte(r.Header.Get("X-Api-Key"))
	if s.cfg.APIKey != "" && subtle.ConstantTimeCompare(key, []byte(s.cfg.APIKey)) != 1 {
		controlError(w, http.StatusUnauthorized, "the header X-API-Key carries no key that is known here")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxControlBody)
	dispatch(s.control, w, r, func(status int) { controlError(w, status, http.StatusText(status)) })
}

// create answers POST /sandboxes.
func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var body newSandbox
	if !readControl(w, r, &body) {
		return
	}
	timeout, err := timeoutOf(body.Timeout)
	switch {
	case err != nil:
		controlError(w, http.StatusBadRequest, err.Error())
		return
	case body.TemplateID == "":
		controlError(w, http.StatusBadRequest, "templateID is missing")
		return
	case body.AutoPause:
		controlError(w, http.StatusBadRequest, "autoPause: sandboxes of this machine cannot be paused")
		return
	}
	sb, err := s.take(r.Context())
	if err == nil {
		err = s.handOut(sb, claim{template: body.TemplateID, metadata: body.Metadata, env: body.EnvVars}, timeout)
	}
	switch {
	case err == nil:
	case r.Context().Err() != nil:
		return // nobody listens any more
	case errors.Is(err, errEngineClosed):
		controlError(w, http.StatusServiceUnavailable, "the server is closed")
		return
	default:
		s.log.Error("creating a sandbox", zap.Error(err))
		controlError(w, http.StatusInternalServerError, "the sandbox could not be started")
		return
	}
	if r.Context().Err() != nil {
		sb.end() // its creator has gone and will never name it
		return
	}
	writeJSON(w, http.StatusCreated, sb.created())
}

// connect answers POST /sandboxes/{id}/connect, which extends a sandbox's life and
// never shortens it.
func (s *Server) connect(w http.ResponseWriter, r *http.Request, sb *sandbox) {
	if timeout, ok := readTimeout(w, r); ok {
		sb.extend(timeout, false)
		writeJSON(w, http.StatusOK, sb.created())
	}
}

// setTimeout answers POST /sandboxes/{id}/timeout, which counts from now.
func (s *Server) setTimeout(w http.ResponseWriter, r *http.Request, sb *sandbox) {
	if timeout, ok := readTimeout(w, r); ok {
		sb.extend(timeout, true)
		w.WriteHeader(http.StatusNoContent)
	}
}

// remove answers DELETE /sandboxes/{id}, when nothing of the sandbox is left.
func (s *Server) remove(w http.ResponseWriter, r *http.Request, sb *sandbox) {
	sb.end()
	select {
	case <-sb.gone:
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done():
	}
}

// pause refuses: a bubblewrapped process cannot be stored.
func (s *Server) pause(w http.ResponseWriter, _ *http.Request, _ *sandbox) {
	controlError(w, http.StatusBadRequest, "sandboxes of this machine cannot be paused")
}

// withSandbox looks up the sandbox that a control plane call names.
func (s *Server) withSandbox(h func(http.ResponseWriter, *http.Request, *sandbox)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		sb := s.find(id)
		if sb == nil {
			controlError(w, http.StatusNotFound, fmt.Sprintf("sandbox %q was not found", id))
			return
		}
		h(w, r, sb)
	}
}

// find returns a sandbox that has been handed out, or nil.
func (s *Server) find(id string) *sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sandboxes[id]
}

func (sb *sandbox) created() createdSandbox {
	return createdSandbox{
		TemplateID:         sb.claimed().template,
		SandboxID:          sb.id,
		ClientID:           "local",
		EnvdVersion:        envdVersion,
		EnvdAccessToken:    sb.token,
		TrafficAccessToken: sb.trafficToken,
	}
}

// readTimeout reads the body `{"timeout": seconds}`, or answers why not.
func readTimeout(w http.ResponseWriter, r *http.Request) (time.Duration, bool) {
	var body struct {
		Timeout *int64 `json:"timeout"`
	}
	if !readControl(w, r, &body) {
		return 0, false
	}
	timeout, err := timeoutOf(body.Timeout)
	if err != nil {
		controlError(w, http.StatusBadRequest, err.Error())
		return 0, false
	}
	return timeout, true
}

func timeoutOf(seconds *int64) (time.Duration, error) {
	if seconds == nil {
		return defaultTimeout, nil
	}
	if most := int64(maxTimeout / time.Second); *seconds < 0 || *seconds > most {
		return 0, fmt.Errorf("timeout is %d; it must be 0 to %d seconds", *seconds, most)
	}
	return time.Duration(*seconds) * time.Second, nil
}

// readControl decodes a control plane body, or answers why not.
func readControl(w http.ResponseWriter, r *http.Request, into any) bool {
	err := json.NewDecoder(r.Body).Decode(into)
	var tooLarge *http.MaxBytesError
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return true
	case errors.As(err, &tooLarge):
		controlError(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit))
	case errors.As(err, &wrongType):
		_, kind := jsonKind(wrongType.Type)
		controlError(w, http.StatusBadRequest, fmt.Sprintf("%s is a JSON %s; it must be a %s", cmp.Or(wrongType.Field, "the body"), wrongType.Value, kind))
	default:
		controlError(w, http.StatusBadRequest, "the body is no JSON object: "+err.Error())
	}
	return false
}

// controlError answers with E2B's error object.
func controlError(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{status, message})
}

// writeJSON answers with one JSON value. A client that has gone is no error.
func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// dispatch serves a call by the routes. fail answers where there is none, with
// 404, or with 405 and the header Allow.
func dispatch(mux *http.ServeMux, w http.ResponseWriter, r *http.Request, fail func(status int)) {
	handler, pattern := mux.Handler(r)
	if pattern != "" {
		mux.ServeHTTP(w, r)
		return
	}
	probe := &statusProbe{header: http.Header{}}
	handler.ServeHTTP(probe, r)
	if methods := probe.header.Get("Allow"); methods != "" {
		w.Header().Set("Allow", methods)
	}
	fail(probe.status)
}

// statusProbe takes the status and headers of an answer and drops its body.
type statusProbe struct {
	header http.Header
	status int
}

func (p *statusProbe) Header() http.Header         { return p.header }
func (p *statusProbe) WriteHeader(status int)      { p.status = status }
func (p *statusProbe) Write(b []byte) (int, error) { return len(b), nil }
