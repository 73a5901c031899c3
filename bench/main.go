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

// Command bench measures what the module costs, against plain Caddy of the
// same binary. It is run in its own directory:
//
//	go run . table   everything, in less than 30 minutes on two cores
//	go run . ci      a short run of the same that fails on gross regressions
//	go run . soak    memory under load, for as long as -duration says
//	go run . doc     puts the results into ../docs/PERFORMANCE.md
//	go run . profile profiles of the module under the loads of the table
//
// Results go to standard output as a table, and to the directory -out as JSON
// and SVG. Everything listens on the loopback.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/measure"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const help = "give one of the commands table, ci, soak, doc, profile; -h after it lists its flags"

// options are the flags.
type options struct {
	caddy    string
	out      string
	only     string
	doc      string
	nginx    string
	portkey  string
	duration time.Duration
}

func parse(args []string, stderr io.Writer) (command string, o options, err error) {
	if len(args) == 0 {
		return "", o, errors.New(help)
	}
	if slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		fmt.Fprintln(stderr, help)
		return "", o, flag.ErrHelp
	}
	flags := flag.NewFlagSet("bench "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.caddy, "caddy", "", "`binary` to measure; default: built from the directory above")
	flags.StringVar(&o.out, "out", "out", "`directory` for the results")
	flags.StringVar(&o.only, "only", "", "table, ci, profile: a regular `expression` for the names of what is measured")
	flags.StringVar(&o.doc, "doc", "../docs/PERFORMANCE.md", "doc: the `page`; its JSON and SVG stand beside it")
	flags.StringVar(&o.nginx, "nginx", "", "table: `binary` of nginx to compare to")
	flags.StringVar(&o.portkey, "portkey", "", "table: `script` of @portkey-ai/gateway (build/start-server.js) to compare to")
	flags.DurationVar(&o.duration, "duration", 10*time.Minute, "soak: how long; profile: how long each")
	if err := flags.Parse(args[1:]); err != nil {
		return "", o, err
	}
	if flags.NArg() > 0 {
		return "", o, fmt.Errorf("unexpected argument %q: %s", flags.Arg(0), help)
	}
	return args[0], o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	command, o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	switch command {
	case "table":
		return o.measure(ctx, command, full, stdout, stderr)
	case "ci":
		return o.measure(ctx, command, brief, stdout, stderr)
	case "soak":
		return o.soak(ctx, stdout, stderr)
	case "profile":
		return o.profile(ctx, stderr)
	case "doc":
		return o.fillDoc()
	}
	return fmt.Errorf("unknown command %q: %s", command, help)
}

// start builds what is to be measured and sets the peers up. The directory of
// the binary goes with close.
func (o options) start(ctx context.Context, s scale) (*bench, error) {
	// The load generator's own collections are not what is measured.
	debug.SetGCPercent(400)
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) } // in the directory for temporary files
	caddy := o.caddy
	if caddy == "" {
		if caddy, err = build(ctx, dir); err != nil {
			remove()
			return nil, err
		}
	}
	b, err := setUp(ctx, caddy, s)
	if err != nil {
		remove()
		return nil, err
	}
	b.shutdown = append(b.shutdown, remove)
	b.peers = o.peers()
	return b, nil
}

// errBroken fails a run in which a gate was broken.
var errBroken = errors.New("gross regressions")

func (o options) measure(ctx context.Context, command string, s scale, stdout, stderr io.Writer) error {
	chosen, err := o.cells(s.brief)
	if err != nil {
		return err
	}
	b, err := o.start(ctx, s)
	if err != nil {
		return err
	}
	defer b.close()
	rows, err := b.measureAll(ctx, stderr, chosen)
	if err != nil {
		return err
	}
	return o.write(b.report(command, rows), stdout)
}

// write shows a report, keeps it, and fails when a gate is broken.
func (o options) write(r *report.Report, stdout io.Writer) error {
	if err := r.WriteTable(stdout); err != nil {
		return err
	}
	if err := r.WriteFiles(o.out, r.Command); err != nil {
		return err
	}
	var broken error
	for _, row := range r.Broken() {
		broken = errors.Join(broken, fmt.Errorf("%w: %s is %.3g %s, the gate is %.3g", errBroken, row.ID, row.Value, row.Unit, *row.Gate))
	}
	return broken
}

func (o options) cells(brief bool) ([]cell, error) {
	expression, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	var chosen []cell
	var names []string
	for _, c := range cells() {
		if brief && c.long {
			continue
		}
		names = append(names, c.name)
		if expression.MatchString(c.name) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-only %q: nothing that is measured has such a name; there are %s", o.only, strings.Join(names, ", "))
	}
	return chosen, nil
}

func (o options) soak(ctx context.Context, stdout, stderr io.Writer) error {
	b, err := o.start(ctx, full)
	if err != nil {
		return err
	}
	defer b.close()
	b.pace = measure.Pace{Rounds: 1, Slices: 1, Slice: o.duration}
	rows, err := b.soak(ctx, stderr, o.duration)
	if err != nil {
		return err
	}
	return o.write(b.report("soak", rows), stdout)
}

// fillDoc puts the results of the table and of the soak, as far as there are
// any, into the page, and their JSON and SVG beside it.
func (o options) fillDoc() error {
	filled := false
	for name, file := range map[string]string{"table": "performance", "soak": "performance-soak"} {
		r, err := report.Read(filepath.Join(o.out, name+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := r.FillDocFile(o.doc, name); err != nil {
			return err
		}
		if err := r.WriteFiles(filepath.Dir(o.doc), file); err != nil {
			return err
		}
		filled = true
	}
	if !filled {
		return fmt.Errorf("no results in %s: run the table or the soak first, or name their directory with -out", o.out)
	}
	return nil
}
