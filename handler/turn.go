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
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire"
)

// An upstream that has said how a turn ends may keep the connection open. It
// is given the grace to send what else belongs to the turn, such as usage, and
// the short grace once there can be nothing more than the end of the body.
const (
	grace      = 500 * time.Millisecond
	shortGrace = 100 * time.Millisecond
)

// maxCalls is the number of calls in one answer. Models make a few; every one
// more makes it longer to tell whose the next fragment is.
const maxCalls = 1000

// turn is one request to the upstream and its answer.
type turn struct {
	x      *exchange
	first  bool
	answer *wire.Answer
	kept   int // bytes of a stream that the answer holds

	ending *time.Timer   // cancels the request when the grace is over
	grace  time.Duration // that ending has begun with
	cancel context.CancelFunc
	over   atomic.Bool // it was that which ended the request
}

// result is what became of a turn.
type result struct {
	// answer is what the upstream said; nil if it said nothing that can be
	// gone on with.
	answer *wire.Answer
	// whole is the answer in one piece, nil when it was streamed. The next turn
	// uses it again.
	whole *wire.Chunk
	// header is that of the answer.
	header http.Header
	// refused is an answer that is an error, to be passed on.
	refused *response
	// failed is why there is no answer at all.
	failed *refusal
	// ended says that nothing is left to do for the client, err what Caddy has
	// to know of it.
	ended bool
	err   error
}

// response is an answer of the upstream as it came.
type response struct {
	status int
	header http.Header
	body   []byte
}

// take makes the turn.
func (t *turn) take() result {
	x := t.x
	ctx, cancel := context.WithCancel(x.ctx)
	defer cancel()
	t.cancel = cancel
	t.answer = &wire.Answer{}
	c := &capture{turn: t, header: make(http.Header)}
	body := x.body()
	begun := time.Now()
	x.report.turns++
	ctx, span := x.startTurn(ctx)
	err := x.origin.send(ctx, c, body, body.Len(), x.h.sessionHeader, x.next)
	if t.ending != nil {
		t.ending.Stop()
	}
	x.report.modelTime += time.Since(begun)
	if t.over.Load() && x.ctx.Err() == nil {
		err = nil
	}
	endTurn(span, c.status, err)
	if !answers(c.status) && x.r.Context().Err() == nil {
		x.h.Metrics.upstreamError(c.status)
	}
	return t.result(c, err)
}

// result finds out what became of the turn, in the order that tells causes
// from consequences.
func (t *turn) result(c *capture, err error) result {
	x := t.x
	switch {
	case c.form == foreign && errors.Is(err, errAborted):
		panic(http.ErrAbortHandler) // a part of it has gone out
	case c.form == foreign:
		if x.r.Context().Err() == nil { // of a client that has gone reverse_proxy says 499
			x.report.outcome = outcomeUpstreamError
		}
		return result{ended: true, err: err}
	case x.r.Context().Err() != nil:
		return result{ended: true}
	case x.ctx.Err() != nil:
		return result{failed: x.timedOut()}
	case x.reply.failed() != nil:
		return result{ended: true}
	case c.status == 0 && errors.Is(err, errAborted):
		x.report.outcome = outcomeRefused
		panic(http.ErrAbortHandler) // what the directive abort does
	case c.status == 0:
		return t.silence(err)
	}
	switch c.form {
	case refused:
		return result{refused: &response{c.status, c.header, c.body}}
	case events:
		if closeErr := c.split.Close(t.event); closeErr != nil && err == nil {
			err = closeErr
		}
		if flushErr := x.reply.flush(); flushErr != nil {
			return result{ended: true}
		}
		// What has said that it is over is whole, however its connection ends.
		t.answer.Damaged = t.answer.Damaged || err != nil && !t.answer.Done
		return result{answer: t.answer, header: c.header}
	case document:
		return t.document(c, err)
	case unknown, foreign:
	}
	if err != nil {
		return result{failed: broken()}
	}
	return result{failed: refuse(http.StatusBadGateway, "", "The upstream answered with nothing.")}
}

// silence is why the next handler has not written an answer. reverse_proxy says
// with a status of 500 or more that the upstream has not; others are refusals of
// handlers before it, such as the directive error, and for Caddy to answer if
// nothing was done yet.
func (t *turn) silence(err error) result {
	const unreachable = "The upstream could not be reached or did not answer."
	var known caddyhttp.HandlerError
	switch {
	case errors.As(err, &known) && known.StatusCode >= http.StatusInternalServerError:
		return result{failed: refuse(known.StatusCode, "", unreachable)}
	case known.StatusCode >= http.StatusBadRequest && t.first && !t.x.reply.begun():
		t.x.report.outcome = outcomeRefused
		return result{ended: true, err: err}
	case known.StatusCode >= http.StatusBadRequest:
		return result{failed: refuse(known.StatusCode, "", "The gateway does not let a further request to the upstream pass.")}
	case err == nil, errors.Is(err, errUnhandled):
		return result{failed: refuse(http.StatusBadGateway, "", "The gateway has no upstream for this request: %v", errUnhandled)}
	}
	return result{failed: refuse(http.StatusBadGateway, "", unreachable)}
}

func broken() *refusal {
	return refuse(http.StatusBadGateway, "", "The upstream broke off its answer.")
}

// document reads an answer in one piece.
func (t *turn) document(c *capture, err error) result {
	body := bytes.TrimPrefix(c.body, []byte("\xef\xbb\xbf"))
	whole := t.x.chunk
	switch {
	case err != nil:
		return result{failed: broken()}
	case !whole.Parse(body) || !whole.HasChoice():
		return result{refused: &response{c.status, c.header, c.body}}
	}
	t.answer.Observe(whole)
	if t.answer.CallCount() > maxCalls {
		return result{failed: broken()}
	}
	t.answer.Done = true
	if err := t.x.reply.chunk(c.header, whole, t.answer); err != nil {
		return result{ended: true}
	}
	return result{answer: t.answer, whole: whole, header: c.header}
}

// events takes the next piece of a stream.
func (t *turn) events(c *capture, p []byte) error {
	if err := t.x.reply.begin(c.header); err != nil {
		return err
	}
	if err := c.split.Feed(p, t.event); err != nil {
		t.answer.Damaged = true
		return err
	}
	return t.x.reply.flush()
}

// event takes an event of a stream.
func (t *turn) event(ev *wire.Event) error {
	a := t.answer
	if a.Over() || !a.Event(ev, t.x.chunk) {
		return nil
	}
	if !a.Over() {
		if t.kept += t.x.chunk.Kept(); t.kept > maxAnswer || a.CallCount() > maxCalls {
			return wire.ErrEventTooLarge
		}
		t.x.prepare(a)
		if err := t.x.reply.chunk(nil, t.x.chunk, a); err != nil {
			return err
		}
	}
	t.endSoon()
	return nil
}

// endSoon begins to wait for the end of the answer once its end is in sight.
// What says nothing of the answer, such as a heartbeat, prolongs no wait.
func (t *turn) endSoon() {
	a := t.answer
	var left time.Duration
	switch {
	case a.Done, a.Failure != nil, a.Finish != "" && a.Usage != nil:
		left = shortGrace
	case a.Finish != "":
		left = grace
	default:
		return
	}
	if left == t.grace && !t.x.chunk.HasChoice() {
		return
	}
	t.grace = left
	if t.ending != nil {
		t.ending.Reset(left)
		return
	}
	t.ending = time.AfterFunc(left, func() {
		t.over.Store(true)
		t.cancel()
	})
}
