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
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

// TestJavaScript runs the clients in npm, each test of theirs as one of ours.
func TestJavaScript(t *testing.T) {
	t.Parallel()
	node := installPackages(t)
	version, err := exec.CommandContext(t.Context(), node, "--version").Output()
	if err != nil {
		t.Fatalf("%s --version: %v", node, err)
	}
	t.Logf("node %s", bytes.TrimSpace(version))

	files, err := filepath.Glob("npm/*.test.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("no client in npm: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			runFile(t, node, filepath.Base(file))
		})
	}
}

// installPackages installs what package-lock.json names, unless that is done,
// and returns the Node.js among it: the clients want a newer one than many
// systems have.
func installPackages(t *testing.T) string {
	t.Helper()
	node, err := filepath.Abs(filepath.Join("npm", "node_modules", "node-"+nodePlatform(), "bin", "node"))
	if err != nil {
		t.Fatal(err)
	}
	lock, err := os.ReadFile("npm/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	const done = "npm/node_modules/.installed-lock"
	if installed, err := os.ReadFile(done); err == nil && bytes.Equal(installed, lock) {
		return node
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	npm.Dir = "npm"
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	if err := os.WriteFile(done, lock, 0o600); err != nil {
		t.Fatal(err)
	}
	return node
}

// nodePlatform is this platform in the words of Node.js.
func nodePlatform() string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return runtime.GOOS + "-" + arch
}

func runFile(t *testing.T, node, file string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), node, "--test", "--test-reporter=./reporter.js", file)
	cmd.Dir = "npm"
	cmd.Env = slices.Concat(os.Environ(), gatewayEnv(), []string{"LANGSMITH_TRACING=false", "AI_SDK_LOG_WARNINGS=false"})
	runReported(t, cmd)
}
