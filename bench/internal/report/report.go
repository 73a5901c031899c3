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

package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/measure"
)

// Report is what a run of the harness found.
type Report struct {
	Command string       `json:"command"`
	Machine Machine      `json:"machine"`
	Pace    measure.Pace `json:"pace"`
	Started time.Time    `json:"started"`
	Seconds int          `json:"seconds"`
	Rows    []Row        `json:"rows"`
}

// Machine is where it ran.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
	Caddy string `json:"caddy"`
	// Load is the average load of the last minute before the run and at its end.
	Load [2]float64 `json:"load"`
}

// CPUModel returns the name of the processor, "unknown" where there is none.
func CPUModel() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(info)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// LoadAverage returns that of the last minute, 0 where it is not known.
func LoadAverage() float64 {
	avg, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(avg), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}

// Broken returns the rows beyond their gates.
func (r *Report) Broken() []Row {
	var rows []Row
	for _, row := range r.Rows {
		if row.Broken() {
			rows = append(rows, row)
		}
	}
	return rows
}

// Read reads a report that WriteFiles wrote.
func Read(file string) (*Report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s is no report: %w", file, err)
	}
	return r, nil
}

// WriteFiles writes the report as name.json and name.svg.
func (r *Report) WriteFiles(dir, name string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".svg"), r.SVG(), 0o600)
}

// conditions says where and how was measured.
func (r *Report) conditions() string {
	return fmt.Sprintf("%s, %d cores, %s, Caddy %s, load %.1f before and %.1f after; %s of %s per gateway; %s, %s",
		r.Machine.CPU, r.Machine.Cores, r.Machine.Go, r.Machine.Caddy, r.Machine.Load[0], r.Machine.Load[1],
		rounds(r.Pace.Rounds), time.Duration(r.Pace.Slices)*r.Pace.Slice, r.Started.UTC().Format("2006-01-02"), time.Duration(r.Seconds)*time.Second)
}

var columns = []string{"what", "value", "goal", "verdict", "plain", "ours", "control", "spread", "gate"}

// cells returns a row as it stands in the columns.
func (r *Row) cells() []string {
	return []string{
		r.Title, amount(r.Value, r.Unit), limit(r.Goal, r.Unit), string(r.Verdict), absolute(r.Base, r.BaseUnit), absolute(r.Ours, r.BaseUnit),
		limit(r.Control, r.Unit), amount(r.Spread, r.Unit), limit(r.Gate, r.Unit),
	}
}

// WriteTable writes the table as text.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s\n", strings.Join(columns, "\t"))
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\n", strings.Join(row.cells(), "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.conditions())
	return err
}

// amount returns a number with its unit, in three places or so.
func amount(v float64, unit string) string {
	switch unit {
	case Times:
		return fmt.Sprintf("%.3f", v)
	case Count:
		return fmt.Sprintf("%.0f", v)
	}
	return strconv.FormatFloat(v, 'f', places(v), 64) + " " + unit
}

func places(v float64) int {
	switch {
	case v > -10 && v < 10:
		return 2
	case v > -100 && v < 100:
		return 1
	default:
		return 0
	}
}

func limit(v *float64, unit string) string {
	if v == nil {
		return ""
	}
	return amount(*v, unit)
}

func absolute(v float64, unit string) string {
	if unit == "" {
		return ""
	}
	return amount(v, unit)
}

func rounds(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n)
}
