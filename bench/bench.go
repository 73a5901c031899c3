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
	"debug/buildinfo"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/gateway"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/measure"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/report"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/sandboxes"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/upstream"
)

// creation is how long it takes to create a sandbox where that is to be hidden
// behind code that streams for longer.
const (
	creation  = 300 * time.Millisecond
	streaming = 600 * time.Millisecond
)

// bench is the set-up of a run: the peers of the gateways, in this process, and
// the commands that start the gateways.
type bench struct {
	scale
	peers []peer

	model      *upstream.Server
	caddy      gateway.Caddy
	boxes      string // URL of sandboxes that are created at once
	slowBoxes  string // URL of those that take their time
	shutdown   []func()
	started    time.Time
	loadBefore float64
}

// scale says how much is measured.
type scale struct {
	pace       measure.Pace
	held       int           // streams that are open at a time
	heldPause  time.Duration // between two chunks of each of them
	earlyTimes int           // rounds of requests that are answered early
	brief      bool          // without the cells that are long
	repeats    int           // of a cell of which the control is off
	budget     time.Duration // of the run, after which nothing is measured again
	deadline   time.Duration // of the run, after which it fails
}

// Scales of the table, of the subset for CI, and of the smoke test, which says
// no more than that everything can be measured.
var (
	full = scale{
		pace: measure.Pace{Rounds: 6, Slices: 4, Slice: 500 * time.Millisecond, WarmUp: 400 * time.Millisecond},
		held: 400, heldPause: 250 * time.Millisecond, earlyTimes: 50, repeats: 2, budget: 30 * time.Minute, deadline: time.Hour,
	}
	brief = scale{
		pace: measure.Pace{Rounds: 6, Slices: 2, Slice: 150 * time.Millisecond, WarmUp: 100 * time.Millisecond},
		held: 400, heldPause: 250 * time.Millisecond, earlyTimes: 10, brief: true, repeats: 2, budget: 5 * time.Minute, deadline: 10 * time.Minute,
	}
	smoke = scale{
		pace: measure.Pace{Rounds: 1, Slices: 1, Slice: 10 * time.Millisecond, WarmUp: 10 * time.Millisecond},
		held: 10, heldPause: 20 * time.Millisecond, earlyTimes: 1, deadline: 5 * time.Minute,
	}
)

// peer is another gateway that requests without the tool are compared to.
type peer struct {
	name    string
	command func(upstream string) gateway.Command
	header  func(upstream string) http.Header // that its requests need
	streams bool                              // whether it can be compared on streams
}

// setUp starts the peers. caddy is the binary to measure.
func setUp(ctx context.Context, caddy string, s scale) (*bench, error) {
	b := &bench{scale: s, model: upstream.New(), started: time.Now(), loadBefore: report.LoadAverage()}
	addrs := map[string]string{}
	for name, handler := range map[string]http.Handler{
		"model": b.model, "boxes": sandboxes.New(0), "slow boxes": sandboxes.New(creation),
	} {
		addr, err := b.serve(ctx, handler)
		if err != nil {
			b.close()
			return nil, fmt.Errorf("serving the %s: %w", name, err)
		}
		addrs[name] = addr
	}
	b.caddy = gateway.Caddy{Path: caddy, Upstream: addrs["model"]}
	b.boxes, b.slowBoxes = "http://"+addrs["boxes"], "http://"+addrs["slow boxes"]
	return b, nil
}

// serve serves the handler on a port of the loopback until close.
func (b *bench) serve(ctx context.Context, h http.Handler) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) }) // ends with close
	b.shutdown = append(b.shutdown, func() {
		_ = server.Close()
		wg.Wait()
	})
	return l.Addr().String(), nil
}

func (b *bench) close() {
	for _, f := range b.shutdown {
		f()
	}
}

// plain, control and ours are the gateways: the second is the first again.
func (b *bench) plain() gateway.Command   { return b.caddy.Plain("plain") }
func (b *bench) control() gateway.Command { return b.caddy.Plain("control") }
func (b *bench) ours() gateway.Command    { return b.caddy.WithTool("ours", b.boxes) }

// report returns the report of the rows.
func (b *bench) report(command string, rows []report.Row) *report.Report {
	return &report.Report{
		Command: command,
		Machine: report.Machine{
			CPU: report.CPUModel(), Cores: runtime.NumCPU(), Go: runtime.Version(), Caddy: caddyVersion(b.caddy.Path),
			Load: [2]float64{b.loadBefore, report.LoadAverage()},
		},
		Pace:    b.pace,
		Started: b.started.UTC().Truncate(time.Second),
		Seconds: int(time.Since(b.started).Seconds()),
		Rows:    rows,
	}
}

// caddyVersion returns the version of Caddy in a binary.
func caddyVersion(path string) string {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == "github.com/caddyserver/caddy/v2" {
			return dep.Version
		}
	}
	return "unknown"
}

// build builds Caddy with the module of the directory above.
func build(ctx context.Context, dir string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "caddy")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/caddy")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building ./cmd/caddy in %s: %w: %s", root, err, out)
	}
	return path, nil
}

// moduleRoot returns the directory above that of the harness, in which the
// command is expected to be run.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	root := filepath.Dir(dir)
	if _, err := os.Stat(filepath.Join(root, "cmd", "caddy")); err != nil {
		return "", fmt.Errorf("no ./cmd/caddy in %s: run the harness in bench/, or name a binary with -caddy: %w", root, err)
	}
	return root, nil
}
