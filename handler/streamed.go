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

package handler

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire"
)

// streamed is an answer as a stream of server-sent events.
type streamed struct {
	x      *exchange
	w      http.ResponseWriter
	rc     *http.ResponseController
	stream wire.Stream
	sent   bool // the header is, or will be with the next flush

	mu      sync.Mutex  // guards w and what follows: a timer writes too
	wrote   bool        // the header has gone out
	last    time.Time   // of the last write
	err     error       // of the first write that failed
	beat    *time.Timer // nil before the header
	waiting []byte      // what goes out with the next write
	due     bool        // there is something to send soon, if only the header
	over    bool
}

// soon is how long the header, and what tells of code, waits for more that can go
// out with it. A program that is done at once, and the next one, are one write.
const soon = 5 * time.Millisecond

// maxWaiting is the size of what may wait in bytes: pictures are not copied.
const maxWaiting = 4 << 10

func newStreamed(x *exchange) *streamed {
	s := &streamed{
		x: x, w: x.w, rc: http.NewResponseController(x.w),
		stream: wire.Stream{Tools: &x.tools, IncludeUsage: x.req.IncludeUsage()},
	}
	s.stream.Start()
	return s
}

func (s *streamed) begun() bool { return s.sent }

// begin sets the header. The next flush sends it, with what there is by then.
func (s *streamed) begin(header http.Header) error {
	if s.sent {
		return nil
	}
	s.sent = true
	h := s.w.Header()
	copyHeader(h, header)
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	s.beat = time.AfterFunc(s.x.h.Keepalive, s.tick)
	return s.err
}

func (s *streamed) chunk(header http.Header, c *wire.Chunk, a *wire.Answer) error {
	if header != nil {
		if err := s.begin(header); err != nil {
			return err
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.stream.Chunk(c, a)
	return nil
}

func (s *streamed) hide(a *wire.Answer) { s.stream.Hide(a) }

func (s *streamed) executed(tool []byte) error {
	s.stream.Executed(tool)
	return s.flushSoon()
}

// flushSoon sends what there is, or the header alone, with the next write or
// soon. The stream must have begun.
func (s *streamed) flushSoon() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stream.Take()
	if len(out) == 0 && (s.wrote || s.due) {
		return s.err // a write of nothing would pass for one
	}
	if len(s.waiting)+len(out) > maxWaiting {
		return s.write(out)
	}
	if !s.due {
		s.due = true
		s.beat.Reset(soon)
	}
	s.waiting = append(s.waiting, out...)
	return s.err
}

func (s *streamed) finish(res result, o wire.Outcome) error {
	if err := s.begin(res.header); err != nil {
		return err
	}
	s.x.settle(&answered{})
	s.stream.Finish(res.answer, o.Finish, o.Usage)
	// The server flushes when the handlers have returned: with the end of the
	// body, in one write.
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send(s.stream.Take())
}

func (s *streamed) refuse(r *response, _ bool) error { return s.failure(errorObject(r)) }

func (s *streamed) failure(object []byte) error {
	if err := s.begin(nil); err != nil {
		return err
	}
	s.stream.Fail(object)
	return s.flush()
}

func (s *streamed) fail(e *refusal) error {
	if !s.sent {
		return e.answer(s.w)
	}
	return s.failure(e.object())
}

func (s *streamed) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if out := s.stream.Take(); len(out) > 0 || s.sent && !s.wrote {
		return s.write(out)
	}
	return s.err // what waits may wait on
}

func (s *streamed) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// close waits for a comment that is being written; no other one follows.
func (s *streamed) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.beat != nil {
		s.beat.Stop()
	}
	s.stream.Release()
}

// send writes whole events, and only those, so that a comment always stands
// between two. What waits goes first.
func (s *streamed) send(p []byte) error {
	if len(s.waiting) > 0 {
		p = append(s.waiting, p...)
		s.waiting = s.waiting[:0]
	}
	if s.err != nil {
		return s.err
	}
	s.wrote, s.last = true, time.Now()
	if s.due {
		s.due = false
		s.beat.Reset(s.x.h.Keepalive)
	}
	_, s.err = s.w.Write(p)
	return s.err
}

// write sends events at once.
func (s *streamed) write(p []byte) error {
	if err := s.send(p); err != nil {
		return err
	}
	if err := s.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.err = err
	}
	return s.err
}

// keepAlive is a comment line. No blank line follows: decoders would take that
// for the end of an event. https://github.com/theopenco/llmgateway/pull/2334
var keepAlive = []byte(": keep-alive\n")

// tick writes what waits, or a comment if the stream has been silent for so long
// that somebody could take it for dead, and looks again later.
func (s *streamed) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.err != nil {
		return
	}
	every := s.x.h.Keepalive
	if s.due {
		_ = s.write(nil) // kept in err; looks again later
		return
	}
	if left := every - time.Since(s.last); left > 0 {
		s.beat.Reset(left)
		return
	}
	if s.write(keepAlive) == nil {
		s.x.h.Metrics.keepalive()
		s.beat.Reset(every)
	}
}
