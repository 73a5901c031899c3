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
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/report"
)

func TestWrongCommandsAreErrorsThatSayWhatIsRight(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "give one of the commands"},
		{[]string{"tabel"}, `unknown command "tabel"`},
		{[]string{"table", "now"}, `unexpected argument "now"`},
		{[]string{"table", "-only", "nothing-of-that-name"}, "nothing that is measured"},
		{[]string{"table", "-only", "("}, "-only"},
		{[]string{"doc", "-out", "no-such-directory"}, "run the table or the soak first"},
	} {
		err := run(t.Context(), tt.args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.args, err, tt.want)
		}
	}
}

func TestBrokenGateFailsTheRunAfterItsResultsAreKept(t *testing.T) {
	out := t.TempDir()
	r := &report.Report{Command: "ci", Rows: []report.Row{
		report.Single("slow", "slow", report.Millis, []float64{3}, report.Goal(1, 2)),
		report.Single("fast", "fast", report.Millis, []float64{1}, report.Goal(1, 2)),
	}}
	err := options{out: out}.write(r, io.Discard)
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "slow is 3 ms") || strings.Contains(err.Error(), "fast") {
		t.Errorf("write = %v", err)
	}
	if _, err := os.Stat(filepath.Join(out, "ci.json")); err != nil {
		t.Error(err)
	}
}

func TestPageGetsTheResultsThatThereAre(t *testing.T) {
	out, docs := t.TempDir(), t.TempDir()
	page := filepath.Join(docs, "PERFORMANCE.md")
	if err := os.WriteFile(page, []byte("<!-- bench:begin table -->\n<!-- bench:end table -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &report.Report{Command: "table", Rows: []report.Row{report.Single("a", "a title", report.Millis, []float64{1}, report.Info())}}
	if err := r.WriteFiles(out, "table"); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"doc", "-out", out, "-doc", page}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(got), "| a title | 1.00 ms |") {
		t.Errorf("the page is %q: %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(docs, "performance.svg")); err != nil {
		t.Error(err)
	}
}

func TestNoiseIsThatOfTheWorstControl(t *testing.T) {
	even := []float64{100, 100}
	rows := []report.Row{
		report.Ratio("a", "a", report.Micros, even, even, []float64{102, 102}, report.Info()),
		report.Added("b", "b", report.Micros, even, even, []float64{93, 93}, report.Info()),
		report.Single("c", "c", report.Millis, even, report.Info()),
	}
	if got := noise(rows); got < 0.0699 || got > 0.0701 {
		t.Errorf("noise = %v, want 0.07", got)
	}
	if !doubtful(rows) || doubtful(rows[:1]) {
		t.Error("a control of 7 % is off, one of 2 % is not")
	}
}

func TestTheRunWithoutABrokenGateCounts(t *testing.T) {
	even := []float64{100, 100}
	quiet := []report.Row{report.Ratio("a", "a", report.Micros, []float64{150, 150}, even, even, report.Goal(1, 1.2))}
	noisy := []report.Row{report.Ratio("a", "a", report.Micros, []float64{110, 110}, even, []float64{103, 103}, report.Goal(1, 1.2))}
	if !doubtful(quiet) || doubtful(noisy) {
		t.Error("what is beyond its gate is to be measured again, what is not is not")
	}
	if !better(noisy, quiet) || better(quiet, noisy) {
		t.Error("a run with a broken gate counts more than one without")
	}
}
