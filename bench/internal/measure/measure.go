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

// Package measure compares gateways under the same load, in rounds of fresh
// processes that take turns.
package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/gateway"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/load"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/stats"
)

// Pace says how long and how often is measured.
type Pace struct {
	// Rounds is how many times fresh processes are started.
	Rounds int `json:"rounds"`
	// Slices is how often in a round each arm gets its turn.
	Slices int `json:"slices"`
	// Slice is the time of one turn.
	Slice time.Duration `json:"slice_ns"`
	// WarmUp is the time of the turn of each arm that does not count.
	WarmUp time.Duration `json:"warm_up_ns"`
}

// Arm is a gateway under a load.
type Arm struct {
	Name string
	// Command starts the gateway. Arms whose commands have one name share the
	// process.
	Command gateway.Command
	// Requests are what the connections send, one each.
	Requests []*load.Request
}

// Sample is what one arm did in one round.
type Sample struct {
	Requests int
	CPU      time.Duration // of the process, while the arm had its turns
	P50, P99 time.Duration // of whole requests
	First    time.Duration // median up to the first byte of the body
	Memory   gateway.Memory
}

// PerRequest returns the CPU time of a request in microseconds.
func (s Sample) PerRequest() float64 { return stats.Micros(s.CPU) / float64(s.Requests) }

// Rounds has the samples of each arm, by its name, in the order of the rounds.
type Rounds map[string][]Sample

// Series returns one number of each round.
func (r Rounds) Series(arm string, f func(Sample) float64) []float64 {
	series := make([]float64, 0, len(r[arm]))
	for _, s := range r[arm] {
		series = append(series, f(s))
	}
	return series
}

// Compare measures arms that send requests as fast as they are answered.
func Compare(ctx context.Context, p Pace, arms []Arm) (Rounds, error) {
	return rounds(ctx, p, arms, func(ctx context.Context, round int, runners []*runner) error {
		for _, r := range runners {
			if _, err := r.turn(ctx, p.WarmUp); err != nil {
				return err
			}
			r.result, r.cpu = load.Result{}, 0
		}
		for slice := range p.Slices {
			for i := range runners {
				r := runners[(i+slice+round)%len(runners)]
				if err := r.measure(ctx, p.Slice); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Hold measures arms that have streams open, one arm after the other. The
// memory of a sample is that of the open streams.
func Hold(ctx context.Context, p Pace, arms []Arm) (Rounds, error) {
	return rounds(ctx, p, arms, func(ctx context.Context, round int, runners []*runner) error {
		for i := range runners {
			if err := runners[(i+round)%len(runners)].hold(ctx, time.Duration(p.Slices)*p.Slice); err != nil {
				return err
			}
		}
		return nil
	})
}

// rounds starts the processes of each round, has it measured, and stops them.
func rounds(ctx context.Context, p Pace, arms []Arm, measure func(context.Context, int, []*runner) error) (Rounds, error) {
	all := Rounds{}
	for round := range p.Rounds {
		err := func() error {
			runners, stop, err := start(ctx, arms)
			defer stop()
			if err != nil {
				return err
			}
			if err := measure(ctx, round, runners); err != nil {
				return err
			}
			for _, r := range runners {
				s, err := r.sample()
				if err != nil {
					return err
				}
				all[r.arm.Name] = append(all[r.arm.Name], s)
			}
			return nil
		}()
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	return all, nil
}

// start starts the processes of the arms and connects to them. stop also has
// to be called when there is an error.
func start(ctx context.Context, arms []Arm) (runners []*runner, stop func(), err error) {
	processes := map[string]*gateway.Process{}
	stop = func() {
		for _, r := range runners {
			r.client.Close()
		}
		for _, p := range processes {
			p.Stop()
		}
	}
	for _, arm := range arms {
		p := processes[arm.Command.Name]
		if p == nil {
			if p, err = gateway.Start(ctx, arm.Command); err != nil {
				return runners, stop, err
			}
			processes[arm.Command.Name] = p
		}
		client, err := load.Dial(ctx, p.Addr, arm.Requests)
		if err != nil {
			return runners, stop, err
		}
		runners = append(runners, &runner{arm: arm, process: p, client: client})
	}
	return runners, stop, nil
}

// runner is an arm in a round.
type runner struct {
	arm     Arm
	process *gateway.Process
	client  *load.Client
	result  load.Result
	cpu     time.Duration
	held    *gateway.Memory
}

var errNothing = errors.New("no request was answered in time")

// turn sends requests for a time and returns the CPU time that it took.
func (r *runner) turn(ctx context.Context, d time.Duration) (time.Duration, error) {
	before, err := r.process.CPU()
	if err != nil {
		return 0, err
	}
	result := r.client.Run(ctx, d)
	after, err := r.process.CPU()
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		return 0, err
	case result.Failed > 0:
		return 0, fmt.Errorf("%s: %d requests failed: %w; the gateway's log ends with: %s", r.arm.Name, result.Failed, result.Err, r.process.Log())
	case result.Requests() == 0:
		return 0, fmt.Errorf("%s: %w", r.arm.Name, errNothing)
	}
	r.result.Add(result)
	return after - before, nil
}

func (r *runner) measure(ctx context.Context, d time.Duration) error {
	cpu, err := r.turn(ctx, d)
	r.cpu += cpu
	return err
}

// hold opens the streams, and takes the most memory that is seen in the time.
func (r *runner) hold(ctx context.Context, d time.Duration) error {
	h, err := r.client.Hold(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w; the gateway's log ends with: %s", r.arm.Name, err, r.process.Log())
	}
	defer h.Release()
	var seen []int64
	tick := time.NewTicker(max(d/20, time.Millisecond))
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		m, err := r.process.Memory()
		if err != nil {
			return err
		}
		seen = append(seen, m.Now)
	}
	if len(seen) == 0 {
		return fmt.Errorf("%s: %w", r.arm.Name, errNothing)
	}
	most := slices.Max(seen)
	r.held = &gateway.Memory{Now: most, Peak: most}
	return nil
}

func (r *runner) sample() (Sample, error) {
	s := Sample{
		Requests: r.result.Requests(),
		CPU:      r.cpu,
		P50:      stats.Median(r.result.Latencies),
		P99:      stats.Quantile(r.result.Latencies, 0.99),
		First:    stats.Median(r.result.First),
	}
	if r.held != nil {
		s.Memory = *r.held
		return s, nil
	}
	var err error
	s.Memory, err = r.process.Memory()
	return s, err
}
