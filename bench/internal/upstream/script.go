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

package upstream

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Script is what the mock model does with one request. A request carries it
// in its model field, so that it goes the way of any other field.
type Script struct {
	// Turns is how many tool calls the model makes before it answers.
	Turns int
	// Chunks is the number of text chunks of a streamed answer.
	Chunks int
	// Pause is the time between two chunks; without it they come at once.
	Pause time.Duration
	// Code is the time that the code of a streamed tool call takes to arrive.
	Code time.Duration
	// Early has the answer sent before the request's body is read.
	Early bool
}

// prefix marks the model names that are scripts.
const prefix = "bench"

// Model returns the script as a model name.
func (s Script) Model() string {
	return fmt.Sprintf("%s;turns=%d;chunks=%d;pause=%s;code=%s;early=%t", prefix, s.Turns, s.Chunks, s.Pause, s.Code, s.Early)
}

// parseScript reads the script and the stream field from the start of a body,
// where the load generator puts them. Within strings the name of the field
// would have other quotes.
func parseScript(head []byte) (s Script, stream bool, err error) {
	_, rest, found := bytes.Cut(head, []byte(`"model":"`))
	model, _, whole := bytes.Cut(rest, []byte(`"`))
	if !found || !whole {
		return s, false, fmt.Errorf("no model in the first %d bytes of the body", len(head))
	}
	fields := strings.Split(string(model), ";")
	if fields[0] != prefix {
		return s, false, fmt.Errorf("model %q is no script: it has to begin with %q", model, prefix)
	}
	for _, field := range fields[1:] {
		if err := s.set(field); err != nil {
			return s, false, fmt.Errorf("model %q: %w", model, err)
		}
	}
	return s, bytes.Contains(head, []byte(`"stream":true`)), nil
}

func (s *Script) set(field string) (err error) {
	name, value, _ := strings.Cut(field, "=")
	switch name {
	case "turns":
		s.Turns, err = strconv.Atoi(value)
	case "chunks":
		s.Chunks, err = strconv.Atoi(value)
	case "pause":
		s.Pause, err = time.ParseDuration(value)
	case "code":
		s.Code, err = time.ParseDuration(value)
	case "early":
		s.Early, err = strconv.ParseBool(value)
	default:
		err = fmt.Errorf("unknown field %q", name)
	}
	return err
}
