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
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

func runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run (<file> | -) [--config <path> [--adapter <name>]]",
		Short: "Runs a Python program in the configured sandbox",
		Long: `
Runs a file, or the standard input for -, in a sandbox of its own and prints
what it prints. The sandbox is that of the first code_interpreter handler of the
configuration, of a Caddyfile in the working directory, or the default one.

The exit status is 0 if the program ran to its end, 1 if it raised an error or
was stopped, and 2 if it could not be run.
`,
		Args: func(cmd *cobra.Command, args []string) error { return misused(cmd, cobra.ExactArgs(1)(cmd, args)) },
		RunE: runE(run),
	}
	cmd.SetFlagErrorFunc(misused)
	configFlags(cmd, "with the sandbox to use")
	return cmd
}

func run(cmd *cobra.Command, args []string) (int, error) {
	code, err := readProgram(args[0], cmd.InOrStdin())
	if err != nil {
		return exitNotRun, err
	}
	handlers, err := loadHandlers(cmd)
	if err != nil {
		return exitNotRun, err
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	return runOnce(ctx, handlers[0], code, cmd.OutOrStdout(), cmd.ErrOrStderr(), caddy.Log())
}

func readProgram(name string, stdin io.Reader) (string, error) {
	var (
		code []byte
		err  error
	)
	if name == "-" {
		code, err = io.ReadAll(stdin)
	} else {
		code, err = os.ReadFile(name)
	}
	if err != nil {
		return "", fmt.Errorf("reading the program: %w", err)
	}
	return string(code), nil
}

// runOnce runs a program as a request without a session does.
func runOnce(ctx context.Context, h configured, code string, stdout, stderr io.Writer, logger *zap.Logger) (int, error) {
	b, err := newBackend(ctx, h.spec, share{limits: h.limits, logger: logger})
	if err != nil {
		return exitNotRun, err
	}
	exiting, exit := context.WithCancel(context.WithoutCancel(ctx))
	exit()
	defer b.drain(exiting)
	handle := b.pool.Open(session.Caller{Kind: "command", Value: "run"}, "")
	defer handle.Close()
	p := printer{stdout: stdout, stderr: stderr}
	outcome := handle.Run(ctx, code, p.print)
	switch {
	case p.err != nil:
		return exitFailed, fmt.Errorf("writing the output: %w", p.err)
	case outcome.Status == session.Done && !p.raised:
		return caddy.ExitCodeSuccess, nil
	case outcome.Status == session.Done:
		return exitFailed, errors.New("the program raised an error")
	case outcome.Status == session.Unavailable || outcome.Status == session.Busy:
		return exitNotRun, fmt.Errorf("no sandbox to run it in: %w; \"caddy code-interpreter doctor\" may tell why", outcome.Err)
	case outcome.Err != nil:
		return exitFailed, fmt.Errorf("the program did not finish (%s): %w", outcome.Status, outcome.Err)
	default:
		return exitFailed, fmt.Errorf("the program did not finish (%s)", outcome.Status)
	}
}

// printer prints what a program prints, and the value of its last expression.
type printer struct {
	stdout, stderr io.Writer
	raised         bool
	err            error
}

func (p *printer) print(ev e2b.Event) {
	switch ev.Type {
	case e2b.Stdout:
		p.write(p.stdout, ev.Text)
	case e2b.Stderr:
		p.write(p.stderr, ev.Text)
	case e2b.ErrorEvent:
		p.raised = true
		p.write(p.stderr, handler.Traceback(ev)+"\n")
	case e2b.ResultEvent:
		if ev.Result != nil && ev.Result.Text != "" {
			p.write(p.stdout, ev.Result.Text+"\n")
		}
	case e2b.NumberOfExecutions, e2b.Keepalive, e2b.EndOfExecution:
	}
}

func (p *printer) write(w io.Writer, text string) {
	if _, err := io.WriteString(w, text); err != nil && p.err == nil {
		p.err = err
	}
}
