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

// Package stats has the arithmetic of the harness.
package stats

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Number is what can be averaged.
type Number interface {
	~int | ~int64 | ~float64
}

// Quantile returns the q-quantile of values (0 is the smallest, 1 the largest)
// by linear interpolation between the two nearest ranks, and 0 of none. values
// is left as it is.
func Quantile[T Number](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare[T])
	at := min(max(q, 0), 1) * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + T(float64(sorted[high]-sorted[low])*(at-float64(low)))
}

// Median returns the 0.5-quantile of values.
func Median[T Number](values []T) T { return Quantile(values, 0.5) }

// Deviation returns the median distance of values from a center.
func Deviation(values []float64, center float64) float64 {
	distances := make([]float64, len(values))
	for i, v := range values {
		distances[i] = math.Abs(v - center)
	}
	return Median(distances)
}

// Spread is how far a control that should be at center is from it: its own
// error in the median or, where that is larger, the usual error of one round.
func Spread(control []float64, center float64) float64 {
	return max(math.Abs(Median(control)-center), Deviation(control, center))
}

// Pairs returns f of the values of each round. The slices have one length.
func Pairs(a, b []float64, f func(a, b float64) float64) []float64 {
	out := make([]float64, 0, len(a))
	for i := range min(len(a), len(b)) {
		out = append(out, f(a[i], b[i]))
	}
	return out
}

// Ratio returns a / b, and NaN where b is 0: nothing was measured then.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// Difference returns a - b.
func Difference(a, b float64) float64 { return a - b }

// Micros returns d in microseconds.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
