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

// Package caddytest_test drives the module as a user does: a real Caddy in this
// process, a scripted model behind it, and real Python in real bubblewrap.
package caddytest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddy-code-interpreter/caddy-code-interpreter"
)

// patience is how long a test waits for what must happen. What takes longer
// hangs.
const patience = time.Minute

// caddysOwn are goroutines that Caddy leaves running: one for each log file
// that there ever was, and locks of its storage.
var caddysOwn = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/DeRuina/timberjack.(*Logger).millRun"),
	goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.keepLockfileFresh"),
}

func TestMain(m *testing.M) {
	code, err := isolated(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// isolated keeps what Caddy writes out of the home directory and the
// environment's E2B settings out of the tests.
func isolated(m *testing.M) (code int, err error) {
	for _, program := range []string{"bwrap", "/usr/bin/python3"} {
		if _, err := exec.LookPath(program); err != nil {
			return 1, fmt.Errorf("the tests run real code: install bubblewrap and python3: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "caddytest")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, name := range []string{"XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME"} {
		if err := os.Setenv(name, dir); err != nil {
			return 1, err
		}
	}
	for _, name := range []string{"E2B_API_KEY", "E2B_API_URL", "E2B_DOMAIN", "E2B_SANDBOX_URL"} {
		if err := os.Unsetenv(name); err != nil {
			return 1, err
		}
	}
	// Both were read from the environment when Caddy initialised.
	caddy.ConfigAutosavePath = filepath.Join(dir, "autosave.json")
	caddy.DefaultStorage.Path = dir

	code = m.Run()
	return code, errors.Join(caddy.Stop(), served.close(), nothingLeft())
}

// nothingLeft finds goroutines and sandboxes that nobody owns any more.
func nothingLeft() error {
	if err := goleak.Find(caddysOwn...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !until(ctx, func() bool { return len(processes("bwrap")) == 0 }) {
		return fmt.Errorf("these sandboxes are left: %v", processes("bwrap"))
	}
	return nil
}

// until waits for what no event tells of, and says whether it happened in time.
func until(ctx context.Context, happened func() bool) bool {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !happened() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// eventually fails the test when something does not happen.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !until(ctx, happened) {
		t.Fatalf("it did not happen that %s", what)
	}
}

// await waits for an event.
func await[T any](t *testing.T, what string, event <-chan T) T {
	t.Helper()
	select {
	case v := <-event:
		return v
	case <-time.After(patience):
		t.Fatalf("it did not happen that %s", what)
		panic("not reached")
	}
}
