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
	"context"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// maxRepeats is how often in a row the same code may fail in the same way
// before the model is asked to do without.
const maxRepeats = 3

// overdue is how long after RequestTimeout an exchange that has not ended, because
// its client does not read, loses its sandbox.
const overdue = 5 * time.Second

// exchange is one request of a client that uses the tool, from the first turn
// to the answer.
type exchange struct {
	h    *Handler
	w    http.ResponseWriter
	r    *http.Request
	next caddyhttp.Handler
	req  *wire.Request

	caller   session.Caller
	stranger bool // the caller cannot be told from others
	session  string
	handle   *session.Handle

	ctx    context.Context // the request's, less than RequestTimeout old
	origin *original
	edited *wire.Edited
	tools  wire.Tools
	reply  reply
	chunk  *wire.Chunk // what answers are read with, a turn's at a time

	recalled []wire.Edit     // hidden messages of earlier requests
	past     []pastTurn      // hidden turns of this request
	without  wire.Dropped    // what the upstream refused of them
	ids      map[string]bool // of tool calls, so that none is given twice
	rounds   int
	capped   bool // no more calls are wanted
	usage    wire.Usage
	log      executions
	last     failure
	report   report

	replay *replay // with an Idempotency-Key, until it is settled
}

// pastTurn is a turn that the client does not see, and what came of its calls.
type pastTurn struct {
	answer  *wire.Answer
	calls   []wire.Echoed
	results [][]byte // tool messages, of the calls that are not the client's
	echo    []byte   // the assistant's message; nil when it has to be made
}

// appendTo adds the messages of the turn, as the upstream gets them, to list.
func (p *pastTurn) appendTo(list [][]byte, without wire.Dropped) [][]byte {
	if p.echo == nil {
		p.echo = p.answer.Echo(p.calls, without)
	}
	return append(append(list, p.echo), p.results...)
}

// run carries the request out.
func (x *exchange) run() error {
	ctx, cancel := context.WithTimeout(x.r.Context(), x.h.RequestTimeout)
	defer cancel()
	x.ctx = ctx
	x.origin = newOriginal(x.r)
	defer x.origin.restore()
	defer x.handle.Close()
	defer time.AfterFunc(x.h.RequestTimeout+overdue, x.handle.Close).Stop()
	x.tools = wire.Tools{Name: x.edited.Name, Clients: x.req.ClientTools(), Opaque: x.req.HasUnnamedTool()}
	x.ids = map[string]bool{}
	x.capped = x.req.Choice(x.h.ToolName) == wire.ChoiceNone
	x.recalled = remembered.recall(x)
	x.chunk = wire.NewChunk()
	defer x.chunk.Release()
	x.reply = newReply(x)
	defer x.reply.close()
	x.report.outcome = outcomeCanceled // unless it comes to something else
	defer x.tell()
	for {
		res := x.ask()
		switch {
		case res.ended:
			return res.err
		case res.failed != nil:
			return x.fail(res.failed)
		case res.refused != nil:
			x.conclude(outcomeUpstreamError)
			return x.reply.refuse(res.refused, len(x.past) == 0)
		}
		x.usage.Add(res.answer.Usage)
		again, err := x.step(res)
		if !again || err != nil {
			return err
		}
	}
}

// step goes on from an answer: it runs what is to be run, or gives the answer
// to the client. again says that the model is to be asked once more.
func (x *exchange) step(res result) (again bool, err error) {
	a := res.answer
	switch {
	case a.Failure != nil:
		x.conclude(outcomeUpstreamError)
		return false, x.reply.failure(a.Failure)
	case a.Damaged:
		return false, x.fail(broken())
	case a.Cut():
		return false, x.fail(refuse(http.StatusBadGateway, "", "The upstream ended its answer before it was complete."))
	}
	a.Settle(x.ids, x.tools.Name)
	ours, clients := x.divide(a)
	if !a.Trusted() || x.capped || len(ours) == 0 {
		return false, x.finish(res, clients, len(ours) > 0)
	}
	past, err := x.execute(a)
	if err != nil {
		return false, x.interrupted(err)
	}
	x.past = append(x.past, past)
	if len(clients) > 0 {
		remembered.keep(x, clients)
		return false, x.finish(res, clients, true)
	}
	x.reply.hide(a)
	x.rounds++
	x.capped = x.rounds >= x.h.MaxRounds || x.last.times >= maxRepeats
	return true, x.reply.flush()
}

// conclude is called before the end of the answer is written, for which the
// client may take its time: the sandbox is not needed any more.
func (x *exchange) conclude(outcome string) {
	x.report.outcome = outcome
	x.handle.Close()
}

// fail ends the exchange with an error of our own.
func (x *exchange) fail(e *refusal) error {
	outcome := outcomeUpstreamError
	if x.ctx.Err() != nil {
		outcome = outcomeTimeout
	}
	x.conclude(outcome)
	return x.reply.fail(e)
}

// divide tells the calls of the client from those that are answered here: of
// our tool, and of tools that nobody has.
func (x *exchange) divide(a *wire.Answer) (ours, clients []*wire.Call) {
	for _, call := range a.Calls() {
		if owner, _ := x.tools.Owner(call.Name); owner == wire.Client {
			clients = append(clients, call)
		} else {
			ours = append(ours, call)
		}
	}
	return ours, clients
}

// finish gives the answer to the client.
func (x *exchange) finish(res result, clients []*wire.Call, hidden bool) error {
	outcome := outcomeAnswered
	if len(clients) > 0 {
		outcome = outcomeClientCalls
	}
	x.conclude(outcome)
	return x.reply.finish(res, wire.Outcome{
		Finish:   finishReason(res.answer, len(clients) > 0, hidden),
		Usage:    x.usage.JSON(),
		Executed: x.log.shown(),
		Calls:    clients,
	})
}

// finishReason returns the finish_reason for the client. One that speaks of
// calls the client does not see would have it wait for them.
func finishReason(a *wire.Answer, calls, hidden bool) string {
	switch a.Finish {
	case "", "tool_calls", "tool_call", "function_call", "tool_use":
		if calls {
			return "tool_calls"
		}
		return "stop"
	}
	if calls && hidden && a.Trusted() {
		return "tool_calls"
	}
	return a.Finish
}

// interrupted ends an exchange in which the time ran out, or the client went,
// while code ran.
func (x *exchange) interrupted(err error) error {
	if x.r.Context().Err() != nil {
		return nil //nolint:nilerr // there is nobody to tell
	}
	x.h.Logger.Info("request ended while code ran", zap.Error(err))
	return x.fail(x.timedOut())
}

func (x *exchange) timedOut() *refusal {
	return refuse(http.StatusGatewayTimeout, "", "The request took longer than the %s that the gateway allows.", x.h.RequestTimeout.Round(time.Second))
}

// prepare begins to get the sandbox ready once an answer has named our tool:
// that an upstream calls it means that it has accepted the caller.
func (x *exchange) prepare(a *wire.Answer) {
	if x.capped {
		return
	}
	for _, call := range a.Touched() {
		if owner, _ := x.tools.Owner(call.Name); owner == wire.Gateway {
			x.handle.Prepare()
			return
		}
	}
}

// body returns the body of the next request to the upstream.
func (x *exchange) body() *wire.Segments {
	t := wire.Turn{Edits: x.recalled, Appended: make([][]byte, 0, 2*len(x.past))}
	for i := range x.past {
		t.Appended = x.past[i].appendTo(t.Appended, x.without)
	}
	switch {
	case x.capped:
		t.Choice = wire.NoTools
	case len(x.past) > 0:
		t.Choice = wire.Unforced
	}
	return x.edited.Turn(t)
}
