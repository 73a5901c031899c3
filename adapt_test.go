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

package codeinterpreter

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
)

var update = flag.Bool("update", false, "write the JSON of the adapt tests anew")

const divider = "\n----------\n"

// TestAdapt adapts each Caddyfile in testdata/adapt and compares the JSON, or
// looks for the error, that stands below the divider.
func TestAdapt(t *testing.T) {
	files, err := filepath.Glob("testdata/adapt/*.caddyfiletest")
	if err != nil || len(files) == 0 {
		t.Fatalf("no adapt tests found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".caddyfiletest"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, want, found := strings.Cut(string(content), divider)
			if !found {
				t.Fatalf("%s has no divider", file)
			}
			got, err := adapt(t, input+"\n")
			switch {
			case *update && err == nil:
				writeFile(t, file, input+divider+got)
			case err == nil && got != want:
				t.Errorf("adapted to\n%swant\n%s", got, want)
			case err != nil && (!isError(want) || !strings.Contains(err.Error(), strings.TrimSpace(want))):
				t.Errorf("error %v\nwant %s", err, want)
			}
		})
	}
}

func isError(want string) bool {
	return !strings.HasPrefix(want, "{") && strings.TrimSpace(want) != ""
}

// adapt returns the indented JSON of a Caddyfile, which must be formatted.
func adapt(t *testing.T, input string) (string, error) {
	t.Helper()
	result, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(input), nil)
	if err != nil {
		return "", err
	}
	for _, warning := range warnings {
		t.Errorf("warning: %s", warning)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, result, "", "\t"); err != nil {
		t.Fatal(err)
	}
	return indented.String() + "\n", nil
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
