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

// Package sandboxes is a server that speaks as much of the E2B protocol as a
// gateway needs, and runs nothing: every program prints 42 at once.
package sandboxes

import (
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// output is what every program prints.
const output = `{"type":"number_of_executions","execution_count":1}
{"type":"stdout","text":"42\n","timestamp":"2026-01-01T00:00:00Z"}
{"type":"end_of_execution"}
`

// Server is both the control plane and the data plane. It is an http.Handler
// and safe for concurrent use.
type Server struct {
	delay time.Duration
	mux   http.ServeMux
	made  atomic.Int64

	// Executions counts the programs, Alive the sandboxes that are not deleted.
	Executions, Alive atomic.Int64
}

// New returns a server on which the creation of a sandbox takes delay.
func New(delay time.Duration) *Server {
	s := &Server{delay: delay}
	for _, version := range []string{"", "/v2"} {
		s.mux.HandleFunc("POST "+version+"/sandboxes", s.create)
		s.mux.HandleFunc("GET "+version+"/sandboxes", s.list)
	}
	s.mux.HandleFunc("POST /sandboxes/{id}/timeout", s.extend)
	s.mux.HandleFunc("DELETE /sandboxes/{id}", s.remove)
	s.mux.HandleFunc("POST /execute", s.execute)
	return s
}

// ServeHTTP answers a call of either plane.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	if s.delay > 0 {
		timer := time.NewTimer(s.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	s.Alive.Add(1)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"sandboxID":"sandbox`+strconv.FormatInt(s.made.Add(1), 10)+`","templateID":"bench","clientID":"bench","envdVersion":"0.2.0","envdAccessToken":"bench"}`)
}

// list knows no sandbox of another process, which is all that is asked for.
func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "[]")
}

func (s *Server) extend(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func (s *Server) remove(w http.ResponseWriter, _ *http.Request) {
	s.Alive.Add(-1)
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) execute(w http.ResponseWriter, r *http.Request) {
	// The code is of no interest, but it has to have arrived.
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, "the code did not arrive", http.StatusBadRequest)
		return
	}
	s.Executions.Add(1)
	w.Header().Set("Content-Type", "application/x-ndjson")
	_, _ = io.WriteString(w, output)
}
