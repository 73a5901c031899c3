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
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// keepaliveInterval is the silence after which a client hears that all is well.
	keepaliveInterval = 5 * time.Second
	// interruptGrace is how long code may take to heed an interrupt.
	interruptGrace = 2 * time.Second
	// killGrace is how long the driver may take to replace a kernel.
	killGrace = 5 * time.Second
)

// executeRequest is the body of POST /execute.
type executeRequest struct {
	Code      *string           `json:"code"`
	ContextID string            `json:"context_id"`
	Language  string            `json:"language"`
	EnvVars   map[string]string `json:"env_vars"`
}

// execute answers POST /execute: it waits for the context's turn, runs the code
// and streams what it says, one JSON object a line. A client that goes away
// interrupts the code.
func (s *Server) execute(w http.ResponseWriter, r *http.Request, sb *sandbox) {
	body := readExecute(w, r)
	if body == nil {
		return
	}
	k := s.executeIn(w, sb, body)
	if k == nil {
		return
	}
	out := newStream(w)
	defer out.stop()
	out.endWith(sb.gone)
	if !out.waitTurn(r, sb, k) {
		return
	}
	sb.running.Add(1)
	sb.setReason("")
	run, err := sb.driver.execute(sb.executeCommand(k, *body.Code, body.EnvVars))
	if err != nil {
		s.log.Warn("a sandbox that takes no code is ended", zap.String("sandbox", sb.id), zap.Error(err))
		sb.running.Add(-1)
		sb.end()
		out.abort()
	}
	finished := false
	defer func() {
		if finished {
			sb.release(k)
			return
		}
		close(run.abandoned)
		s.work.Go(func() { s.settle(sb, k, run) })
	}()
	finished = s.relay(r, sb, k, run, out)
}

// readExecute reads the request, or answers what is wrong with it and returns nil.
func readExecute(w http.ResponseWriter, r *http.Request) *executeRequest {
	var raw json.RawMessage
	var body executeRequest
	if !readData(w, r.Body, &raw) || !readData(w, bytes.NewReader(raw), &body) {
		return nil
	}
	switch {
	case body.Code == nil:
		fieldError(w, "missing", "Field required", raw, "code")
		return nil
	case body.ContextID != "" && body.Language != "":
		plainError(w, http.StatusBadRequest, "Only one of context_id or language can be provided")
		return nil
	}
	return &body
}

// executeIn returns the context that a request means, or answers that there is
// none and returns nil.
func (s *Server) executeIn(w http.ResponseWriter, sb *sandbox, body *executeRequest) *kernel {
	if body.Language == "" {
		k := sb.kernel(body.ContextID)
		if k == nil {
			unknownContext(w, cmp.Or(body.ContextID, "default"))
		}
		return k
	}
	language, ok := languageOf(w, body.Language)
	if !ok {
		return nil
	}
	k, err := sb.defaultKernel(language)
	if err != nil {
		s.contextFailed(w, sb, "Failed to create context", err)
		return nil
	}
	return k
}

// relay passes a run's events on. It returns whether the run has ended; when it
// has not, the client has had enough or is gone.
func (s *Server) relay(r *http.Request, sb *sandbox, k *kernel, run *run, out *stream) bool {
	for {
		select {
		case e := <-run.events:
			if out.read += int64(len(e.body)); out.read > s.cfg.MaxRead {
				out.fail("OutputLimitExceeded", fmt.Sprintf("The execution was stopped: it printed more than %d bytes", s.cfg.MaxRead))
				return e.kind == kindEnd
			}
			if e.kind == "error" {
				e.body = sb.explainRestart(e.body)
			}
			out.write(e.body, len(run.events) == 0)
			if e.kind == kindEnd {
				return true
			}
		case <-out.quiet.C:
			out.write([]byte(`{"type":"keepalive"}`+"\n"), true)
		case <-k.removed:
			out.fail("ContextRestarting", "Context was removed")
			return false
		case <-r.Context().Done():
			return false
		case <-sb.driver.done:
			if len(run.events) == 0 { // its last words first
				out.abort()
			}
		}
	}
}

// settle makes an abandoned run end, by an interrupt at first, and gives its
// context free for the next one.
func (s *Server) settle(sb *sandbox, k *kernel, run *run) {
	defer sb.release(k)
	for _, step := range []struct {
		op    string
		grace time.Duration
	}{{"interrupt", interruptGrace}, {"kill", killGrace}} {
		if err := sb.driver.send(command{Op: step.op, Context: run.context, Run: run.id}); err != nil {
			sb.end() // if it is not dead already, it is deaf
			return
		}
		select {
		case <-run.ended:
			return
		case <-sb.driver.done:
			return
		case <-k.removed:
			return
		case <-time.After(step.grace):
		}
	}
	s.log.Warn("a sandbox whose code cannot be stopped is ended", zap.String("sandbox", sb.id))
	sb.end()
}

// release lets the next execution of a context have its turn.
func (sb *sandbox) release(k *kernel) {
	sb.running.Add(-1)
	<-k.turn
}

// stream is the answer to an execution.
type stream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	quiet *time.Timer
	read  int64 // bytes of events so far

	ended    chan struct{} // closed when the handler returns
	watching sync.WaitGroup
	hurried  bool // a deadline is set; for the handler when watching is over
}

// newStream sends the headers: the client shall know that it is being served
// before the code says anything.
func newStream(w http.ResponseWriter) *stream {
	w.Header()["Content-Type"] = nil // as E2B: none
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, rc: http.NewResponseController(w), quiet: time.NewTimer(keepaliveInterval), ended: make(chan struct{})}
	s.flush()
	return s
}

// waitTurn waits until nothing else runs in the context. It returns false when the
// client has gone or got its answer.
func (s *stream) waitTurn(r *http.Request, sb *sandbox, k *kernel) bool {
	for {
		select {
		case k.turn <- struct{}{}:
			return true
		case <-s.quiet.C:
			s.write([]byte(`{"type":"keepalive"}`+"\n"), true)
		case <-k.removed:
			s.fail("ContextRestarting", "Context was removed")
			return false
		case <-r.Context().Done():
			return false
		case <-sb.driver.done:
			s.abort()
		}
	}
}

// write sends a line. A client that has gone is noticed by its context.
func (s *stream) write(line []byte, flush bool) {
	s.quiet.Reset(keepaliveInterval)
	_, _ = s.w.Write(line)
	if flush {
		s.flush()
	}
}

func (s *stream) flush() { _ = s.rc.Flush() } // see write

func (s *stream) stop() {
	s.quiet.Stop()
	close(s.ended)
	s.watching.Wait()
	if s.hurried {
		_ = s.rc.SetWriteDeadline(time.Time{}) // the connection may see other calls
	}
}

// endWith sees to it that a client which reads no more does not hold the handler for
// ever: some time after its sandbox has gone, writing to it fails.
func (s *stream) endWith(gone <-chan struct{}) {
	s.watching.Go(func() {
		select {
		case <-gone:
			_ = s.rc.SetWriteDeadline(time.Now().Add(lastWordsTimeout)) // see write
			s.hurried = true
		case <-s.ended:
		}
	})
}

// fail ends the answer with an error of the gateway's.
func (s *stream) fail(name, value string) {
	s.write(errorLine(name, value), false)
	s.write([]byte(`{"type":"end_of_execution"}`+"\n"), true)
}

// abort breaks the answer off: without end_of_execution the client knows that the
// code may or may not have run.
func (s *stream) abort() { panic(http.ErrAbortHandler) }

// errorLine is an error event.
func errorLine(name, value string) []byte {
	line, err := json.Marshal(struct {
		Type      string `json:"type"`
		Name      string `json:"name"`
		Value     string `json:"value"`
		Traceback string `json:"traceback"`
	}{"error", name, value, ""})
	if err != nil { // strings always encode
		panic(err)
	}
	return append(line, '\n')
}

// explainRestart adds to the news of a lost kernel why the gateway ended it.
func (sb *sandbox) explainRestart(line []byte) []byte {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.reason == "" || !bytes.Contains(line, []byte(`"ContextRestarting"`)) {
		return line
	}
	reason := sb.reason
	sb.reason = ""
	return errorLine("ContextRestarting", "Context was restarted: "+reason)
}
