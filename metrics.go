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

package codeinterpreter

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// The metrics are those of the process. They outlive configurations, each of
// which has a registry of its own.
var (
	metrics        = handler.NewMetrics()
	sandboxMetrics = newSandboxCounters()
)

// registerMetrics makes the metrics visible in a configuration's registry, also
// when another handler of the configuration has done so.
func registerMetrics(r prometheus.Registerer) error {
	if err := metrics.Register(r); err != nil {
		return err
	}
	for _, c := range append(sandboxMetrics.all(), fleetCollector{}) {
		var known prometheus.AlreadyRegisteredError
		if err := r.Register(c); err != nil && !errors.As(err, &known) {
			return err
		}
	}
	return nil
}

func metricName(name string) string {
	return prometheus.BuildFQName(handler.MetricsNamespace, handler.MetricsSubsystem, name)
}

// sandboxCounters count what happens to sandboxes, for all backends together:
// those of a configuration come and go.
type sandboxCounters struct {
	created, lost, paused *prometheus.CounterVec   // engine
	deleted               *prometheus.CounterVec   // engine, reason
	failures              *prometheus.CounterVec   // engine, call, kind
	start                 *prometheus.HistogramVec // engine, source
}

// Sources of a sandbox.
const (
	sourceCreated = "created"
	sourceFound   = "found"
)

func newSandboxCounters() *sandboxCounters {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricName(name), Help: help}, labels)
	}
	return &sandboxCounters{
		created:  counter("sandboxes_created_total", "Sandboxes that were made.", "engine"),
		lost:     counter("sandboxes_lost_total", "Sandboxes that were gone or failed while a session or request had them.", "engine"),
		paused:   counter("sandboxes_paused_total", "Sandboxes of idle sessions that were paused.", "engine"),
		deleted:  counter("sandboxes_deleted_total", "Sandboxes that were ended, by reason.", "engine", "reason"),
		failures: counter("provider_errors_total", "Calls of the provider of sandboxes that failed, by kind.", "engine", "call", "kind"),
		start: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    metricName("sandbox_start_duration_seconds"),
			Help:    "Time that it took to get a sandbox, by whether it was created or found again.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"engine", "source"}),
	}
}

func (m *sandboxCounters) all() []prometheus.Collector {
	return []prometheus.Collector{m.created, m.lost, m.paused, m.deleted, m.failures, m.start}
}

// begin has the counters of an engine start at 0 rather than with their first
// event, which Prometheus would not count as an increase.
func (m *sandboxCounters) begin(engine string) {
	for _, counter := range []*prometheus.CounterVec{m.created, m.lost, m.paused} {
		counter.WithLabelValues(engine)
	}
	for _, reason := range session.Reasons {
		m.deleted.WithLabelValues(engine, string(reason))
	}
}

// kindLabels are the kinds of provider errors as label values.
var kindLabels = map[e2b.Kind]string{
	e2b.Unavailable:  "unavailable",
	e2b.RateLimited:  "rate_limited",
	e2b.Unauthorized: "unauthorized",
	e2b.Refused:      "refused",
	e2b.Gone:         "gone",
	e2b.ContextGone:  "context_gone",
	e2b.NotReady:     "not_ready",
	e2b.Interrupted:  "interrupted",
	e2b.TimedOut:     "timed_out",
	e2b.TooLarge:     "too_large",
	e2b.BadAnswer:    "bad_answer",
}

// count counts what a backend's pool tells of.
func (m *sandboxCounters) count(engine string, ev session.Event) {
	switch ev.Type {
	case session.Created:
		m.created.WithLabelValues(engine).Inc()
		m.start.WithLabelValues(engine, sourceCreated).Observe(ev.Took.Seconds())
	case session.Found:
		m.start.WithLabelValues(engine, sourceFound).Observe(ev.Took.Seconds())
	case session.Lost:
		m.lost.WithLabelValues(engine).Inc()
	case session.Deleted:
		m.deleted.WithLabelValues(engine, string(ev.Reason)).Inc()
	case session.Paused:
		m.paused.WithLabelValues(engine).Inc()
	case session.CallFailed:
		if failure, ok := errors.AsType[*e2b.Error](ev.Err); ok {
			m.failures.WithLabelValues(engine, failure.Op, or(kindLabels[failure.Kind], "other")).Inc()
		}
	case session.ProviderFailing, session.ProviderRecovered: // a gauge of the fleet
	}
}

var backendLabels = []string{"backend", "engine"}

var (
	sandboxesDesc = prometheus.NewDesc(metricName("sandboxes"),
		"Sandboxes of this moment, by state.", append(backendLabels, "state"), nil)
	limitDesc = prometheus.NewDesc(metricName("sandboxes_limit"),
		"Sandboxes that may exist at once, the option sessions max.", backendLabels, nil)
	waitingDesc = prometheus.NewDesc(metricName("waiting_requests"),
		"Requests that wait for room for a sandbox or for their turn in one.", backendLabels, nil)
	pausedDesc = prometheus.NewDesc(metricName("sandboxes_paused"),
		"Paused sandboxes at the provider, those of other gateways too, as of minutes ago.", backendLabels, nil)
	failingDesc = prometheus.NewDesc(metricName("provider_failing"),
		"1 while the provider keeps failing and programs that need a new sandbox are refused at once.", backendLabels, nil)
)

// fleetCollector reads the backends when metrics are asked for.
type fleetCollector struct{}

// Describe describes the metrics.
func (fleetCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{sandboxesDesc, limitDesc, waitingDesc, pausedDesc, failingDesc} {
		ch <- desc
	}
}

// backendName is what the metrics of a backend are labelled with. Two backends
// may share it while one of them ends.
type backendName struct{ id, engine string }

type backendGauges struct {
	states                          map[session.State]int
	limit, waiting, paused, failing int
}

// Collect reads the backends.
func (fleetCollector) Collect(ch chan<- prometheus.Metric) {
	sums := make(map[backendName]*backendGauges)
	for _, b := range fleet.all() {
		name := backendName{b.id, b.engine}
		if sums[name] == nil {
			sums[name] = &backendGauges{states: make(map[session.State]int)}
		}
		sums[name].add(b.pool.Stats())
	}
	for _, name := range slices.SortedFunc(maps.Keys(sums), func(a, b backendName) int {
		return cmp.Or(cmp.Compare(a.engine, b.engine), cmp.Compare(a.id, b.id))
	}) {
		g := sums[name]
		gauge := func(desc *prometheus.Desc, value int, labels ...string) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), append([]string{name.id, name.engine}, labels...)...)
		}
		for state, n := range g.states {
			gauge(sandboxesDesc, n, string(state))
		}
		gauge(limitDesc, g.limit)
		gauge(waitingDesc, g.waiting)
		gauge(pausedDesc, g.paused)
		gauge(failingDesc, g.failing)
	}
}

func (g *backendGauges) add(s session.Stats) {
	for state, n := range s.States {
		g.states[state] += n
	}
	g.limit = max(g.limit, s.Limits.Max)
	g.waiting += s.Waiting
	g.paused = max(g.paused, s.Paused) // each has seen all
	if s.Health.Failing {
		g.failing = 1
	}
}
