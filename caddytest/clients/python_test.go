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
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestPython runs the scenarios of the official Python client, each as a test.
func TestPython(t *testing.T) {
	t.Parallel()
	scenarios, err := os.Open("python/scenarios.py")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = scenarios.Close() }()
	// Nothing of the environment is for it: it may run in a system of its own,
	// which also has no other files than its input.
	cmd := exec.CommandContext(t.Context(), pythonWithOpenAI(t), "-")
	cmd.Stdin = scenarios
	cmd.Env = append(gatewayEnv(), "PATH="+os.Getenv("PATH"))
	runReported(t, cmd)
}

// pythonWithOpenAI returns a Python that has the package openai: that of
// PYTHON_OPENAI, or the one that a script finds or makes.
func pythonWithOpenAI(t *testing.T) string {
	t.Helper()
	if python := os.Getenv("PYTHON_OPENAI"); python != "" {
		return python
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	script := exec.CommandContext(ctx, "../../scripts/python-openai.sh")
	var stderr bytes.Buffer
	script.Stderr = &stderr
	out, err := script.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, stderr.Bytes())
	}
	return string(bytes.TrimSpace(out))
}
