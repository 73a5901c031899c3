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

package stats

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestQuantileInterpolatesBetweenRanks(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{nil, 0.5, 0},
		{[]float64{7}, 0.99, 7},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 0.5, 2.5},
		{[]float64{4, 1, 3, 2}, 0, 1},
		{[]float64{4, 1, 3, 2}, 1, 4},
		{[]float64{0, 10}, 0.9, 9},
		{[]float64{1, 2}, 7, 2},
		{[]float64{1, 2}, -1, 1},
	} {
		if got := Quantile(tt.values, tt.q); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("Quantile(%v, %v) = %v, want %v", tt.values, tt.q, got, tt.want)
		}
	}
}

func TestQuantileLeavesItsValuesInOrder(t *testing.T) {
	values := []time.Duration{3, 1, 2}
	if got := Median(values); got != 2 {
		t.Errorf("Median = %v, want 2", got)
	}
	if !slices.Equal(values, []time.Duration{3, 1, 2}) {
		t.Errorf("Median sorted its argument: %v", values)
	}
}

func TestSpreadIsTheLargerOfBiasAndScatter(t *testing.T) {
	for _, tt := range []struct {
		name    string
		control []float64
		want    float64
	}{
		{"biased", []float64{1.05, 1.05, 1.05}, 0.05},
		{"scattered around the center", []float64{0.9, 1.0, 1.1, 0.92, 1.08}, 0.08},
		{"one bad round", []float64{1, 1, 1, 1, 3}, 0},
	} {
		if got := Spread(tt.control, 1); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: Spread = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestRatiosArePairedByRound(t *testing.T) {
	got := Pairs([]float64{2, 9, 5}, []float64{1, 3}, Ratio)
	if !slices.Equal(got, []float64{2, 3}) {
		t.Errorf("Pairs = %v, want [2 3]", got)
	}
	if !math.IsNaN(Ratio(1, 0)) {
		t.Error("a ratio to nothing is a number")
	}
	if got := Micros(1500 * time.Nanosecond); got != 1.5 {
		t.Errorf("Micros = %v, want 1.5", got)
	}
}
