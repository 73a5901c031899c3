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
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// The ports of an E2B sandbox: of its code interpreter, and of its agent, which
// only tells that it is there.
const (
	codePort  = "49999"
	agentPort = "49983"
)

// maxDataBody bounds a data plane request, which is mostly code.
const maxDataBody = 16 << 20

// sandboxHost is a host name of E2B's data plane.
var sandboxHost = regexp.MustCompile(`^(\d{1,5})-([A-Za-z0-9_-]{1,128})(?:[.:]|$)`)

// dataPlane tells which sandbox and port a call is for, when it is for one.
func dataPlane(r *http.Request) (id, port string, ok bool) {
	if id = r.Header.Get("E2b-Sandbox-Id"); id != "" {
		return id, r.Header.Get("E2b-Sandbox-Port"), true
	}
	if match := sandboxHost.FindStringSubmatch(r.Host); match != nil {
		return match[2], match[1], true
	}
	return "", "", false
}

// dataRoutes are the calls of E2B's code interpreter.
func (s *Server) dataRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern string, h func(http.ResponseWriter, *http.Request, *sandbox)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			id, _, _ := dataPlane(r)
			if sb := s.find(id); sb != nil {
				h(w, r, sb)
				return
			}
			goneError(w, id)
		})
	}
	handle("POST /execute", s.execute)
	handle("POST /contexts", s.createContext)
	handle("GET /contexts", s.listContexts)
	handle("POST /contexts/{context}/restart", s.restartContext)
	handle("DELETE /contexts/{context}", s.removeContext)
	handle("GET /health", func(w http.ResponseWriter, _ *http.Request, _ *sandbox) { writeJSON(w, http.StatusOK, "OK") })
	return mux
}

// serveData answers a call of the data plane.
func (s *Server) serveData(w http.ResponseWriter, r *http.Request, id, port string) {
	sb := s.find(id)
	switch {
	case sb == nil:
		goneError(w, id)
		return
	case port == agentPort && r.URL.Path == "/health":
		w.WriteHeader(http.StatusNoContent)
		return
	case port == agentPort:
		noAgentError(w)
		return
	case port != codePort:
		closedPortError(w, id, port)
		return
	case !sb.authorizes(r.Header):
		controlError(w, http.StatusUnauthorized, "neither the header X-Access-Token nor E2B-Traffic-Access-Token carries the sandbox's token")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxDataBody)
	dispatch(s.data, w, r, func(status int) {
		text := http.StatusText(status)
		writeJSON(w, status, map[string]string{"detail": text})
	})
}

// authorizes tells whether a call carries a token of the sandbox's. E2B's SDKs send
// both with an execution, and the one for traffic alone with the other calls.
func (sb *sandbox) authorizes(h http.Header) bool {
	got, want := h.Get("X-Access-Token"), sb.token
	if got == "" {
		got, want = h.Get("E2b-Traffic-Access-Token"), sb.trafficToken
	}
	return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

// goneError is what E2B's proxy says of a sandbox that is not there.
func goneError(w http.ResponseWriter, id string) {
	writeJSON(w, http.StatusBadGateway, struct {
		SandboxID string `json:"sandboxId"`
		Message   string `json:"message"`
		Code      int    `json:"code"`
	}{id, "The sandbox was not found", http.StatusBadGateway})
}

// closedPortError is what E2B's proxy says of a port that nothing listens on.
func closedPortError(w http.ResponseWriter, id, port string) {
	number, err := strconv.Atoi(port)
	if err != nil {
		number = 0
	}
	writeJSON(w, http.StatusBadGateway, struct {
		SandboxID string `json:"sandboxId"`
		Message   string `json:"message"`
		Port      int    `json:"port"`
		Code      int    `json:"code"`
	}{id, "The sandbox is running but port is not open", number, http.StatusBadGateway})
}

// noAgentError answers calls of E2B's agent in the form that its clients read. A
// closed port would make them say that the sandbox has timed out.
func noAgentError(w http.ResponseWriter) {
	writeJSON(w, http.StatusNotImplemented, struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}{"unimplemented", "sandboxes of this machine have no API for files, commands and terminals: run code instead"})
}

// plainError answers with text, as E2B's code interpreter does.
func plainError(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(message)) // a client that has gone is no error
}

// fieldError answers 422 with the object of E2B's web framework.
func fieldError(w http.ResponseWriter, kind, message string, input any, loc ...string) {
	type detail struct {
		Type  string   `json:"type"`
		Loc   []string `json:"loc"`
		Msg   string   `json:"msg"`
		Input any      `json:"input"`
	}
	writeJSON(w, http.StatusUnprocessableEntity, map[string][]detail{
		"detail": {{Type: kind, Loc: append([]string{"body"}, loc...), Msg: message, Input: input}},
	})
}

// jsonKind returns what E2B's web framework calls an error of a field's type, and
// what should be there.
func jsonKind(t reflect.Type) (name, kind string) {
	switch t.Kind() {
	case reflect.Struct:
		return "model_attributes_type", "dictionary or object to extract fields from"
	case reflect.Map:
		return "dict_type", "dictionary"
	case reflect.Bool:
		return "bool_type", "boolean"
	case reflect.Int64:
		return "int_type", "integer"
	default:
		return t.Kind().String() + "_type", t.Kind().String()
	}
}

// readData decodes a data plane body, or answers why not.
func readData(w http.ResponseWriter, body io.Reader, into any) bool {
	err := json.NewDecoder(body).Decode(into)
	var tooLarge *http.MaxBytesError
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return true
	case errors.As(err, &tooLarge):
		plainError(w, http.StatusRequestEntityTooLarge, "The body is larger than "+strconv.FormatInt(tooLarge.Limit, 10)+" bytes")
	case errors.As(err, &wrongType):
		name, kind := jsonKind(wrongType.Type)
		var loc []string
		if wrongType.Field != "" {
			loc = strings.Split(wrongType.Field, ".")
		}
		fieldError(w, name, "Input should be a valid "+kind, wrongType.Value, loc...)
	default:
		fieldError(w, "json_invalid", "JSON decode error", struct{}{})
	}
	return false
}
