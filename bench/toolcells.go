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
	"strconv"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/gateway"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/load"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/measure"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/report"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/stats"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/upstream"
)

// loops is the number of turns that is compared to one turn, so that what a
// request costs but once cancels out.
const loops = 9

// perTurn returns what one further turn costs.
func perTurn(many, one []float64) []float64 {
	return stats.Pairs(many, one, func(many, one float64) float64 { return (many - one) / (loops - 1) })
}

// turns are requests of which each has a number of turns. Each connection has
// a caller and a session of its own: nobody waits for anybody.
func turns(conns, n int, streamed bool) []*load.Request {
	requests := make([]*load.Request, conns)
	for i := range requests {
		requests[i] = load.ChatRequest(load.Chat{
			Content: load.Text, Size: kB, Stream: streamed, Tool: true, Session: "session", Script: upstream.Script{Turns: n, Chunks: 1},
		}, fmt.Sprintf("bench-key-%d", i))
	}
	return requests
}

// toolTurn measures one turn with code: how long it takes, and what CPU time
// it costs beyond that of a request through plain Caddy.
func toolTurn(id, form string, streamed bool, wall, own report.Limits) measurement {
	return func(ctx context.Context, b *bench) ([]report.Row, error) {
		alone, err := b.turnRounds(ctx, 1, streamed)
		if err != nil {
			return nil, err
		}
		crowd, err := b.turnRounds(ctx, 16, streamed)
		if err != nil {
			return nil, err
		}
		millis := func(s measure.Sample) float64 { return stats.Micros(s.P50) / 1e3 }
		took := perTurn(alone.Series("nine", millis), alone.Series("one", millis))
		cost := perTurn(crowd.Series("nine", measure.Sample.PerRequest), crowd.Series("one", measure.Sample.PerRequest))
		return []report.Row{
			report.Single(id+"-wall", "one tool turn, 1 KB, "+form+", 1 connection: time", report.Millis, took, wall),
			report.Added(id+"-cpu", "one tool turn, 1 KB, "+form+", 16 connections: own CPU over a plain hop", report.Micros, cost,
				crowd.Series("plain", measure.Sample.PerRequest), crowd.Series("control", measure.Sample.PerRequest), own),
		}, nil
	}
}

// toolParts takes what a stream of text costs apart: what a request with the
// tool costs once, and what each chunk does.
func toolParts(ctx context.Context, b *bench) ([]report.Row, error) {
	const conns = 8
	arms := make([]measure.Arm, 0, 6)
	for _, chunks := range []int{1, textChunks} {
		for _, a := range []struct {
			name    string
			command gateway.Command
			tool    bool
		}{{"plain", b.plain(), false}, {"control", b.control(), false}, {"ours", b.ours(), true}} {
			c := stream(a.tool)
			c.Script.Chunks = chunks
			arms = append(arms, arm(a.name+strconv.Itoa(chunks), a.command, same(conns, load.ChatRequest(c, "bench-key"))))
		}
	}
	rounds, err := measure.Compare(ctx, b.pace, arms)
	if err != nil {
		return nil, err
	}
	once := func(name string) []float64 { return rounds.Series(name+"1", measure.Sample.PerRequest) }
	further := func(name string) []float64 {
		return stats.Pairs(rounds.Series(name+strconv.Itoa(textChunks), measure.Sample.PerRequest), once(name), func(many, one float64) float64 {
			return (many - one) / (textChunks - 1)
		})
	}
	return []report.Row{
		report.Added("tool-once", "tool stream of one chunk, 8 connections: added CPU per request", report.Micros, once("ours"), once("plain"), once("control"), report.Info()),
		report.Ratio("tool-further", "tool stream, 8 connections: CPU of each further text chunk", report.Micros, further("ours"), further("plain"), further("control"), report.Goal(1.10, 1.25)),
	}, nil
}

func (b *bench) turnRounds(ctx context.Context, conns int, streamed bool) (measure.Rounds, error) {
	hop := same(conns, load.ChatRequest(load.Chat{Content: load.Text, Size: kB, Stream: streamed, Script: upstream.Script{Chunks: 1}}, "bench-key"))
	return measure.Compare(ctx, b.pace, []measure.Arm{
		arm("plain", b.plain(), hop),
		arm("control", b.control(), hop),
		arm("one", b.ours(), turns(conns, 1, streamed)),
		arm("nine", b.ours(), turns(conns, loops, streamed)),
	})
}

// hiddenCreation measures how much longer a request takes when the creation of
// its sandbox takes its time: while code streams for longer than that, and, to
// show that there is something to hide, when the code comes in one piece.
func hiddenCreation(ctx context.Context, b *bench) ([]report.Row, error) {
	request := func(streamed bool) []*load.Request {
		return same(1, load.ChatRequest(load.Chat{
			Content: load.Text, Size: kB, Stream: streamed, Tool: true, Script: upstream.Script{Turns: 1, Chunks: 1, Code: streaming},
		}, "bench-key"))
	}
	slow := b.caddy.WithTool("slow", b.slowBoxes)
	pace := b.pace // one request to warm up and one that counts: these take their time
	pace.WarmUp, pace.Slice, pace.Slices = time.Millisecond, time.Millisecond, 1
	rounds, err := measure.Compare(ctx, pace, []measure.Arm{
		arm("plain", b.ours(), request(true)),
		arm("control", b.caddy.WithTool("control", b.boxes), request(true)),
		arm("ours", slow, request(true)),
		arm("at once", b.ours(), request(false)),
		arm("shown", slow, request(false)),
	})
	if err != nil {
		return nil, err
	}
	millis := func(s measure.Sample) float64 { return stats.Micros(s.P50) / 1e3 }
	hidden := added("", "added wait", report.Millis, report.Goal(1, 30), millis) // less than a millisecond is none
	return []report.Row{
		hidden("creation", fmt.Sprintf("sandbox created in %s, code streams for %s", creation, streaming), rounds),
		report.Single("creation-shown", fmt.Sprintf("sandbox created in %s, code in one piece: added wait", creation), report.Millis,
			stats.Pairs(rounds.Series("shown", millis), rounds.Series("at once", millis), stats.Difference), report.Info()),
	}, nil
}
