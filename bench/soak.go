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
	"fmt"
	"io"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/gateway"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/load"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/report"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/stats"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/upstream"
)

// samples is how often a soak looks at the memory.
const samples = 200

// soak has 16 connections make requests of three tool turns and an answer of 20
// chunks for a time: half of them in sessions, half with sandboxes of their own.
func (b *bench) soak(ctx context.Context, progress io.Writer, duration time.Duration) ([]report.Row, error) {
	p, err := gateway.Start(ctx, b.ours())
	if err != nil {
		return nil, err
	}
	defer p.Stop()
	c, err := load.Dial(ctx, p.Addr, soakRequests())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	watched, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan []float64, 1)
	go func() { done <- watch(watched, p, duration/samples) }()
	result := c.Run(ctx, duration)
	stop()
	memory := <-done
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case result.Requests() == 0:
		return nil, fmt.Errorf("no request was answered: %w; the gateway's log ends with: %s", result.Err, p.Log())
	case result.Failed > 0:
		fmt.Fprintf(progress, "soak: the first failure was: %v\n", result.Err)
	case len(memory) < 10:
		return nil, fmt.Errorf("the memory was seen %d times only: let it run for longer", len(memory))
	}
	spent, err := p.CPU()
	if err != nil {
		return nil, err
	}
	return soakRows(duration, result, memory, spent), nil
}

func soakRequests() []*load.Request {
	requests := make([]*load.Request, 16)
	for i := range requests {
		c := load.Chat{Content: load.Text, Size: kB, Stream: true, Tool: true, Script: upstream.Script{Turns: 3, Chunks: 20}}
		if i%2 == 0 {
			c.Session = "soak"
		}
		requests[i] = load.ChatRequest(c, fmt.Sprintf("bench-key-%d", i))
	}
	return requests
}

// watch returns the resident memory of the process in MiB at every tick until
// ctx ends.
func watch(ctx context.Context, p *gateway.Process, every time.Duration) []float64 {
	tick := time.NewTicker(max(every, time.Millisecond))
	defer tick.Stop()
	var seen []float64
	for {
		select {
		case <-ctx.Done():
			return seen
		case <-tick.C:
			m, err := p.Memory()
			if err != nil {
				return seen // the process has ended, which its requests show
			}
			seen = append(seen, float64(m.Now)/mB)
		}
	}
}

// soakRows compares the memory of the last twentieth to that after a tenth.
func soakRows(duration time.Duration, result *load.Result, memory []float64, spent time.Duration) []report.Row {
	n := len(memory)
	window := max(n/20, 1)
	early, late := stats.Median(memory[n/10:n/10+window]), stats.Median(memory[n-window:])
	growth := report.Single("soak", fmt.Sprintf("soak of %s, 16 connections: memory at the end / after a tenth", duration), report.Times,
		[]float64{late / early}, report.Goal(1.02, 1.10))
	growth.Base, growth.Ours, growth.BaseUnit = early, late, report.MiB
	return []report.Row{
		growth,
		report.Single("soak-failed", "soak: requests that failed", report.Count, []float64{float64(result.Failed)}, report.Goal(0, 0)),
		report.Single("soak-requests", "soak: requests of 3 tool turns and 20 chunks", report.Count, []float64{float64(result.Requests())}, report.Info()),
		report.Single("soak-cpu", "soak: CPU per request", report.Micros, []float64{stats.Micros(spent) / float64(result.Requests())}, report.Info()),
		report.Single("soak-p99", "soak: p99", report.Millis, []float64{stats.Micros(stats.Quantile(result.Latencies, 0.99)) / 1e3}, report.Info()),
	}
}
