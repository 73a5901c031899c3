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
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	metricUse  = regexp.MustCompile(`\bcaddy_code_interpreter_[a-z_]+`)
	labelUse   = regexp.MustCompile(`(caddy_code_interpreter_[a-z_]+)\{([^}]*)\}`)
	groupUse   = regexp.MustCompile(`\bby \(([^)]*)\)`)
	legendUse  = regexp.MustCompile(`"legendFormat": *"[^"]*\{\{([^}]*)\}\}`)
	descOfName = regexp.MustCompile(`fqName: "([^"]*)".*variableLabels: \{([^}]*)\}`)
)

// collected is a registry that remembers what is registered.
type collected struct {
	prometheus.Registerer
	collectors []prometheus.Collector
}

func (c *collected) Register(collector prometheus.Collector) error {
	c.collectors = append(c.collectors, collector)
	return c.Registerer.Register(collector)
}

// ourMetrics returns the names of all metrics, as series have them, and their
// labels.
func ourMetrics(t *testing.T) map[string]string {
	t.Helper()
	registry := &collected{Registerer: prometheus.NewPedanticRegistry()}
	if err := registerMetrics(registry); err != nil {
		t.Fatal(err)
	}
	names := make(map[string]string)
	for _, collector := range registry.collectors {
		_, histogram := collector.(prometheus.Histogram)
		if _, vector := collector.(*prometheus.HistogramVec); vector {
			histogram = true
		}
		descs := make(chan *prometheus.Desc, 100)
		collector.Describe(descs)
		close(descs)
		for desc := range descs {
			match := descOfName.FindStringSubmatch(desc.String())
			if match == nil {
				t.Fatalf("a metric is described as %s", desc)
			}
			if !histogram {
				names[match[1]] = match[2]
				continue
			}
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				names[match[1]+suffix] = match[2]
			}
		}
	}
	return names
}

// TestDashboardAndAlertsUseMetricsThatExist finds panels and rules that would
// stay empty for ever.
func TestDashboardAndAlertsUseMetricsThatExist(t *testing.T) {
	names := ourMetrics(t)
	for _, file := range []string{"docs/grafana-dashboard.json", "docs/alerts.yml"} {
		text := readText(t, file)
		uses := metricUse.FindAllString(text, -1)
		if len(uses) == 0 {
			t.Errorf("%s uses no metric", file)
		}
		for _, name := range uses {
			if _, ok := names[name]; !ok {
				t.Errorf("%s uses %s, which does not exist", file, name)
			}
		}
		labels := "," + strings.Join(slices.Collect(maps.Values(names)), ",") + ",le,instance,"
		for _, match := range append(groupUse.FindAllStringSubmatch(text, -1), legendUse.FindAllStringSubmatch(text, -1)...) {
			for label := range strings.SplitSeq(match[1], ",") {
				if label = strings.TrimSpace(label); !strings.Contains(labels, ","+label+",") {
					t.Errorf("%s groups by %q, which no metric has", file, label)
				}
			}
		}
		for _, match := range labelUse.FindAllStringSubmatch(strings.ReplaceAll(text, `\"`, `"`), -1) {
			for matcher := range strings.SplitSeq(match[2], ",") {
				label := strings.TrimRight(strings.SplitN(matcher, `"`, 2)[0], "=~!")
				if label != "instance" && !strings.Contains(","+names[match[1]]+",", ","+label+",") {
					t.Errorf("%s selects %s by %s, which has only {%s}", file, match[1], label, names[match[1]])
				}
			}
		}
	}
}

// TestMetricsAreDocumented compares the table of metrics to what there is.
func TestMetricsAreDocumented(t *testing.T) {
	text := readText(t, "docs/OPERATIONS.md")
	for name := range ourMetrics(t) {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if !strings.Contains(text, "`"+strings.TrimPrefix(base, "caddy_code_interpreter_")+"`") {
			t.Errorf("docs/OPERATIONS.md does not have %s", base)
		}
	}
}

func TestDashboardHasPanelsWithQueries(t *testing.T) {
	var dashboard struct {
		Title  string `json:"title"`
		Panels []struct {
			ID      int    `json:"id"`
			Type    string `json:"type"`
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(readText(t, "docs/grafana-dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	ids := make(map[int]bool)
	for _, panel := range dashboard.Panels {
		if ids[panel.ID] || panel.Title == "" {
			t.Errorf("panel %d %q: its id is taken, or it has no title", panel.ID, panel.Title)
		}
		ids[panel.ID] = true
		for _, target := range panel.Targets {
			if target.Expr == "" {
				t.Errorf("panel %q has an empty query", panel.Title)
			}
		}
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("panel %q has no query", panel.Title)
		}
	}
	if dashboard.Title == "" || len(ids) < 10 {
		t.Errorf("the dashboard %q has %d panels", dashboard.Title, len(ids))
	}
}

// TestPrometheusTakesRulesAndQueries has Prometheus' own tool read the alerts,
// and the dashboard's queries as rules.
func TestPrometheusTakesRulesAndQueries(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is not installed: scripts/setup.sh test installs it")
	}
	var dashboard struct {
		Panels []struct {
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(readText(t, "docs/grafana-dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	grafana := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$price", "0.133")
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			rules = append(rules, rule{"dashboard:query", grafana.Replace(target.Expr)})
		}
	}
	queries, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "queries.yml") // JSON is YAML
	writeFile(t, file, string(queries))
	for _, rules := range []string{"docs/alerts.yml", file} {
		out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "--lint=none", rules).CombinedOutput()
		if err != nil {
			t.Errorf("promtool does not take %s: %v\n%s", rules, err, out)
		}
	}
}

// TestAlertsFireForTheirFailures has Prometheus' own tool play each failure.
func TestAlertsFireForTheirFailures(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is not installed: scripts/setup.sh test installs it")
	}
	out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", "testdata/alerts_test.yml").CombinedOutput()
	if err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
