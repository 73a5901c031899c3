// Copyright 2026 The Caddy Code Interpreter Authors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//	http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.
// Package e2bsdk runs the official SDK of E2B for JavaScript against the embedded
// sandbox, served on a port. What the SDK finds is in npm.
package e2bsdk

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/local"
)

// apiKey is what the server asks for.
const apiKey = "e2b_0123456789abcdef0123456789abcdef01234567"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSDKDrivesTheEmbeddedSandbox runs each test of the SDK as one of ours.
func TestSDKDrivesTheEmbeddedSandbox(t *testing.T) {
	t.Parallel()
	node := installPackages(t)
	url := serve(t)
	files, err := filepath.Glob("npm/*.test.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test in npm: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			runFile(t, node, url, filepath.Base(file))
		})
	}
}

// serve serves sandboxes on a port of this machine until the test ends, and
// returns the URL of both planes.
func serve(t *testing.T) string {
	t.Helper()
	server, err := local.New(t.Context(), local.Config{APIKey: apiKey, Warm: 1})
	if err != nil {
		t.Fatalf("%v\n(the tests need Linux with bubblewrap, python3 and its matplotlib)", err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := server.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return "http://" + l.Addr().String()
}

// installPackages installs what package-lock.json names, unless that is done,
// and returns the Node.js among it: the SDK wants a newer one than many systems
// have.
func installPackages(t *testing.T) string {
	t.Helper()
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	node, err := filepath.Abs(filepath.Join("npm", "node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node"))
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
		t.Fatalf("%s: %v\n%s", npm, err, out)
	}
	if err := os.WriteFile(done, lock, 0o600); err != nil {
		t.Fatal(err)
	}
	return node
}

// runFile runs a file of tests with Node.js. The reporter is that of the clients
// of the gateway: one line of JSON for each test. The SDK leaves a timer of a minute
// behind each execution that is refused, which nobody wants to wait for.
func runFile(t *testing.T, node, url, file string) {
	cmd := exec.CommandContext(t.Context(), node, "--test", "--test-force-exit", "--test-reporter=../../clients/npm/reporter.js", file)
	cmd.Dir = "npm"
	cmd.Env = append(os.Environ(), "E2B_API_URL="+url, "E2B_SANDBOX_URL="+url, "E2B_API_KEY="+apiKey, "E2B_DEBUG=false")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, runErr := cmd.Output()

	tests, failed := 0, 0
	for line := range bytes.Lines(out) {
		var result struct {
			Name, Error, Output    string
			Passed, Skipped, Suite bool
		}
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
