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

package handler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// sandboxes is an E2B server in memory. Its programs have one command a line:
//
//	x = 1      sets a variable
//	print x    writes a variable, or raises a NameError
//	say text   writes text
//	raise text raises an error
//	plot       shows a picture with a chart
//	sleep 3s   runs for a while
type sandboxes struct {
	mu       sync.Mutex
	boxes    map[string]map[string]string // variables of the living ones
	created  int
	programs []string // in order of their beginning
	ended    int      // programs that ran to their end
	refuse   bool     // creations fail
}

func newSandboxes() *sandboxes {
	return &sandboxes{boxes: map[string]map[string]string{}}
}

// ran returns the programs so far.
func (s *sandboxes) ran() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.programs)
}

// count returns how many sandboxes there are and have been.
func (s *sandboxes) count() (alive, created int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.boxes), s.created
}

// RoundTrip answers the calls of a client.
func (s *sandboxes) RoundTrip(r *http.Request) (*http.Response, error) {
	var in struct {
		Code string `json:"code"`
	}
	if r.Body != nil {
		defer r.Body.Close()
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil && err != io.EOF {
			return nil, err
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "execute":
		return s.execute(r, in.Code), nil
	case r.Method == http.MethodPost && len(parts) == 1 && s.refuse:
		return answer(r, http.StatusBadRequest, `{"message":"no"}`), nil
	case r.Method == http.MethodPost && len(parts) == 1:
		id := fmt.Sprintf("box%d", s.created)
		s.created++
		s.boxes[id] = map[string]string{}
		return answer(r, http.StatusCreated, fmt.Sprintf(`{"sandboxID":%q}`, id)), nil
	case r.Method == http.MethodDelete:
		delete(s.boxes, parts[1])
		return answer(r, http.StatusNoContent, ""), nil
	case parts[0] == "contexts":
		return answer(r, http.StatusOK, `[{"id":"default","language":"python","cwd":"/home/user"}]`), nil
	}
	return answer(r, http.StatusNoContent, ""), nil // renewals of the timeout
}

func answer(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// execute runs a program while its output is read. The caller holds the mutex.
func (s *sandboxes) execute(r *http.Request, code string) *http.Response {
	box := s.boxes[r.Header.Get("E2b-Sandbox-Id")]
	if box == nil {
		return answer(r, http.StatusBadGateway, `{"message":"The sandbox was not found","code":502}`)
	}
	if code != "None" { // what the pool tries a sandbox out with
		s.programs = append(s.programs, code)
	}
	reader, writer := io.Pipe()
	resp := answer(r, http.StatusOK, "")
	resp.ContentLength, resp.Body = -1, reader
	go func() { _ = writer.CloseWithError(s.interpret(r.Context(), box, code, json.NewEncoder(writer))) }()
	return resp
}

type event map[string]any

func (s *sandboxes) interpret(ctx context.Context, box map[string]string, code string, out *json.Encoder) error {
	if err := out.Encode(event{"type": "number_of_executions", "execution_count": 1}); err != nil {
		return err
	}
	for line := range strings.SplitSeq(code, "\n") {
		ev, err := s.command(ctx, box, line)
		if err != nil {
			return err
		}
		if ev == nil {
			continue
		}
		if err := out.Encode(ev); err != nil {
			return err
		}
		if ev["type"] == "error" {
			break
		}
	}
	s.mu.Lock()
	s.ended++
	s.mu.Unlock()
	return out.Encode(event{"type": "end_of_execution"})
}

// cell returns the number of the program, as tracebacks have it.
func (s *sandboxes) cell() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.programs)
}

func (s *sandboxes) command(ctx context.Context, box map[string]string, line string) (event, error) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "say":
		return event{"type": "stdout", "text": rest + "\n"}, nil
	case "raise":
		return event{"type": "error", "name": "ValueError", "value": rest, "traceback": fmt.Sprintf("Cell In[%d], line 1\nValueError: %s", s.cell(), rest)}, nil
	case "plot":
		return event{"type": "result", "png": "iVBORw0KGgo=", "chart": json.RawMessage(`{"type":"bar"}`)}, nil
	case "print":
		s.mu.Lock()
		defer s.mu.Unlock()
		if value, ok := box[rest]; ok {
			return event{"type": "stdout", "text": value + "\n"}, nil
		}
		return event{"type": "error", "name": "NameError", "value": rest, "traceback": "NameError: " + rest}, nil
	case "sleep":
		d, err := time.ParseDuration(rest)
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(d):
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if name, value, ok := strings.Cut(line, " = "); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		box[name] = value
	}
	return nil, nil
}
