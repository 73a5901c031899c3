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

package local_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/local"
)

// TestE2BClientDrivesTheSandbox uses the product's own client, as the gateway does.
func TestE2BClientDrivesTheSandbox(t *testing.T) {
	server, err := local.New(t.Context(), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := e2b.New(e2b.Config{APIURL: "http://local", SandboxURL: "http://local", Transport: server.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := t.Context()
	sandbox, err := client.Create(ctx, time.Minute, map[string]string{"session": "a=b&c"})
	if err != nil {
		t.Fatal(err)
	}
	run := func(ex e2b.Execution) (string, error) {
		var said strings.Builder
		err := client.Execute(ctx, sandbox, ex, func(e e2b.Event) {
			said.WriteString(e.Text + e.Name)
			if e.Result != nil {
				said.WriteString(e.Result.Text)
			}
		})
		return said.String(), err
	}

	if said, err := run(e2b.Execution{Code: "x = 20\nprint('hi')\nx + 1"}); err != nil || said != "hi\n21" {
		t.Errorf("run: %q, %v", said, err)
	}
	if said, err := run(e2b.Execution{Code: "1 / 0"}); err != nil || said != "ZeroDivisionError" {
		t.Errorf("error: %q, %v", said, err)
	}
	if _, err := run(e2b.Execution{Code: "while True: pass", Timeout: 200 * time.Millisecond}); e2b.KindOf(err) != e2b.TimedOut {
		t.Errorf("timeout: %v", err)
	}
	if said, err := run(e2b.Execution{Code: "x"}); err != nil || said != "20" {
		t.Errorf("after a timeout: %q, %v", said, err)
	}
	if _, err := run(e2b.Execution{Code: "x", ContextID: "nosuch"}); e2b.KindOf(err) != e2b.ContextGone {
		t.Errorf("unknown context: %v", err)
	}

	made, err := client.CreateContext(ctx, sandbox, e2b.Context{Language: "python", Cwd: "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	if said, err := run(e2b.Execution{Code: "import os; os.getcwd()", ContextID: made.ID}); err != nil || said != "/tmp" {
		t.Errorf("in a context: %q, %v", said, err)
	}
	if err := errors.Join(client.RestartContext(ctx, sandbox, made.ID), client.RemoveContext(ctx, sandbox, made.ID), client.Extend(ctx, sandbox, time.Hour)); err != nil {
		t.Error(err)
	}
	if contexts, err := client.Contexts(ctx, sandbox); err != nil || len(contexts) != 1 {
		t.Errorf("contexts: %v, %v", contexts, err)
	}

	list, err := client.List(ctx, map[string]string{"session": "a=b&c"})
	if err != nil || len(list) != 1 || list[0].ID != sandbox.ID || time.Until(list[0].EndAt) < 50*time.Minute {
		t.Errorf("list: %v, %v", list, err)
	}
	if again, err := client.Connect(ctx, sandbox.ID, time.Minute); err != nil || again.ID != sandbox.ID {
		t.Errorf("connect: %v", err)
	}

	cancelled, cancel := context.WithCancel(ctx)
	err = client.Execute(cancelled, sandbox, e2b.Execution{Code: "print('on', flush=True)\nwhile True: pass"}, func(e2b.Event) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := errors.Join(client.Delete(ctx, sandbox.ID), client.Delete(ctx, sandbox.ID)); err != nil {
		t.Errorf("delete, twice: %v", err)
	}
	if _, err := run(e2b.Execution{Code: "x"}); e2b.KindOf(err) != e2b.Gone {
		t.Errorf("deleted sandbox: %v", err)
	}
}
