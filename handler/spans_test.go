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

package handler_test

import (
	"context"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestSpansOfTurnsAndExecutionsBelongToTheRequest(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("x = 1"), says("done"))
		ctx, root := provider.Tracer("test").Start(context.Background(), "request")
		w := newResponse()
		f.serve(w, request(ctx, w, ask(nil)))
		root.End()
		w.says(t, "stop", "done")
	})
	spans := exporter.GetSpans()
	var names []string
	request := spans[len(spans)-1]
	for _, span := range spans[:len(spans)-1] {
		names = append(names, span.Name)
		parent := request
		if span.Name == "acquire sandbox" {
			parent = spans[2]
		}
		if span.Parent.SpanID() != parent.SpanContext.SpanID() {
			t.Errorf("the parent of %q is not %q", span.Name, parent.Name)
		}
	}
	if want := []string{"chat", "acquire sandbox", "execute_tool code_interpreter", "chat"}; !slices.Equal(names, want) {
		t.Fatalf("spans are %q, want %q", names, want)
	}
	if acquire, execute := spans[1], spans[2]; acquire.StartTime.Before(execute.StartTime) || acquire.EndTime.After(execute.EndTime) ||
		acquire.EndTime.Before(acquire.StartTime) {
		t.Errorf("the sandbox was got from %v to %v, which is not within %v to %v",
			acquire.StartTime, acquire.EndTime, execute.StartTime, execute.EndTime)
	}
	for _, want := range []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", "code_interpreter"),
		attribute.String("code_interpreter.status", "done"),
	} {
		if !slices.Contains(spans[2].Attributes, want) {
			t.Errorf("the execution's span has no %s=%s", want.Key, want.Value.String())
		}
	}
}
