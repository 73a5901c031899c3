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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/report"
)

// measureAll measures the cells and returns their rows. A cell of which a
// control is off, or a gate is broken, is measured again, as often as the scale
// allows and while there is time for it; the best of its runs counts. What is a
// gross regression is one in each of them.
func (b *bench) measureAll(ctx context.Context, progress io.Writer, cells []cell) ([]report.Row, error) {
	end := b.started.Add(b.budget)
	ctx, cancel := context.WithDeadline(ctx, b.started.Add(b.deadline))
	defer cancel()
	var rows []report.Row
	var again []int // cells to measure again
	measured := make([][]report.Row, len(cells))
	took := make([]time.Duration, len(cells))
	for i, c := range cells {
		var err error
		if measured[i], took[i], err = b.timed(ctx, progress, c); err != nil {
			return nil, err
		}
		if doubtful(measured[i]) {
			again = append(again, i)
		}
	}
	for range b.repeats {
		var still []int
		for _, i := range again {
			if time.Until(end) < took[i]+took[i]/4 {
				fmt.Fprintf(progress, "%s: no time to measure it again\n", cells[i].name)
				continue
			}
			fmt.Fprintf(progress, "%s: the control is off or a gate is broken, once more\n", cells[i].name)
			repeated, _, err := b.timed(ctx, progress, cells[i])
			if err != nil {
				return nil, err
			}
			if better(repeated, measured[i]) {
				measured[i] = repeated
			}
			if doubtful(measured[i]) {
				still = append(still, i)
			}
		}
		again = still
	}
	for _, m := range measured {
		rows = append(rows, m...)
	}
	return rows, nil
}

// timed measures a cell and says what came of it.
func (b *bench) timed(ctx context.Context, progress io.Writer, c cell) ([]report.Row, time.Duration, error) {
	start := time.Now()
	rows, err := c.run(ctx, b)
	took := time.Since(start)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, took, fmt.Errorf("%s: the run did not end within %s: is the machine busy?", c.name, b.deadline)
	case err != nil:
		return nil, took, fmt.Errorf("%s: %w", c.name, err)
	}
	for _, row := range rows {
		fmt.Fprintf(progress, "%s: %s %.4g %s (spread %.2g) in %.0fs\n", c.name, row.ID, row.Value, row.Unit, row.Spread, took.Seconds())
	}
	return rows, took, nil
}

// doubtful says whether a control of the rows is off, or a gate is broken.
func doubtful(rows []report.Row) bool {
	return broken(rows) || slices.ContainsFunc(rows, func(r report.Row) bool { return r.Off })
}

func broken(rows []report.Row) bool {
	return slices.ContainsFunc(rows, func(r report.Row) bool { return r.Broken() })
}

// better says whether one run of a cell says more than another one.
func better(a, b []report.Row) bool {
	if broken(a) != broken(b) {
		return broken(b)
	}
	return noise(a) < noise(b)
}

// noise is how far the worst control of the rows is off, as a share of what it
// controls.
func noise(rows []report.Row) float64 {
	worst := 0.0
	for _, r := range rows {
		switch {
		case r.Control == nil:
		case r.Unit == report.Times:
			worst = max(worst, math.Abs(*r.Control-1))
		case r.Base != 0:
			worst = max(worst, math.Abs(*r.Control/r.Base))
		}
	}
	return worst
}
