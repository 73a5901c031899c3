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
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// tracer is the name of our spans' scope.
const tracer = "github.com/caddy-code-interpreter/caddy-code-interpreter"

// traced says whether the request has a span, as it has with the tracing
// directive. Without one there are none below it.
func traced(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsValid() }

// startSpan starts a span below that of the request. Names and attributes are
// those of the semantic conventions for generative AI:
// https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
func startSpan(ctx context.Context, name string, kind trace.SpanKind, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	return trace.SpanFromContext(ctx).TracerProvider().Tracer(tracer).Start(ctx, name, append(options, trace.WithSpanKind(kind))...)
}

// startTurn starts the span of a request to the upstream.
func (x *exchange) startTurn(ctx context.Context) (context.Context, trace.Span) {
	if !traced(ctx) {
		return ctx, noop.Span{}
	}
	return startSpan(ctx, "chat", trace.SpanKindClient, trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"), attribute.Int("code_interpreter.turn", x.report.turns)))
}

// endTurn ends it.
func endTurn(span trace.Span, status int, err error) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if err != nil {
		span.SetStatus(codes.Error, "the upstream did not answer to the end")
	}
	span.End()
}

// startExecution starts the span of a program.
func (x *exchange) startExecution() trace.Span {
	if !traced(x.ctx) {
		return noop.Span{}
	}
	_, span := startSpan(x.ctx, "execute_tool code_interpreter", trace.SpanKindInternal, trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", "code_interpreter"), attribute.String("gen_ai.tool.type", "extension")))
	return span
}

// endExecution ends it. What it waited for is known only now: a span below it
// tells how long that took.
func endExecution(span trace.Span, o session.Outcome) {
	if !span.IsRecording() {
		return
	}
	began := time.Now().Add(-o.Waited - o.Ran)
	_, acquire := startSpan(trace.ContextWithSpan(context.Background(), span), "acquire sandbox", trace.SpanKindInternal,
		trace.WithTimestamp(began), trace.WithAttributes(attribute.String("code_interpreter.sandbox", o.SandboxID)))
	acquire.End(trace.WithTimestamp(began.Add(o.Waited)))
	span.SetAttributes(
		attribute.String("code_interpreter.status", o.Status.String()),
		attribute.String("code_interpreter.sandbox", o.SandboxID),
		attribute.Int64("code_interpreter.waited_ms", o.Waited.Milliseconds()),
		attribute.Int64("code_interpreter.ran_ms", o.Ran.Milliseconds()))
	if o.Status != session.Done {
		span.SetStatus(codes.Error, o.Status.String())
	}
	span.End()
}
