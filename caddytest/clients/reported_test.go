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

package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
)

// reported is a line of a program that runs tests of its own: a test, or
// something to log.
type reported struct {
	Name, Error            string
	Passed, Skipped, Suite bool
	Output                 string
}

// gatewayEnv tells such a program what to test.
func gatewayEnv() []string {
	return []string{
		"BASE_URL=" + gateways.open, "LOCKED_URL=" + gateways.locked, "LOCKED_KEY=" + upstreamKey,
		fmt.Sprintf("SILENT_SECONDS=%d", int(silence.Seconds())),
	}
}

// runReported runs such a program, each test of its as one of ours.
func runReported(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, runErr := cmd.Output()

	tests, failed := 0, 0
	for line := range bytes.Lines(out) {
		var result reported
		if err := json.Unmarshal(line, &result); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if result.Name == "" {
			t.Log(result.Output)
			continue
		}
		if result.Suite {
			continue // its tests say why
		}
		tests++
		t.Run(result.Name, func(t *testing.T) {
			if !result.Passed || result.Skipped {
				failed++
				t.Errorf("passed %v, skipped %v: %s", result.Passed, result.Skipped, result.Error)
			}
		})
	}
	if tests == 0 || runErr != nil && failed == 0 {
		t.Errorf("%s: %d tests, %v\n%s", cmd, tests, runErr, stderr.Bytes())
	}
}
