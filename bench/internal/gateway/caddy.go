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

package gateway

import (
	"fmt"
	"os"
	"path/filepath"
)

// caddyfile is the configuration of all gateways that are Caddy. The handler
// stands where %s before reverse_proxy is.
const caddyfile = `{
	admin %s
	auto_https off
	persist_config off
	log {
		level ERROR
	}
}

http://:%d {
	bind 127.0.0.1
%s
	reverse_proxy %s
}
`

const directive = `	code_interpreter {
		sandbox e2b {
			api_key bench-key-of-no-value
			api_url %s
			sandbox_url %s
		}
	}
`

// Caddy is the binary of Caddy with the module compiled in.
type Caddy struct {
	// Path of the binary.
	Path string
	// Upstream is the address of the model server.
	Upstream string
	// Admin is the address of the admin API, "" for none.
	Admin string
}

// Plain returns Caddy as a reverse proxy and no more.
func (c Caddy) Plain(name string) Command { return c.command(name, "") }

// WithTool returns Caddy with the module, whose sandboxes are at a URL.
func (c Caddy) WithTool(name, sandboxes string) Command {
	return c.command(name, fmt.Sprintf(directive, sandboxes, sandboxes))
}

func (c Caddy) command(name, handler string) Command {
	return Command{Name: name, Args: func(dir string, port int) ([]string, error) {
		admin := c.Admin
		if admin == "" {
			admin = "off"
		}
		file := filepath.Join(dir, "Caddyfile")
		if err := os.WriteFile(file, fmt.Appendf(nil, caddyfile, admin, port, handler, c.Upstream), 0o600); err != nil {
			return nil, err
		}
		return []string{c.Path, "run", "--config", file, "--adapter", "caddyfile"}, nil
	}}
}
