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
	"net/http"
	"slices"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/gateway"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/load"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/measure"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/report"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/stats"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/upstream"
)

// cell is what is measured in one go.
type cell struct {
	name string
	run  measurement
	long bool // not measured in CI, where the others have to do
}

// measurement measures a cell and returns its rows.
type measurement func(ctx context.Context, b *bench) ([]report.Row, error)

// finely measures in twice as many rounds: processes of the same gateway differ
// by about as much as the goal allows.
func finely(m measurement) measurement {
	return func(ctx context.Context, b *bench) ([]report.Row, error) {
		finer := *b
		finer.pace.Rounds *= 2
		return m(ctx, &finer)
	}
}

// Sizes of bodies.
const (
	kB = 1 << 10
	mB = 1 << 20
)

// textChunks is the length of a streamed answer.
const textChunks = 200

// cells are those of the table, in its order. Goals are those that the module
// aims at, gates those that a change must not break.
func cells() []cell {
	return []cell{
		{name: "other-path", run: finely(otherPath)},
		{name: "other-method", run: finely(otherMethod), long: true},
		{name: "1kb-16", run: finely(chat("1kb-16", "no tool, 1 KB, 16 connections", load.Chat{Content: load.Text, Size: kB}, 16, cpu(report.Goal(1.02, 1.10))))},
		{name: "1kb-1", run: chat("1kb-1", "no tool, 1 KB, 1 connection", load.Chat{Content: load.Text, Size: kB}, 1, p50(report.Goal(5, 30)), cpu(report.Info()))},
		{name: "100kb-16", run: chat("100kb-16", "no tool, 100 KB, 16 connections", load.Chat{Content: load.Text, Size: 100 * kB}, 16, cpu(report.Goal(1.05, 1.15)))},
		{name: "100kb-1", run: chat("100kb-1", "no tool, 100 KB, 1 connection", load.Chat{Content: load.Text, Size: 100 * kB}, 1, p50(report.Goal(30, 80)), cpu(report.Info())), long: true},
		{name: "5mb-images", run: chat("5mb-images", "no tool, 5 MB with images, 4 connections", load.Chat{Content: load.Images, Size: 5 * mB}, 4,
			cpu(report.Goal(1.20, 1.45).Loose()), peak(report.Goal(20+16, 20+32)))},
		{name: "5mb-code", run: chat("5mb-code", "no tool, 5 MB of escape-dense text, 4 connections", load.Chat{Content: load.Code, Size: 5 * mB}, 4,
			cpu(report.Goal(1.80, 2.40).Loose()), peak(report.Goal(20+16, 20+32)))},
		{name: "sse-16", run: chat("sse-16", "no tool, SSE, 16 connections", stream(false), 16, perChunk(report.Goal(1.00, 1.08))), long: true},
		{name: "sse-1", run: chat("sse-1", "no tool, SSE, 1 connection", stream(false), 1, first(report.Goal(1.00, 1.08)), perChunk(report.Goal(1.00, 1.08)))},
		{name: "turn-json", run: toolTurn("turn-json", "JSON", false, report.Goal(0.40, 0.80), report.Goal(50, 100))},
		{name: "turn-sse", run: toolTurn("turn-sse", "SSE", true, report.Goal(0.50, 0.80), report.Goal(60, 100))},
		{name: "tool-sse", run: toolStream("tool-sse", "whole tool stream of 200 chunks, 8 connections, as fast as it can", 8, 0, report.Aim(1.10))},
		{name: "tool-parts", run: toolParts},
		{name: "tool-paced", run: toolStream("tool-paced", "whole tool stream of 200 chunks, 16 connections, a chunk each 2 ms", 16, 2*time.Millisecond, report.Goal(1.10, 1.25)), long: true},
		{name: "open-streams", run: openStreams},
		{name: "creation", run: hiddenCreation},
		{name: "bytes", run: untouchedBytes},
	}
}

// same returns a request for each connection.
func same(n int, r *load.Request) []*load.Request {
	requests := make([]*load.Request, n)
	for i := range requests {
		requests[i] = r
	}
	return requests
}

// trio are the arms of a comparison under one load: plain Caddy, plain Caddy
// once more, and ours.
func (b *bench) trio(requests []*load.Request) []measure.Arm {
	return []measure.Arm{
		{Name: "plain", Command: b.plain(), Requests: requests},
		{Name: "control", Command: b.control(), Requests: requests},
		{Name: "ours", Command: b.ours(), Requests: requests},
	}
}

// metric makes a row of the rounds of a trio.
type metric func(id, title string, r measure.Rounds) report.Row

func ratio(suffix, what, unit string, l report.Limits, f func(measure.Sample) float64) metric {
	return func(id, title string, r measure.Rounds) report.Row {
		return report.Ratio(id+suffix, title+": "+what, unit, r.Series("ours", f), r.Series("plain", f), r.Series("control", f), l)
	}
}

func added(suffix, what, unit string, l report.Limits, f func(measure.Sample) float64) metric {
	return func(id, title string, r measure.Rounds) report.Row {
		return report.Added(id+suffix, title+": "+what, unit, r.Series("ours", f), r.Series("plain", f), r.Series("control", f), l)
	}
}

func cpu(l report.Limits) metric {
	return ratio("", "CPU per request", report.Micros, l, measure.Sample.PerRequest)
}

func perChunk(l report.Limits) metric {
	return ratio("", "CPU per chunk", report.Micros, l, func(s measure.Sample) float64 { return s.PerRequest() / textChunks })
}

func p50(l report.Limits) metric {
	return added("-p50", "added p50", report.Micros, l, func(s measure.Sample) float64 { return stats.Micros(s.P50) })
}

func first(l report.Limits) metric {
	return ratio("-first", "time to first event", report.Micros, l, func(s measure.Sample) float64 { return stats.Micros(s.First) })
}

func peak(l report.Limits) metric {
	return added("-memory", "peak memory beyond plain", report.MiB, l, func(s measure.Sample) float64 { return float64(s.Memory.Peak) / mB })
}

// pass compares requests that the module passes on unseen.
func (b *bench) pass(ctx context.Context, id, title string, requests []*load.Request, metrics ...metric) ([]report.Row, error) {
	rounds, err := measure.Compare(ctx, b.pace, b.trio(requests))
	if err != nil {
		return nil, err
	}
	return apply(metrics, id, title, rounds), nil
}

func apply(metrics []metric, id, title string, r measure.Rounds) []report.Row {
	rows := make([]report.Row, 0, len(metrics))
	for _, m := range metrics {
		rows = append(rows, m(id, title, r))
	}
	return rows
}

func otherPath(ctx context.Context, b *bench) ([]report.Row, error) {
	body := load.Chat{Content: load.Text, Size: kB}.Body()
	r := load.NewRequest(http.MethodPost, "/v1/embeddings", body, nil)
	return b.pass(ctx, "other-path", "another path, 1 KB, 16 connections", same(16, r), cpu(report.Goal(1.01, 1.10)))
}

func otherMethod(ctx context.Context, b *bench) ([]report.Row, error) {
	r := load.NewRequest(http.MethodGet, "/v1/models", nil, nil)
	return b.pass(ctx, "other-method", "another method, 16 connections", same(16, r), cpu(report.Goal(1.01, 1.10)))
}

// chat compares chat requests without the tool, also to other gateways.
func chat(id, title string, c load.Chat, conns int, metrics ...metric) measurement {
	return func(ctx context.Context, b *bench) ([]report.Row, error) {
		request := load.ChatRequest(c, "bench-key")
		arms := b.trio(same(conns, request))
		peers := slices.DeleteFunc(slices.Clone(b.peers), func(p peer) bool { return c.Stream && !p.streams })
		for _, p := range peers {
			arms = append(arms, arm(p.name, p.command(b.caddy.Upstream), same(conns, request.With(p.header(b.caddy.Upstream)))))
		}
		rounds, err := measure.Compare(ctx, b.pace, arms)
		if err != nil {
			return nil, err
		}
		rows := apply(metrics, id, title, rounds)
		for _, p := range peers {
			rows = append(rows, p.row(id, title, rounds))
		}
		return rows, nil
	}
}

// stream is a streamed chat of text.
func stream(tool bool) load.Chat {
	return load.Chat{Content: load.Text, Size: kB, Stream: true, Tool: tool, Script: upstream.Script{Chunks: textChunks}}
}

// toolStream compares a stream of text to a client that has the tool to one
// without it. With a pause the chunks come one by one, as models write, and
// without one as fast as they can.
func toolStream(id, title string, conns int, pause time.Duration, l report.Limits) measurement {
	return func(ctx context.Context, b *bench) ([]report.Row, error) {
		c := stream(false)
		c.Script.Pause = pause
		arms := b.trio(same(conns, load.ChatRequest(c, "bench-key")))
		c.Tool = true
		arms[2].Requests = same(conns, load.ChatRequest(c, "bench-key"))
		pace := b.pace
		pace.Slices = min(pace.Slices, 2) // a slice has a whole stream at least
		rounds, err := measure.Compare(ctx, pace, arms)
		if err != nil {
			return nil, err
		}
		return []report.Row{perChunk(l)(id, title, rounds)}, nil
	}
}

// openStreams compares the memory of gateways with many open streams.
func openStreams(ctx context.Context, b *bench) ([]report.Row, error) {
	c := stream(false)
	c.Script.Chunks, c.Script.Pause = 1<<20, b.heldPause
	plain := same(b.held, load.ChatRequest(c, "bench-key"))
	c.Tool = true
	arms := b.trio(plain)
	arms[2].Requests = same(b.held, load.ChatRequest(c, "bench-key"))
	rounds, err := measure.Hold(ctx, b.pace, arms)
	if err != nil {
		return nil, err
	}
	memory := ratio("", "memory", report.MiB, report.Goal(1.10, 1.25), func(s measure.Sample) float64 { return float64(s.Memory.Now) / mB })
	return []report.Row{memory("open-streams", fmt.Sprintf("%d open tool streams", b.held), rounds)}, nil
}

// arm is an arm with requests of its own.
func arm(name string, c gateway.Command, requests []*load.Request) measure.Arm {
	return measure.Arm{Name: name, Command: c, Requests: requests}
}
