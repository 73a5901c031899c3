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
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// Outcomes of a request with the tool, as metrics, logs and placeholders have
// them.
const (
	outcomeAnswered      = "answered"       // the model has answered
	outcomeClientCalls   = "client_calls"   // it calls tools of the client
	outcomeRefused       = "refused"        // the gateway did not carry it out
	outcomeUpstreamError = "upstream_error" // the upstream answered with an error, or did not
	outcomeTimeout       = "timeout"        // request_timeout
	outcomeCanceled      = "canceled"       // the client has gone
	outcomeReplayed      = "replayed"       // answered from an earlier request with the same Idempotency-Key
)

var outcomes = []string{
	outcomeAnswered, outcomeClientCalls, outcomeRefused, outcomeUpstreamError, outcomeTimeout, outcomeCanceled, outcomeReplayed,
}

// report is what an operator wants to know of a request.
type report struct {
	outcome     string
	session     string // short hashes
	identity    string
	sandbox     string
	turns       int
	executions  int
	modelTime   time.Duration
	sandboxTime time.Duration
	// Tokens of all turns, as the upstream counts them.
	prompt, completion float64
}

// tell reports the request: in the access log, in placeholders and in metrics.
func (x *exchange) tell() {
	rep := &x.report
	if x.handle != nil {
		key, caller := x.handle.Keys()
		rep.session, rep.identity = session.Short(key), session.Short(caller)
	}
	rep.prompt, rep.completion = x.usage.Number("prompt_tokens"), x.usage.Number("completion_tokens")
	x.h.Metrics.ended(rep)
	ctx := x.r.Context()
	if fields, ok := ctx.Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		fields.Set(zap.Object("code_interpreter", rep))
	}
	if repl, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		const prefix = "http.code_interpreter."
		repl.Set(prefix+"outcome", rep.outcome)
		repl.Set(prefix+"session", rep.session)
		repl.Set(prefix+"identity", rep.identity)
		repl.Set(prefix+"sandbox", rep.sandbox)
		repl.Set(prefix+"turns", rep.turns)
		repl.Set(prefix+"executions", rep.executions)
		repl.Set(prefix+"model_ms", rep.modelTime.Milliseconds())
		repl.Set(prefix+"sandbox_ms", rep.sandboxTime.Milliseconds())
	}
}

// refuse answers a request that is not carried out, and reports it.
func (x *exchange) refuse(e *refusal) error {
	x.report.outcome = outcomeRefused
	x.tell()
	return e.answer(x.w)
}

// MarshalLogObject writes the report into a log entry.
func (r *report) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("outcome", r.outcome)
	enc.AddString("session", r.session)
	enc.AddString("identity", r.identity)
	enc.AddString("sandbox", r.sandbox)
	enc.AddInt("turns", r.turns)
	enc.AddInt("executions", r.executions)
	enc.AddDuration("model_time", r.modelTime)
	enc.AddDuration("sandbox_time", r.sandboxTime)
	return nil
}
