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
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	usage    = `"usage":{"prompt_tokens":20,"completion_tokens":10,"total_tokens":30}`
	object   = `{"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":`
	document = object + `{"role":"assistant","content":"The answer is 42."},"logprobs":null,"finish_reason":"stop"}],` + usage + `}`

	// code is that of a tool call, as it stands in the arguments.
	code = `values = [1, 2, 3]\nprint(sum(values) * 7)`

	delta  = `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench","system_fingerprint":"fp_bench","choices":[{"index":0,"delta":`
	opened = `,"logprobs":null,"finish_reason":null}]}` + "\n\n"
	done   = "data: [DONE]\n\n"

	first = delta + `{"role":"assistant","content":""}` + opened
	text  = delta + `{"content":" token"}` + opened
)

// answer gives the answer of the turn, which is a tool call until the script
// has had all of its turns.
func answer(w http.ResponseWriter, r *http.Request, s Script, stream bool, turn int) {
	calls := turn < s.Turns
	switch {
	case !stream && calls:
		writeDocument(w, callDocument(turn))
	case !stream:
		writeDocument(w, document)
	case calls:
		streamCall(newStream(w, r), s, turn)
	default:
		streamText(newStream(w, r), s)
	}
}

func writeDocument(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = io.WriteString(w, body) // a gateway that has gone is seen at the client
}

func callID(turn int) string { return "call_bench_" + strconv.Itoa(turn) }

func callDocument(turn int) string {
	return object + `{"role":"assistant","content":null,"tool_calls":[{"id":"` + callID(turn) +
		`","type":"function","function":{"name":"run_python","arguments":"{\"code\":\"` + strings.ReplaceAll(code, `\`, `\\`) +
		`\"}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],` + usage + `}`
}

// stream writes events to a client until that has gone.
type stream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	done <-chan struct{}
	gone bool
}

func newStream(w http.ResponseWriter, r *http.Request) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	return &stream{w: w, rc: http.NewResponseController(w), done: r.Context().Done()}
}

// send writes an event and flushes it, as model servers do with each.
func (s *stream) send(p string) {
	if _, err := io.WriteString(s.w, p); err != nil || s.rc.Flush() != nil {
		s.gone = true
	}
}

// pause waits.
func (s *stream) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.done:
		s.gone = true
	}
}

// end sends the last events.
func (s *stream) end(reason string) {
	s.send(delta + `{},"logprobs":null,"finish_reason":"` + reason + `"}],` + usage + "}\n\n" + done)
}

func streamText(s *stream, script Script) {
	s.send(first)
	for range script.Chunks {
		if s.gone {
			return
		}
		s.pause(script.Pause)
		s.send(text)
	}
	s.end("stop")
}

// streamCall sends a tool call in five chunks, or over the time that its code
// is to take.
func streamCall(s *stream, script Script, turn int) {
	s.send(first)
	s.send(delta + `{"tool_calls":[{"index":0,"id":"` + callID(turn) + `","type":"function","function":{"name":"run_python","arguments":""}}]}` + opened)
	s.send(arguments(`{\"code\":\"`))
	const pieces = 10
	if script.Code > 0 {
		for range pieces {
			s.pause(script.Code / pieces)
			s.send(arguments(`pass\\n`))
		}
	}
	s.send(arguments(strings.ReplaceAll(code, `\`, `\\`) + `\"}`))
	s.end("tool_calls")
}

func arguments(text string) string {
	return delta + `{"tool_calls":[{"index":0,"function":{"arguments":"` + text + `"}}]}` + opened
}
