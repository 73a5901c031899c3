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
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var even = []float64{100, 100, 100}

func TestVerdictsFollowGoalSpreadAndControl(t *testing.T) {
	for _, tt := range []struct {
		name          string
		ours, control []float64
		want          Verdict
		broken        bool
	}{
		{"below the goal", []float64{101, 101, 101}, even, Held, false},
		{"above it, within the spread", []float64{104, 104, 104}, []float64{97, 100, 104}, Within, false},
		{"above it", []float64{104, 104, 104}, even, Missed, false},
		{"beyond the gate", []float64{120, 120, 120}, even, Missed, true},
		{"beyond the gate, within the spread", []float64{111, 111, 111}, []float64{103, 103, 103}, Missed, false},
		{"beyond the gate, control off", []float64{150, 150, 150}, []float64{106, 106, 107}, Unsettled, false},
	} {
		row := Ratio("id", tt.name, Micros, tt.ours, even, tt.control, Goal(1.02, 1.10))
		if row.Verdict != tt.want || row.Broken() != tt.broken {
			t.Errorf("%s: %+v, broken %v", tt.name, row, row.Broken())
		}
	}
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	// The machine was twice as slow in the second round.
	row := Ratio("id", "t", Micros, []float64{110, 220, 110}, []float64{100, 200, 100}, []float64{100, 200, 100}, Info())
	if row.Value != 1.1 || row.Spread != 0 || *row.Control != 1 || row.Base != 100 || row.Ours != 110 || row.Verdict != Reported {
		t.Errorf("%+v", row)
	}
}

func TestAddedTimeIsHeldToToleranceOfTheBase(t *testing.T) {
	row := Added("id", "t", Micros, []float64{104, 104, 104}, even, []float64{106, 106, 106}, Goal(5, 30))
	if row.Value != 4 || *row.Control != 6 || !row.Off || row.Verdict != Held {
		t.Errorf("%+v", row)
	}
	if row := Added("id", "t", Micros, even, even, []float64{106, 106, 106}, Goal(5, 30).Loose()); row.Off {
		t.Errorf("6 %% is off where 10 %% are tolerated: %+v", row)
	}
}

func TestLargeBodiesHaveTheNoiseOfTheirRuns(t *testing.T) {
	even := []float64{100, 100, 100}
	for ours, want := range map[float64]Verdict{119: Held, 127: Within, 129: Missed} {
		if row := Ratio("id", "t", Micros, []float64{ours, ours, ours}, even, even, Goal(1.20, 1.45).Loose()); row.Verdict != want || row.Spread != 0.08 {
			t.Errorf("%v: %+v", ours, row)
		}
	}
}

func sample() *Report {
	goal := 1.02
	return &Report{Command: "table", Rows: []Row{
		{ID: "a", Title: "a <b> & c", Unit: Times, Value: 1.01, Goal: &goal, Control: &goal, Spread: 0.02, Base: 100, Ours: 101, BaseUnit: Micros, Verdict: Held},
		{ID: "b", Title: "loop", Unit: Millis, Value: 0.36, Verdict: Reported},
	}}
}

func TestReportSurvivesItsFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	want := sample()
	if err := want.WriteFiles(dir, "table"); err != nil {
		t.Fatal(err)
	}
	got, err := Read(filepath.Join(dir, "table.json"))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Read = %+v, %v", got, err)
	}
}

func TestPlotIsXML(t *testing.T) {
	d := xml.NewDecoder(bytes.NewReader(sample().SVG()))
	rects := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			rects++
		}
	}
	if rects != 6 {
		t.Errorf("%d rectangles, want background, axis, and four of the one ratio", rects)
	}
}

func TestPageIsFilledBetweenItsMarks(t *testing.T) {
	page := "before\n<!-- bench:begin table -->\nold\n<!-- bench:end table -->\nafter\n"
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // filling it again changes nothing
		if err := sample().FillDocFile(file, "table"); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(got)
		if !strings.HasPrefix(text, "before\n<!--") || !strings.HasSuffix(text, "-->\nafter\n") || strings.Contains(text, "old") || strings.Count(text, "| 1.010 |") != 1 {
			t.Errorf("the page is %q", text)
		}
	}
	if err := sample().FillDocFile(file, "soak"); err == nil {
		t.Error("a page without the marks was filled")
	}
}

func TestNumbersHaveAboutThreePlaces(t *testing.T) {
	for _, tt := range []struct {
		v    float64
		unit string
		want string
	}{{1.0149, Times, "1.015"}, {3.14159, Micros, "3.14 us"}, {-31.41, Micros, "-31.4 us"}, {1234.5, Millis, "1234 ms"}, {2, Count, "2"}} {
		if got := amount(tt.v, tt.unit); got != tt.want {
			t.Errorf("amount(%v, %s) = %q, want %q", tt.v, tt.unit, got, tt.want)
		}
	}
}
