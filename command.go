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
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "code-interpreter",
		Usage: "[command]",
		Short: "Shows and tries the sandboxes of the code interpreter",
		Long: `
Shows the sessions of a running Caddy, ends them, and tries out where code
runs, with the code_interpreter handler of a configuration or its defaults.
`,
		CobraFunc: func(cmd *cobra.Command) {
			cmd.Args = cobra.NoArgs // else a misspelt command would show the help and succeed
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			cmd.AddCommand(sessionsCommand(), killCommand(), runCommand(), doctorCommand(), serveLocalCommand())
		},
	})
}

// Exit statuses of the commands, besides 0.
const (
	exitFailed = 1 // the program raised an error or did not finish; a check failed
	exitNotRun = 2 // there was no sandbox to run it in, or nothing to run
)

// runE is the function of a command, which returns its exit status.
func runE(run func(cmd *cobra.Command, args []string) (int, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cmd.SilenceUsage = true // what follows is no error of usage
		return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return run(cmd, args) })(cmd, args)
	}
}

// misused ends a command with a status of its own because of a mistake in its
// arguments, if there is one.
func misused(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return exitNotRun, err })(cmd, nil)
}

// configFlags are those that Caddy's own commands have.
func configFlags(cmd *cobra.Command, purpose string) {
	cmd.Flags().StringP("config", "c", "", "Configuration file "+purpose)
	cmd.Flags().StringP("adapter", "a", "", "Name of the config adapter to apply (when --config is used)")
}

// flagValue returns the value of a flag, which the command must have.
func flagValue(cmd *cobra.Command, name string) string { return cmd.Flag(name).Value.String() }

// interruptible is the command's context, which ends with an interrupt: what
// the command has started is then ended in order.
func interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
}
