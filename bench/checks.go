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

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/gateway"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/load"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/report"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/upstream"
)

// untouchedBytes counts the requests without the tool that reach the upstream
// other than they were sent: of each size, and beside requests that are
// answered before their bodies were read.
func untouchedBytes(ctx context.Context, b *bench) ([]report.Row, error) {
	p, err := gateway.Start(ctx, b.ours())
	if err != nil {
		return nil, err
	}
	defer p.Stop()
	sizes, err := b.wrong(ctx, p, 1, []*load.Request{
		load.CheckedRequest(load.Chat{Content: load.Text, Size: kB}),
		load.CheckedRequest(load.Chat{Content: load.Text, Size: 100 * kB}),
		load.CheckedRequest(load.Chat{Content: load.Images, Size: 5 * mB}),
		load.CheckedRequest(load.Chat{Content: load.Code, Size: 5 * mB}),
	})
	if err != nil {
		return nil, err
	}
	var mixed []*load.Request
	for i := range 8 {
		mixed = append(mixed, load.ChatRequest(load.Chat{
			Content: load.Fill, Fill: byte('A' + i), Size: mB, Script: upstream.Script{Early: i%2 == 0},
		}, "bench-key"))
	}
	early, err := b.wrong(ctx, p, b.earlyTimes, mixed)
	if err != nil {
		return nil, err
	}
	return []report.Row{
		report.Single("bytes", "no tool, 1 KB to 5 MB: bodies that were changed", report.Count, []float64{sizes}, report.Goal(0, 0)),
		report.Single("early", "upstream answers before it reads: bodies with bytes of others", report.Count, []float64{early}, report.Goal(0, 0)),
	}, nil
}

// wrong sends the requests, each on its own connection, and returns how many
// of them the upstream found wrong.
func (b *bench) wrong(ctx context.Context, p *gateway.Process, times int, requests []*load.Request) (float64, error) {
	c, err := load.Dial(ctx, p.Addr, requests)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	before := b.model.Wrong.Load()
	for range times {
		r := c.Once(ctx)
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if r.Failed > 0 {
			return 0, fmt.Errorf("%d requests failed: %w; the gateway's log ends with: %s", r.Failed, r.Err, p.Log())
		}
	}
	return float64(b.model.Wrong.Load() - before), nil
}
