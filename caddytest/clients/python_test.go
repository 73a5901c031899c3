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
	// It may run in a system of its own, which has no other files than its input
	// and does not see those that the environment names.
	cmd := exec.CommandContext(t.Context(), pythonWithOpenAI(t), "-")
	cmd.Stdin = scenarios
	cmd.Env = append(gatewayEnv(), "PATH="+os.Getenv("PATH"), "HOME="+os.Getenv("HOME"), "XDG_CACHE_HOME="+os.Getenv("XDG_CACHE_HOME"))
	runReported(t, cmd)
}

// pythonWithOpenAI returns a Python that has the package openai: that of
// PYTHON_OPENAI, or a script that finds one or fetches it, which is done then.
func pythonWithOpenAI(t *testing.T) string {
	t.Helper()
	if python := os.Getenv("PYTHON_OPENAI"); python != "" {
		return python
	}
	const script = "../../scripts/python-openai.sh"
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, script, "-c", "import openai").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return script
}
