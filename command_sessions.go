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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

func sessionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions [--json] [--address <interface>] [--config <path> [--adapter <name>]]",
		Short: "Lists the sandboxes of a running Caddy and their sessions",
		Args:  cobra.NoArgs,
		RunE: runE(func(cmd *cobra.Command, _ []string) (int, error) {
			body, err := callAdmin(cmd, http.MethodGet, "sessions")
			if err != nil {
				return caddy.ExitCodeFailedStartup, err
			}
			if flagValue(cmd, "json") == "true" {
				_, err := cmd.OutOrStdout().Write(body)
				return caddy.ExitCodeSuccess, err
			}
			var list []sessionInfo
			if err := json.Unmarshal(body, &list); err != nil {
				return caddy.ExitCodeFailedStartup, fmt.Errorf("reading the answer of the admin API: %w", err)
			}
			return caddy.ExitCodeSuccess, printSessions(cmd.OutOrStdout(), list, time.Now())
		}),
	}
	cmd.Flags().Bool("json", false, "Print the JSON of the admin API")
	adminFlags(cmd)
	return cmd
}

func killCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kill (<id>... | --identity <hash>) [--address <interface>] [--config <path> [--adapter <name>]]",
		Short: "Ends sessions of a running Caddy, in use or not",
		Long: `
Ends sessions by the ids that "sessions" lists, or all of a caller. A program
that runs in one does not finish, and the model is told so.
`,
		RunE: runE(kill),
	}
	cmd.Flags().String("identity", "", "End all sandboxes of a caller")
	adminFlags(cmd)
	return cmd
}

func kill(cmd *cobra.Command, ids []string) (int, error) {
	var paths []string
	if identity := flagValue(cmd, "identity"); identity != "" {
		paths = append(paths, "identities/"+url.PathEscape(identity))
	}
	for _, id := range ids {
		paths = append(paths, "sessions/"+url.PathEscape(id))
	}
	if len(paths) == 0 {
		return exitNotRun, errors.New("nothing to end: name ids that \"caddy code-interpreter sessions\" lists, or --identity")
	}
	total := 0
	for _, path := range paths {
		body, err := callAdmin(cmd, http.MethodDelete, path)
		if err != nil {
			return caddy.ExitCodeFailedStartup, err
		}
		var result ended
		if err := json.Unmarshal(body, &result); err != nil {
			return caddy.ExitCodeFailedStartup, fmt.Errorf("reading the answer of the admin API: %w", err)
		}
		total += result.Ended
	}
	fmt.Fprintf(cmd.OutOrStdout(), "ended %d\n", total)
	return caddy.ExitCodeSuccess, nil
}

func adminFlags(cmd *cobra.Command) {
	configFlags(cmd, "to use to parse the admin address, if --address is not used")
	cmd.Flags().String("address", "", "The address to use to reach the admin API endpoint, if not the default")
}

// callAdmin calls the admin API of a running Caddy.
func callAdmin(cmd *cobra.Command, method, path string) ([]byte, error) {
	address, err := caddycmd.DetermineAdminAPIAddress(flagValue(cmd, "address"), nil, flagValue(cmd, "config"), flagValue(cmd, "adapter"))
	if err != nil {
		return nil, fmt.Errorf("finding the admin address: %w", err)
	}
	response, err := caddycmd.AdminAPIRequest(address, method, adminPath+path, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the Caddy at %s, which --address or --config name: %w", address, err)
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

func printSessions(w io.Writer, list []sessionInfo, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tIDENTITY\tSTATE\tKIND\tAGE\tIDLE\tREQUESTS\tWAITING\tRUNS\tSANDBOX\tENGINE\tBACKEND")
	for _, s := range list {
		idle := "-"
		if s.Requests == 0 {
			idle = since(now, s.LastUsed)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n",
			or(s.ID, "-"), s.Identity, s.State, s.Kind, since(now, s.Created), idle, s.Requests, s.Waiting, s.Executions, or(s.Sandbox, "-"), s.Engine, s.Backend)
	}
	return table.Flush()
}

func since(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return max(now.Sub(t), 0).Round(time.Second).String()
}
