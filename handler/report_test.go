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
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

func TestRequestsAreCountedByOutcome(t *testing.T) {
	metrics := handler.NewMetrics()
	registry := prometheus.NewPedanticRegistry()
	for range 2 { // two handlers share it
		if err := metrics.Register(registry); err != nil {
			t.Fatal(err)
		}
	}
	inBubble(t, func(c *handler.Config, _ *session.Limits) { c.Metrics = metrics }, func(f *fixture) {
		f.upstream.then(runs("x = 1"), says("done"))
		f.post(ask(nil)).says(t, "stop", "done")
		f.post(ask(map[string]any{"n": 2})).refuses(t, http.StatusBadRequest, "n must be 1")
		f.upstream.then(fails(http.StatusServiceUnavailable))
		f.post(ask(nil))
	})
	want := `
# HELP caddy_code_interpreter_executions_total Programs, by what became of them.
# TYPE caddy_code_interpreter_executions_total counter
caddy_code_interpreter_executions_total{outcome="busy"} 0
caddy_code_interpreter_executions_total{outcome="canceled"} 0
caddy_code_interpreter_executions_total{outcome="done"} 1
caddy_code_interpreter_executions_total{outcome="interrupted"} 0
caddy_code_interpreter_executions_total{outcome="raised"} 0
caddy_code_interpreter_executions_total{outcome="restarted"} 0
caddy_code_interpreter_executions_total{outcome="timed_out"} 0
caddy_code_interpreter_executions_total{outcome="too_much_output"} 0
caddy_code_interpreter_executions_total{outcome="unavailable"} 0
# HELP caddy_code_interpreter_requests_total Requests with the tool, by outcome.
# TYPE caddy_code_interpreter_requests_total counter
caddy_code_interpreter_requests_total{outcome="answered"} 1
caddy_code_interpreter_requests_total{outcome="canceled"} 0
caddy_code_interpreter_requests_total{outcome="client_calls"} 0
caddy_code_interpreter_requests_total{outcome="refused"} 1
caddy_code_interpreter_requests_total{outcome="replayed"} 0
caddy_code_interpreter_requests_total{outcome="timeout"} 0
caddy_code_interpreter_requests_total{outcome="upstream_error"} 1
# HELP caddy_code_interpreter_upstream_errors_total Turns that the upstream did not answer with 200 or 201, by status; 0 for none.
# TYPE caddy_code_interpreter_upstream_errors_total counter
caddy_code_interpreter_upstream_errors_total{status="503"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "caddy_code_interpreter_executions_total",
		"caddy_code_interpreter_requests_total", "caddy_code_interpreter_upstream_errors_total"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
}

// reverse_proxy answers with 499 when the client leaves before the upstream has
// said anything.
func TestClientThatLeavesIsNoErrorOfTheUpstream(t *testing.T) {
	for _, stream := range []bool{false, true} {
		inBubble(t, nil, func(f *fixture) {
			ctx, leave := context.WithCancel(context.Background())
			f.upstream.then(func(w http.ResponseWriter, _ *http.Request) error {
				leave()
				w.WriteHeader(499)
				return nil
			})
			if got := f.outcome(ctx, ask(map[string]any{"stream": stream})); got != "canceled" {
				t.Errorf("stream %v: the outcome is %q, want canceled", stream, got)
			}
		})
	}
}

// reverse_proxy has timeouts of its own.
func TestTimeoutOfTheUpstreamIsAnErrorOfTheUpstream(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(func(http.ResponseWriter, *http.Request) error {
			return caddyhttp.Error(http.StatusGatewayTimeout, context.DeadlineExceeded)
		}, silent)
		for _, want := range []string{"upstream_error", "timeout"} {
			if got := f.outcome(context.Background(), ask(nil)); got != want {
				t.Errorf("the outcome is %q, want %s", got, want)
			}
		}
	})
}

// outcome sends a request and returns what is reported of it.
func (f *fixture) outcome(ctx context.Context, body string) string {
	w := newResponse()
	r := request(ctx, w, body)
	f.serve(w, r)
	outcome, _ := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).GetString("http.code_interpreter.outcome")
	return outcome
}

func TestPlaceholdersReportTheRequest(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("x = 1"), says("done"))
		w := newResponse()
		r := request(context.Background(), w, ask(map[string]any{"metadata": inSession("a secret name")}), "Authorization", "Bearer sk-1")
		fields := &caddyhttp.ExtraLogFields{}
		r = r.WithContext(context.WithValue(r.Context(), caddyhttp.ExtraLogFieldsCtxKey, fields))
		f.serve(w, r)
		repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
		got := repl.ReplaceAll("{http.code_interpreter.outcome} {http.code_interpreter.turns} {http.code_interpreter.executions}", "")
		if want := "answered 2 1"; got != want {
			t.Errorf("placeholders say %q, want %q", got, want)
		}
		session, _ := repl.GetString("http.code_interpreter.session")
		if len(session) != 12 || strings.Contains(session, "secret") {
			t.Errorf("the session is reported as %q, want a short hash", session)
		}
	})
}

func TestNegativeTokensAreNotCounted(t *testing.T) {
	inBubble(t, func(c *handler.Config, _ *session.Limits) { c.Metrics = handler.NewMetrics() }, func(f *fixture) {
		f.upstream.then(turn{text: "done", usage: `{"prompt_tokens":-1,"completion_tokens":-2}`}.reply())
		f.post(ask(nil)).says(t, "stop", "done")
	})
}
