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

package codeinterpreter

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

func init() {
	caddy.RegisterModule(adminAPI{})
}

// adminAPI is a module that shows sandboxes and sessions at Caddy's admin
// endpoint, and ends them:
//
//	GET    /code_interpreter/stats              numbers, limits and health of each backend
//	GET    /code_interpreter/sessions           sandboxes and their sessions
//	GET    /code_interpreter/sessions/{id}      one of them
//	DELETE /code_interpreter/sessions/{id}      ends it, in use or not
//	DELETE /code_interpreter/identities/{hash}  ends all of a caller
//	POST   /code_interpreter/drain?backend={id} ends all of a backend, those in use when their request ends
//
// Callers and sessions are keyed hashes, in the short form that access log and
// traces have too. What they are named, and what they run, is not shown.
type adminAPI struct{}

// CaddyModule returns the Caddy module information.
func (adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.code_interpreter",
		New: func() caddy.Module { return new(adminAPI) },
	}
}

const adminPath = "/code_interpreter/"

// Routes returns the routes of the API.
func (a adminAPI) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		route("stats", methods{http.MethodGet: a.stats}),
		route("sessions", methods{http.MethodGet: a.sessions}),
		route("sessions/{id}", methods{http.MethodGet: a.session, http.MethodDelete: a.endSession}),
		route("identities/{hash}", methods{http.MethodDelete: a.endIdentity}),
		route("drain", methods{http.MethodPost: a.drain}),
	}
}

// methods are what can be done with a path. The result is written as JSON.
type methods map[string]func(r *http.Request) (any, error)

func route(path string, m methods) caddy.AdminRoute {
	return caddy.AdminRoute{Pattern: adminPath + path, Handler: caddy.AdminHandlerFunc(m.serve)}
}

func (m methods) serve(w http.ResponseWriter, r *http.Request) error {
	do, ok := m[r.Method]
	if !ok {
		return apiError(http.StatusMethodNotAllowed, "method %s is not allowed here", r.Method)
	}
	result, err := do(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(result); err != nil {
		return caddy.APIError{HTTPStatus: http.StatusInternalServerError, Err: err}
	}
	return nil
}

func apiError(status int, format string, args ...any) error {
	return caddy.APIError{HTTPStatus: status, Err: fmt.Errorf(format, args...)}
}

// sessionInfo is a sandbox and its session as operators see it.
type sessionInfo struct {
	ID         string        `json:"id"` // session, or sandbox for one without a session
	Session    string        `json:"session,omitempty"`
	Identity   string        `json:"identity"`
	Sandbox    string        `json:"sandbox,omitempty"`
	Backend    string        `json:"backend"`
	Engine     string        `json:"engine"`
	Kind       string        `json:"kind"` // kindSession or kindRequest
	State      session.State `json:"state"`
	Found      bool          `json:"found_again"`
	Created    time.Time     `json:"created,omitzero"`
	LastUsed   time.Time     `json:"last_used,omitzero"`
	Requests   int           `json:"requests"`
	Waiting    int           `json:"waiting"`
	Executions int           `json:"executions"`
}

const (
	kindSession = "session"
	kindRequest = "request" // the sandbox of a request without a session
)

func (b *backend) describe(i session.Info) sessionInfo {
	s := sessionInfo{
		ID: i.SandboxID, Identity: session.Short(i.Identity), Sandbox: i.SandboxID,
		Backend: b.id, Engine: b.engine, Kind: kindRequest, State: i.State, Found: i.Found,
		Created: i.Created, LastUsed: i.LastUsed, Requests: i.Requests, Waiting: i.Waiting, Executions: i.Executions,
	}
	if i.Key != "" {
		s.Session = session.Short(i.Key)
		s.ID, s.Kind = s.Session, kindSession
	}
	return s
}

// named says whether a sandbox is the one that an id stands for: its session,
// in short or in full, or itself.
func named(i session.Info, id string) bool {
	return id != "" && (id == i.SandboxID || i.Key != "" && (id == i.Key || id == session.Short(i.Key)))
}

func (adminAPI) sessions(*http.Request) (any, error) {
	list := []sessionInfo{}
	for _, b := range fleet.all() {
		for _, i := range b.pool.Sandboxes() {
			list = append(list, b.describe(i))
		}
	}
	return list, nil
}

func (adminAPI) session(r *http.Request) (any, error) {
	id := r.PathValue("id")
	for _, b := range fleet.all() {
		for _, i := range b.pool.Sandboxes() {
			if named(i, id) {
				return b.describe(i), nil
			}
		}
	}
	return nil, errNoSession(id)
}

func errNoSession(id string) error {
	return apiError(http.StatusNotFound, "no session or sandbox %q in this process: GET %ssessions lists them", id, adminPath)
}

// ended is the answer to what ends sandboxes.
type ended struct {
	Ended int `json:"ended"`
}

func (adminAPI) endSession(r *http.Request) (any, error) {
	id := r.PathValue("id")
	n, err := end(func(i session.Info) bool { return named(i, id) })
	if errors.Is(err, errNoMatch) {
		err = errNoSession(id)
	}
	return ended{n}, err
}

func (adminAPI) endIdentity(r *http.Request) (any, error) {
	hash := r.PathValue("hash")
	n, err := end(func(i session.Info) bool { return hash == i.Identity || hash == session.Short(i.Identity) })
	if errors.Is(err, errNoMatch) {
		err = apiError(http.StatusNotFound, "no sandbox of an identity %q in this process: GET %ssessions lists them", hash, adminPath)
	}
	return ended{n}, err
}

var errNoMatch = errors.New("no sandbox matches")

// end ends what matches in all backends.
func end(match func(session.Info) bool) (int, error) {
	n := 0
	for _, b := range fleet.all() {
		n += b.pool.End(match)
	}
	if n == 0 {
		return 0, errNoMatch
	}
	return n, nil
}

// drained is the answer to a drain.
type drained struct {
	Ended int `json:"ended"` // idle ones
	Later int `json:"later"` // in use; they end when their last request has
}

// drain ends the sandboxes of a backend, which goes on with new ones.
func (adminAPI) drain(r *http.Request) (any, error) {
	id := r.URL.Query().Get("backend")
	if id == "" {
		return nil, apiError(http.StatusBadRequest, "backend is missing: POST %sdrain?backend=<id>, with an id of GET %[1]sstats", adminPath)
	}
	var (
		result drained
		known  bool
	)
	for _, b := range fleet.all() {
		if b.id == id {
			known = true
			now, later := b.pool.Recycle()
			result.Ended += now
			result.Later += later
		}
	}
	if !known {
		return nil, apiError(http.StatusNotFound, "no backend %q: GET %sstats lists them", id, adminPath)
	}
	return result, nil
}

// Interface guard
var _ caddy.AdminRouter = adminAPI{}
