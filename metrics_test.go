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
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// provisionTwo provisions two handlers in one configuration and returns its registry.
func provisionTwo(t *testing.T, config string) (*CodeInterpreter, *prometheus.Registry) {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	t.Cleanup(func() {
		cancel()
		drains.work.Wait()
	})
	var module any
	for range 2 {
		var err error
		if module, err = ctx.LoadModuleByID(moduleID, []byte(config)); err != nil {
			t.Fatal(err)
		}
	}
	return module.(*CodeInterpreter), ctx.GetMetricsRegistry()
}

// total sums the values of a counter or gauge over the labels that are given.
func total(t *testing.T, r prometheus.Gatherer, name string, labels ...string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
	metrics:
		for _, m := range family.GetMetric() {
			have := make(map[string]string)
			for _, pair := range m.GetLabel() {
				have[pair.GetName()] = pair.GetValue()
			}
			for i := 0; i < len(labels); i += 2 {
				if have[labels[i]] != labels[i+1] {
					continue metrics
				}
			}
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

func TestMetricsSurviveReloadsAndAreSharedByHandlers(t *testing.T) {
	f := newFakeE2B(t)
	before, registry := provisionTwo(t, f.config(t, nil, nil))
	const name = "caddy_code_interpreter_requests_total"
	start := total(t, registry, name, "outcome", "answered")
	serve(t, before, chat("s"), caddyhttp.HandlerFunc(new(upstream).ServeHTTP))

	after, registry := provisionTwo(t, f.config(t, nil, nil)) // a reload
	serve(t, after, chat("s"), caddyhttp.HandlerFunc(new(upstream).ServeHTTP))
	if got := total(t, registry, name, "outcome", "answered") - start; got != 2 {
		t.Errorf("%v requests are counted, want those of both configurations, 2", got)
	}
}

func TestSandboxesAreCounted(t *testing.T) {
	f := newFakeE2B(t)
	c, registry := provisionTwo(t, f.config(t, nil, map[string]any{"max": 7}))
	name := func(n string) string { return "caddy_code_interpreter_" + n }
	created := total(t, registry, name("sandboxes_created_total"), "engine", "e2b")
	ended := total(t, registry, name("sandboxes_deleted_total"), "reason", "request")
	refused := total(t, registry, name("provider_errors_total"), "call", "create", "kind", "unauthorized")
	ask(t, c, "one")
	ask(t, c, "")
	<-f.deleted
	f.refuse(http.StatusUnauthorized)
	for range 5 {
		ask(t, c, "two")
	}
	for _, tc := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"sandboxes_created_total", []string{"engine", "e2b"}, created + 2},
		{"provider_errors_total", []string{"call", "create", "kind", "unauthorized"}, refused + 5},
		{"sandboxes", []string{"backend", c.lease.backend.id, "state", "idle"}, 1},
		{"sandboxes", []string{"backend", c.lease.backend.id, "state", "busy"}, 0},
		{"sandboxes_limit", []string{"backend", c.lease.backend.id, "engine", "e2b"}, 7},
		{"waiting_requests", []string{"engine", "e2b"}, 0},
		{"provider_failing", []string{"backend", c.lease.backend.id}, 1},
	} {
		if got := total(t, registry, name(tc.name), tc.labels...); got != tc.want {
			t.Errorf("%s%v is %v, want %v", tc.name, tc.labels, got, tc.want)
		}
	}
	c.lease.backend.pool.Recycle()
	<-f.deleted
	cleanup(t, c)
	if got := total(t, registry, name("sandboxes_deleted_total"), "reason", "request"); got != ended+1 {
		t.Errorf("%v ends of a request's sandbox are counted, want %v", got, ended+1)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	health := c.lease.backend.stats().Health
	if !health.Failing || health.Failures != 5 || health.NextTry.Before(health.Since) || !strings.Contains(health.Error, "status 401") {
		t.Errorf("the health is %+v", health)
	}
}

// cleanup waits until nothing of a handler's pool is on its way.
func cleanup(t *testing.T, c *CodeInterpreter) {
	t.Helper()
	if err := c.lease.backend.pool.Drain(t.Context(), false); err != nil {
		t.Error(err)
	}
}

// TestBackendsWithOneNameAreOneSeries has a backend end while another one with
// the same fingerprint begins, which a registry would refuse to show twice.
func TestBackendsWithOneNameAreOneSeries(t *testing.T) {
	f := newFakeE2B(t)
	first, _ := provisionTwo(t, f.config(t, nil, nil))
	config := strings.Replace(f.config(t, nil, nil), "{", `{"max_read": 1000, `, 1)
	second, registry := provisionTwo(t, config)
	if first.lease.backend == second.lease.backend || first.lease.backend.id != second.lease.backend.id {
		t.Fatal("these are not two backends with one name")
	}
	ask(t, first, "one")
	ask(t, second, "one")
	if got := total(t, registry, "caddy_code_interpreter_sandboxes", "state", "idle"); got != 2 {
		t.Errorf("%v idle sandboxes, want those of both", got)
	}
}
