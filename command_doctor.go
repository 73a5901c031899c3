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
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/local"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// checkTimeout bounds each step of a check.
const checkTimeout = 30 * time.Second

func doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [--config <path> [--adapter <name>]]",
		Short: "Checks the configured sandboxes end to end",
		Long: `
Makes a sandbox as each code_interpreter handler of the configuration would,
runs code in it, deletes it, and says how long each step took, what is wrong and
how to mend it. Without --config it checks a Caddyfile in the working directory,
or the default sandbox.

The exit status is 0 if everything works and 1 if something does not.
`,
		Args: cobra.NoArgs,
		RunE: runE(func(cmd *cobra.Command, _ []string) (int, error) {
			ctx, stop := interruptible(cmd)
			defer stop()
			d := &doctor{out: cmd.OutOrStdout()}
			handlers, err := loadHandlers(cmd)
			if !d.step("configuration", start(), err, "") {
				return exitFailed, errUnwell
			}
			seen := make(map[any]bool)
			for _, h := range handlers {
				if key := h.spec.key(); !seen[key] {
					seen[key] = true
					d.examine(ctx, h)
				}
			}
			if d.failed {
				return exitFailed, errUnwell
			}
			return caddy.ExitCodeSuccess, nil
		}),
	}
	configFlags(cmd, "with the sandboxes to check")
	return cmd
}

var errUnwell = errors.New("code cannot run: see above")

// doctor checks backends and prints what it finds.
type doctor struct {
	out    io.Writer
	failed bool
}

func start() time.Time { return time.Now() }

// step prints how a step went, and how to mend it if it failed.
func (d *doctor) step(name string, began time.Time, err error, note string) bool {
	took := time.Since(began).Round(time.Millisecond)
	if err == nil {
		fmt.Fprintf(d.out, "ok    %-14s %8v  %s\n", name, took, note)
		return true
	}
	d.failed = true
	fmt.Fprintf(d.out, "FAIL  %-14s %8v  %v\n", name, took, err)
	if mend := cure(err); mend != "" {
		fmt.Fprintf(d.out, "      %s\n", mend)
	}
	return false
}

func (d *doctor) warn(name, text string) {
	fmt.Fprintf(d.out, "warn  %-14s %8s  %s\n", name, "", text)
}

// examine takes a backend through the life of a sandbox.
func (d *doctor) examine(ctx context.Context, h configured) {
	fmt.Fprintf(d.out, "sandbox %s\n", h.spec.describe())
	began := start()
	opening, cancel := context.WithTimeout(ctx, selfTestTimeout)
	defer cancel()
	client, server, err := h.spec.open(opening, zap.NewNop())
	if !d.step("set up", began, err, "") {
		return
	}
	defer d.close(client, server)
	if h.spec.e2b != nil && !h.spec.found() {
		d.warn("secret", "sessions are not found again after a restart: set the option secret of sandbox e2b")
	}

	began = start()
	creating, cancel := context.WithTimeout(ctx, h.limits.SandboxTimeout)
	defer cancel()
	mark := map[string]string{"product": session.Product, "kind": "doctor", "check": rand.Text()}
	sb, err := client.Create(creating, lifetimeOfCheck, mark)
	if !d.step("create", began, err, "") {
		return
	}
	d.run(ctx, client, sb)
	if h.spec.e2b != nil {
		d.find(ctx, client, sb, mark)
	}
	if h.limits.Pause {
		d.pause(ctx, client, sb)
	}
	began = start()
	deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	d.step("delete", began, client.Delete(deleting, sb.ID), "")
}

// lifetimeOfCheck is how long a sandbox lives that could not be deleted.
const lifetimeOfCheck = 2 * time.Minute

// run runs programs in the sandbox: one that says where it is, one that needs
// the variable of the one before, one that looks for what models like to use.
func (d *doctor) run(ctx context.Context, client *e2b.Client, sb *e2b.Sandbox) {
	began := start()
	version, err := evaluate(ctx, client, sb, "import sys\nx = 41\nprint('Python', sys.version.split()[0])")
	if err == nil && !strings.HasPrefix(version, "Python ") {
		err = errNotPython
	}
	if !d.step("execute", began, err, strings.TrimSpace(version)) {
		return
	}
	began = start()
	answer, err := evaluate(ctx, client, sb, "print(x + 1)")
	if err == nil && strings.TrimSpace(answer) != "42" {
		err = errNoState
	}
	if !d.step("keep variables", began, err, "") {
		return
	}
	missing, err := evaluate(ctx, client, sb, "import importlib.util\n"+
		"print(*[m for m in ('numpy', 'pandas', 'matplotlib') if importlib.util.find_spec(m) is None])")
	if missing = strings.TrimSpace(missing); err == nil && missing != "" {
		d.warn("modules", "models often use these, and they are not there: "+missing)
	}
}

// find looks whether sessions will be found again after a restart.
func (d *doctor) find(ctx context.Context, client *e2b.Client, sb *e2b.Sandbox, mark map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := start()
	infos, err := client.List(ctx, mark)
	switch {
	case err != nil:
		d.warn("find again", fmt.Sprintf("sessions will not be found again after a restart: %v", err))
	case !slices.ContainsFunc(infos, func(i e2b.Info) bool { return i.ID == sb.ID }):
		d.warn("find again", "the server's list does not show the sandbox: sessions may not be found again after a restart")
	default:
		d.step("find again", began, nil, "")
	}
}

// pause has the sandbox stored and resumed, and looks for the variable in it.
func (d *doctor) pause(ctx context.Context, client *e2b.Client, sb *e2b.Sandbox) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := start()
	if !d.step("pause", began, client.Pause(ctx, sb.ID), "") {
		return
	}
	began = start()
	resumed, err := client.Connect(ctx, sb.ID, lifetimeOfCheck)
	if err == nil {
		var answer string
		answer, err = evaluate(ctx, client, resumed, "print(x + 1)")
		if err == nil && strings.TrimSpace(answer) != "42" {
			err = errNoState
		}
	}
	d.step("resume", began, err, "")
}

var (
	errNotPython = errors.New("the sandbox runs the program and prints something else")
	errNoState   = errors.New("a variable is gone in the next program")
	errRaised    = errors.New("the program raised an error")
)

// evaluate runs a program and returns what it printed.
func evaluate(ctx context.Context, client *e2b.Client, sb *e2b.Sandbox, code string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var (
		out    strings.Builder
		raised string
	)
	collect := func(ev e2b.Event) {
		switch ev.Type {
		case e2b.Stdout:
			out.WriteString(ev.Text)
		case e2b.ErrorEvent:
			raised = ev.Name
		case e2b.Stderr, e2b.ResultEvent, e2b.NumberOfExecutions, e2b.Keepalive, e2b.EndOfExecution:
		}
	}
	for wait := 250 * time.Millisecond; ; wait *= 2 {
		err := client.Execute(ctx, sb, e2b.Execution{Code: code, Timeout: checkTimeout}, collect)
		switch {
		case err == nil && raised != "":
			return out.String(), fmt.Errorf("%w: %.60q", errRaised, raised)
		case e2b.KindOf(err) != e2b.NotReady || wait > 2*time.Second:
			return out.String(), err
		}
		select { // it has just been started
		case <-time.After(wait):
		case <-ctx.Done():
			return out.String(), err
		}
	}
}

func (d *doctor) close(client *e2b.Client, server *local.Server) {
	client.Close()
	if server != nil {
		if err := server.Close(); err != nil {
			d.step("tidy up", start(), err, "")
		}
	}
}
