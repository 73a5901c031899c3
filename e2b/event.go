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

package e2b

import "encoding/json"

// EventType is the kind of an event of an execution.
type EventType string

// The events of an execution. Types that are not listed are skipped.
const (
	Stdout             EventType = "stdout"               // Text
	Stderr             EventType = "stderr"               // Text
	ResultEvent        EventType = "result"               // Result
	ErrorEvent         EventType = "error"                // Name, Value, Traceback
	NumberOfExecutions EventType = "number_of_executions" // ExecutionCount; the kernel has begun
	Keepalive          EventType = "keepalive"            // sent in silence
	EndOfExecution     EventType = "end_of_execution"     // the last one
)

// Names of the errors that tell of the end of a kernel.
const (
	ContextRestarting        = "ContextRestarting"
	UnexpectedEndOfExecution = "UnexpectedEndOfExecution"
)

// Event is one thing that an execution did. The type says which fields are set.
type Event struct {
	Type EventType

	Text string // what was written

	Result *Result // a value or a display, never nil for ResultEvent

	Name      string // class of an error
	Value     string // its message
	Traceback string // its traceback, which may contain ANSI sequences

	ExecutionCount int // number of the execution in its kernel
}

// Result is a value in the representations that it has; an absent one is empty.
// PNG, JPEG and PDF are base64.
type Result struct {
	Text       string `json:"text"`
	HTML       string `json:"html"`
	Markdown   string `json:"markdown"`
	SVG        string `json:"svg"`
	PNG        string `json:"png"`
	JPEG       string `json:"jpeg"`
	PDF        string `json:"pdf"`
	Latex      string `json:"latex"`
	JavaScript string `json:"javascript"`

	JSON  json.RawMessage `json:"json"`
	Chart json.RawMessage `json:"chart"`
}
