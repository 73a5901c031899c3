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
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/local"
)

func serveLocalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve-local [--listen <address>] [--config <path> [--adapter <name>]]",
		Short: "Serves local sandboxes to clients of E2B",
		Long: `
Serves this machine's sandboxes with E2B's protocol, for its SDKs and for tests,
until it is interrupted. Whoever has the key may run code: it is that of the
environment variable E2B_API_KEY, or a new one that is printed. The options are
those of "sandbox local" in the configuration, or the defaults.
`,
		Args: cobra.NoArgs,
		RunE: runE(func(cmd *cobra.Command, _ []string) (int, error) {
			spec, err := localSpecOf(cmd)
			if err != nil {
				return caddy.ExitCodeFailedStartup, err
			}
			ctx, stop := interruptible(cmd)
			defer stop()
			if err := serveLocal(ctx, spec, flagValue(cmd, "listen"), fromEnv(envAPIKey), cmd.OutOrStdout(), caddy.Log()); err != nil {
				return caddy.ExitCodeFailedStartup, err
			}
			return caddy.ExitCodeSuccess, nil
		}),
	}
	cmd.Flags().StringP("listen", "l", "127.0.0.1:3000", "Address to listen on; one that is not of this machine alone needs E2B_API_KEY")
	configFlags(cmd, "with the options of local sandboxes")
	return cmd
}

// localSpecOf returns the options of the first local sandboxes that are
// configured.
func localSpecOf(cmd *cobra.Command) (*localSpec, error) {
	if flagValue(cmd, "config") == "" {
		return new(Local).spec(0)
	}
	handlers, err := loadHandlers(cmd)
	if err != nil {
		return nil, err
	}
	for _, h := range handlers {
		if h.spec.local != nil {
			return h.spec.local, nil
		}
	}
	return nil, errors.New("the configuration has no code_interpreter handler with sandbox local")
}

// serveLocal serves sandboxes until ctx ends.
func serveLocal(ctx context.Context, spec *localSpec, address, key string, out io.Writer, logger *zap.Logger) error {
	known := key != ""
	if !known {
		if !loopback(address) {
			return fmt.Errorf("listen %q: others than this machine can reach it: set E2B_API_KEY to a key that only you know", address)
		}
		var random [20]byte
		_, _ = rand.Read(random[:]) // never fails
		key = "e2b_" + hex.EncodeToString(random[:])
	}
	server, err := local.New(ctx, spec.config(key, logger))
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return errors.Join(fmt.Errorf("listen: %w", err), server.Close())
	}
	url := "http://" + listener.Addr().String()
	var lines strings.Builder
	fmt.Fprintf(&lines, "export E2B_API_URL=%s\nexport E2B_SANDBOX_URL=%s\n", url, url)
	if !known {
		fmt.Fprintf(&lines, "export E2B_API_KEY=%s\n", key)
	}
	if _, err := io.WriteString(out, lines.String()); err != nil {
		return errors.Join(err, listener.Close(), server.Close())
	}
	return errors.Join(server.Serve(ctx, listener), server.Close())
}

// loopback is whether only this machine can reach an address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
