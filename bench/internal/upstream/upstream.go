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

// Package upstream is a model server that answers at once and by a script. It
// costs as little as it can, so that what stands in front of it shows.
package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Headers of the load generator that the server checks a body by.
const (
	// SizeHeader has the number of bytes that the body has to have.
	SizeHeader = "X-Bench-Size"
	// SumHeader has the checksum (Castagnoli, hexadecimal) of the body.
	SumHeader = "X-Bench-Sum"
	// FillHeader has the one capital letter that the body may consist of
	// where it has capital letters.
	FillHeader = "X-Bench-Fill"
)

// bufferSize is that of the reads, and of the part of a body that is looked at.
const bufferSize = 256 << 10

// Server is the mock model. It is an http.Handler and safe for concurrent use.
type Server struct {
	buffers sync.Pool

	// Requests and Bytes count what has arrived.
	Requests, Bytes atomic.Int64
	// Wrong counts bodies that arrived other than they were sent.
	Wrong atomic.Int64
	// Open is the number of requests that are being answered.
	Open atomic.Int64
}

// New returns a server.
func New() *Server {
	return &Server{buffers: sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}}
}

// ServeHTTP answers chat requests by their script and all others with a short
// document.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Requests.Add(1)
	s.Open.Add(1)
	defer s.Open.Add(-1)
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		s.other(w, r)
		return
	}
	buffer := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buffer)
	head, err := readHead(r.Body, *buffer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	script, stream, err := parseScript(head)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if script.Early {
		s.early(w, r, head, *buffer)
		return
	}
	check := newCheck(r.Header)
	turn := bytes.Count(head, []byte(`"role":"tool"`))
	if err := s.consume(r, head, *buffer, check); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if script.Turns > 0 && check.size > bufferSize {
		http.Error(w, fmt.Sprintf("a request with %d bytes is too large to count its turns", check.size), http.StatusBadRequest)
		return
	}
	answer(w, r, script, stream, turn)
}

// readHead fills the buffer as far as the body goes.
func readHead(body io.Reader, buffer []byte) ([]byte, error) {
	n, err := io.ReadFull(body, buffer)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	return buffer[:n], nil
}

// consume reads the rest of the body and judges all of it.
func (s *Server) consume(r *http.Request, head, buffer []byte, c *check) error {
	c.add(head)
	for {
		n, err := r.Body.Read(buffer)
		c.add(buffer[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the body: %w", err)
		}
	}
	s.Bytes.Add(c.size)
	if !c.whole() {
		s.Wrong.Add(1)
	}
	return nil
}

// early answers first and reads what is left of the body then. A gateway may
// stop sending it, but what it sends has to be of this request.
func (s *Server) early(w http.ResponseWriter, r *http.Request, head, buffer []byte) {
	rc := http.NewResponseController(w)
	check := newCheck(r.Header)
	// Reading goes on beside the answer only where the protocol can.
	if err := rc.EnableFullDuplex(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(document)))
	_, _ = io.WriteString(w, document)
	if rc.Flush() != nil {
		return // the gateway has gone
	}
	check.add(head)
	for {
		n, err := r.Body.Read(buffer)
		check.add(buffer[:n])
		if err != nil {
			break // the end, or as much as there is
		}
	}
	s.Bytes.Add(check.size)
	if check.strange {
		s.Wrong.Add(1)
	}
}

func (s *Server) other(w http.ResponseWriter, r *http.Request) {
	buffer := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buffer)
	check := newCheck(r.Header)
	if err := s.consume(r, nil, *buffer, check); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, document)
}
