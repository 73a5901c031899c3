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
	"bytes"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/report"
)

func TestEverythingCanBeMeasured(t *testing.T) {
	b, err := options{}.start(t.Context(), smoke)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	var progress bytes.Buffer
	rows, err := b.measureAll(t.Context(), &progress, cells())
	if err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	soak, err := b.soak(t.Context(), io.Discard, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, row := range append(rows, soak...) {
		if seen[row.ID] || row.Title == "" || math.IsNaN(row.Value) {
			t.Errorf("row %+v", row)
		}
		seen[row.ID] = true
		// Times mean nothing here, what must not happen does.
		if row.Unit == report.Count && row.Broken() {
			t.Errorf("%s: %v", row.Title, row.Value)
		}
	}
	r := b.report("table", rows)
	var table strings.Builder
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteFiles(t.TempDir(), "table"); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(r.Machine.Caddy, "v2.") || !strings.Contains(table.String(), "no tool, 1 KB") {
		t.Errorf("Caddy %s:\n%s", r.Machine.Caddy, table.String())
	}
}
