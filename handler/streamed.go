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
	sent   bool // the header is
	beat   *heartbeat

	mu   sync.Mutex // guards w and what follows: the heartbeat writes too
	last time.Time  // of the last write
	err  error      // of the first write that failed
}

func newStreamed(x *exchange) *streamed {
	s := &streamed{
		x: x, w: x.w, rc: http.NewResponseController(x.w),
		stream: wire.Stream{Tools: &x.tools, IncludeUsage: x.req.IncludeUsage()},
	}
	s.beat = &heartbeat{every: x.h.Keepalive, s: s}
	return s
}

func (s *streamed) begun() bool { return s.sent }

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
	err := s.write(nil)
	s.beat.start()
	return err
}

func (s *streamed) chunk(header http.Header, c *wire.Chunk, a *wire.Answer) error {
	if header != nil {
		if err := s.begin(header); err != nil {
			return err
		}
	}
	s.stream.Chunk(c, a)
	return nil
}

func (s *streamed) hide(a *wire.Answer) { s.stream.Hide(a) }

func (s *streamed) executed(tool []byte) error {
	s.stream.Executed(tool)
	return s.flush()
}

func (s *streamed) finish(res result, o wire.Outcome) error {
	if err := s.begin(res.header); err != nil {
		return err
	}
	s.x.answered = &answered{}
	s.stream.Finish(res.answer, o.Finish, o.Usage)
	return s.flush()
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
	if out := s.stream.Take(); len(out) > 0 {
		return s.write(out)
	}
	return s.failed()
}

func (s *streamed) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *streamed) close() { s.beat.stop() }

// write sends whole events, and only those, so that a comment of the heartbeat
// always stands between two.
func (s *streamed) write(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeLocked(p)
}

func (s *streamed) writeLocked(p []byte) error {
	if s.err != nil {
		return s.err
	}
	s.last = time.Now()
	if _, err := s.w.Write(p); err != nil {
		s.err = err
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

// heartbeat keeps a silent stream from being taken for dead.
type heartbeat struct {
	every time.Duration
	s     *streamed
	quit  chan struct{}
	ended chan struct{}
}

func (b *heartbeat) start() {
	b.quit, b.ended = make(chan struct{}), make(chan struct{})
	go b.run()
}

// stop ends the heartbeat and waits for its goroutine.
func (b *heartbeat) stop() {
	if b.quit == nil {
		return
	}
	close(b.quit)
	<-b.ended
	b.quit = nil
}

func (b *heartbeat) run() {
	defer close(b.ended)
	timer := time.NewTimer(b.every)
	defer timer.Stop()
	for {
		select {
		case <-b.quit:
			return
		case <-timer.C:
		}
		timer.Reset(b.tick())
	}
}

// tick writes a comment if the stream has been silent for long enough, and
// returns when to look again.
func (b *heartbeat) tick() time.Duration {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if left := b.every - time.Since(b.s.last); left > 0 {
		return left
	}
	if b.s.writeLocked(keepAlive) != nil {
		return time.Hour // the request is about to end
	}
	b.s.x.h.Metrics.keepalive()
	return b.every
}
