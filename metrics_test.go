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
	"testing"

	"github.com/prometheus/client_golang/prometheus"

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
