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
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// Metrics counts what handlers do. One set is shared by all handlers of the
// process, and outlives their configurations. A nil *Metrics counts nothing.
// It is safe for concurrent use.
type Metrics struct {
	requests   *prometheus.CounterVec
	turns      prometheus.Histogram
	executions *prometheus.CounterVec
	duration   prometheus.Histogram
	wait       prometheus.Histogram
	output     prometheus.Counter
	tokens     *prometheus.CounterVec
	prompt     prometheus.Counter // of tokens
	completion prometheus.Counter
	failures   *prometheus.CounterVec
	keepalives prometheus.Counter
	retries    *prometheus.CounterVec
}

// What the names of all metrics of the module begin with.
const (
	MetricsNamespace = "caddy"
	MetricsSubsystem = "code_interpreter"
)

// NewMetrics returns collectors that are not registered anywhere yet.
func NewMetrics() *Metrics {
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: MetricsNamespace, Subsystem: MetricsSubsystem, Name: name, Help: help}
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: MetricsNamespace, Subsystem: MetricsSubsystem, Name: name, Help: help, Buckets: buckets})
	}
	seconds := []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
	m := &Metrics{
		requests: prometheus.NewCounterVec(counter("requests_total", "Requests with the tool, by outcome."), []string{"outcome"}),
		turns:    histogram("request_turns", "Requests to the upstream that one request of a client took.", []float64{1, 2, 3, 5, 8, 13, 21}),
		executions: prometheus.NewCounterVec(counter("executions_total",
			"Programs, by what became of them."), []string{"outcome"}),
		duration:   histogram("execution_duration_seconds", "Time that programs ran.", seconds),
		wait:       histogram("sandbox_wait_seconds", "Time that programs waited for their sandbox and their turn in it.", seconds),
		output:     prometheus.NewCounter(counter("output_bytes_total", "Bytes of output of programs, before they are shortened.")),
		tokens:     prometheus.NewCounterVec(counter("tokens_total", "Tokens of all turns, as the upstream counts them."), []string{"type"}),
		failures:   prometheus.NewCounterVec(counter("upstream_errors_total", "Turns that the upstream did not answer with 200 or 201, by status; 0 for none."), []string{"status"}),
		keepalives: prometheus.NewCounter(counter("keepalives_total", "Comment lines that kept silent streams alive.")),
		retries:    prometheus.NewCounterVec(counter("retries_total", "Turns that were sent to the upstream again, by reason."), []string{"reason"}),
	}
	m.prompt, m.completion = m.tokens.WithLabelValues("prompt"), m.tokens.WithLabelValues("completion")
	m.begin()
	return m
}

// begin has counters start at 0 rather than with their first event, which
// Prometheus would not count as an increase.
func (m *Metrics) begin() {
	for _, outcome := range outcomes {
		m.requests.WithLabelValues(outcome)
	}
	for status := session.Done; status <= session.Restarted; status++ {
		m.executions.WithLabelValues(status.String())
	}
	m.executions.WithLabelValues(programRaised)
	for _, reason := range []string{retryTransient, retryEcho} {
		m.retries.WithLabelValues(reason)
	}
}

// programRaised is the outcome of a program that ended with an exception.
const programRaised = "raised"

// Register registers the collectors, also when they are already there: a
// reload has a registry of its own, handlers of one configuration share it.
func (m *Metrics) Register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{
		m.requests, m.turns, m.executions, m.duration, m.wait, m.output, m.tokens, m.failures, m.keepalives, m.retries,
	} {
		var known prometheus.AlreadyRegisteredError
		if err := r.Register(c); err != nil && !errors.As(err, &known) {
			return err
		}
	}
	return nil
}

// Retry reasons.
const (
	retryTransient = "transient"
	retryEcho      = "refused_echo"
)

func (m *Metrics) retry(reason string) {
	if m != nil {
		m.retries.WithLabelValues(reason).Inc()
	}
}

func (m *Metrics) keepalive() {
	if m != nil {
		m.keepalives.Inc()
	}
}

func (m *Metrics) upstreamError(status int) {
	if m != nil {
		m.failures.WithLabelValues(strconv.Itoa(status)).Inc()
	}
}

// ran counts a program.
func (m *Metrics) ran(o session.Outcome, raised bool, output int) {
	if m == nil {
		return
	}
	outcome := o.Status.String()
	if o.Status == session.Done && raised {
		outcome = programRaised
	}
	m.executions.WithLabelValues(outcome).Inc()
	m.wait.Observe(o.Waited.Seconds())
	m.output.Add(float64(output))
	if o.Status != session.Unavailable && o.Status != session.Busy {
		m.duration.Observe(o.Ran.Seconds())
	}
}

// ended counts a request.
func (m *Metrics) ended(r *report) {
	if m == nil {
		return
	}
	m.requests.WithLabelValues(r.outcome).Inc()
	if r.turns > 0 {
		m.turns.Observe(float64(r.turns))
	}
	m.prompt.Add(r.prompt)
	m.completion.Add(r.completion)
}
