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

// Package report judges what was measured and shows it: as a table, as JSON, as
// a plot, and as a part of the documentation.
package report

import (
	"math"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/stats"
)

// Units of values.
const (
	Times  = "x" // a ratio to plain Caddy
	Micros = "us"
	Millis = "ms"
	MiB    = "MiB"
	Count  = "count"
)

// Verdict says what a value is worth.
type Verdict string

// The verdicts.
const (
	Held      Verdict = "held"         // the goal
	Within    Verdict = "within noise" // above the goal by no more than the spread
	Missed    Verdict = "missed"       // the goal
	Unsettled Verdict = "unsettled"    // the control is off: the run says nothing
	Reported  Verdict = "-"            // no goal
)

// Row is a line of the table: one thing that was measured.
type Row struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Unit  string `json:"unit"`

	// Value is the median of the rounds, Control that of the control, which
	// is plain Caddy against plain Caddy. Spread is how far the control is
	// from what it should be, or the Noise of the limits if that is more. All
	// are in Unit.
	Value   float64  `json:"value"`
	Control *float64 `json:"control,omitempty"`
	Spread  float64  `json:"spread"`

	// Goal is what the value should not exceed, Gate what it must not.
	Goal *float64 `json:"goal,omitempty"`
	Gate *float64 `json:"gate,omitempty"`

	// Base and Ours are what was compared, in BaseUnit.
	Base     float64 `json:"base,omitempty"`
	Ours     float64 `json:"ours,omitempty"`
	BaseUnit string  `json:"base_unit,omitempty"`

	Verdict Verdict   `json:"verdict"`
	Rounds  []float64 `json:"rounds,omitempty"`
	// Off says that the control is further off than is tolerated.
	Off bool `json:"control_off,omitempty"`
}

// Limits are what a row is held to.
type Limits struct {
	Goal, Gate *float64
	// Tolerance is how far the control may be off, as a share of the base.
	Tolerance float64
	// Noise is the least that the spread is taken for, as a share of the base:
	// runs may differ by more than the control shows.
	Noise float64
}

// Goal returns limits with the usual tolerance.
func Goal(goal, gate float64) Limits {
	return Limits{Goal: &goal, Gate: &gate, Tolerance: 0.05}
}

// Aim returns limits without a gate, with the usual tolerance.
func Aim(goal float64) Limits { return Limits{Goal: &goal, Tolerance: 0.05} }

// Loose returns the limits with the tolerance and the noise for large bodies,
// whose cost depends on when memory is collected.
func (l Limits) Loose() Limits {
	l.Tolerance, l.Noise = 0.10, 0.08
	return l
}

// Info returns limits of what has no goal.
func Info() Limits { return Limits{Tolerance: 0.05} }

// Ratio returns the row that compares ours to base by division, round by round.
func Ratio(id, title, baseUnit string, ours, base, control []float64, l Limits) Row {
	row := Row{ID: id, Title: title, Unit: Times, BaseUnit: baseUnit}
	row.compare(ours, base, stats.Ratio)
	row.judge(stats.Pairs(control, base, stats.Ratio), 1, l, 1)
	return row
}

// Added returns the row that compares ours to base by subtraction.
func Added(id, title, unit string, ours, base, control []float64, l Limits) Row {
	row := Row{ID: id, Title: title, Unit: unit, BaseUnit: unit}
	row.compare(ours, base, stats.Difference)
	row.judge(stats.Pairs(control, base, stats.Difference), 0, l, math.Abs(row.Base))
	return row
}

// Single returns the row of a value that has no counterpart. Its spread is the
// usual distance of a round from the median.
func Single(id, title, unit string, values []float64, l Limits) Row {
	row := Row{ID: id, Title: title, Unit: unit, Value: stats.Median(values), Rounds: values}
	row.Spread = stats.Deviation(values, row.Value)
	row.settle(l)
	return row
}

func (r *Row) compare(ours, base []float64, f func(a, b float64) float64) {
	r.Ours, r.Base = stats.Median(ours), stats.Median(base)
	r.Rounds = stats.Pairs(ours, base, f)
	r.Value = stats.Median(r.Rounds)
}

// judge takes the control, which is center without noise, and whose unit the
// base is in.
func (r *Row) judge(control []float64, center float64, l Limits, base float64) {
	median := stats.Median(control)
	r.Control = &median
	r.Spread = max(stats.Spread(control, center), l.Noise*base)
	r.Off = math.Abs(median-center) > l.Tolerance*base
	r.settle(l)
}

func (r *Row) settle(l Limits) {
	r.Goal, r.Gate = l.Goal, l.Gate
	switch {
	case r.Goal == nil:
		r.Verdict = Reported
	case r.Value <= *r.Goal:
		r.Verdict = Held
	case r.Off:
		r.Verdict = Unsettled
	case r.Value <= *r.Goal+r.Spread:
		r.Verdict = Within
	default:
		r.Verdict = Missed
	}
}

// Broken says whether the row is beyond its gate, by more than noise explains.
func (r *Row) Broken() bool {
	return r.Gate != nil && !r.Off && r.Value-r.Spread > *r.Gate
}
