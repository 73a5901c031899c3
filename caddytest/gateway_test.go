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

package caddytest_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// sessionPrefix begins the session ids of the tests, so that one that shows up
// where it must not is recognised.
const sessionPrefix = "session-id-of-"

// gateway is the running Caddy with one site or more.
type gateway struct {
	t     *testing.T
	url   string   // of the first site
	urls  []string // of all
	ports []string
	log   string // file
	once  sync.Once
}

// start loads a Caddyfile with one site for each block. There is one Caddy in
// the process: the next start replaces it.
func start(t *testing.T, blocks ...string) *gateway {
	t.Helper()
	g := &gateway{t: t, log: filepath.Join(t.TempDir(), "caddy.log")}
	for range blocks {
		port := freePort(t)
		g.ports = append(g.ports, port)
		g.urls = append(g.urls, "http://127.0.0.1:"+port)
	}
	g.url = g.urls[0]
	if err := g.load(blocks...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.stop)
	return g
}

// load gives the same sites other blocks.
func (g *gateway) load(blocks ...string) error {
	return g.loadWith("", blocks...)
}

// loadWith is load with options of the servers.
func (g *gateway) loadWith(servers string, blocks ...string) error {
	g.t.Helper()
	var file strings.Builder
	fmt.Fprintf(&file, `{
		admin off
		persist_config off
		auto_https off
		log {
			level DEBUG
			output file %s {
				roll_disabled
			}
		}
		servers {
			protocols h1 h2c
			%s
		}
	}
	`, g.log, servers)
	for i, block := range blocks {
		fmt.Fprintf(&file, "http://:%s {\nbind 127.0.0.1\n%s\n}\n", g.ports[i], block)
	}
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(file.String()), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return fmt.Errorf("%w in\n%s", err, file.String())
	}
	return caddy.Load(config, true)
}

// stop ends the sites and looks at what they logged, once.
func (g *gateway) stop() { g.once.Do(g.end) }

func (g *gateway) end() {
	if err := caddy.Stop(); err != nil {
		g.t.Error(err)
	}
	log, err := os.ReadFile(g.log)
	if err != nil {
		g.t.Error(err)
	}
	for _, secret := range []string{sessionPrefix, sandboxKey, "sk-", "print("} { // the last one is code
		if i := bytes.Index(log, []byte(secret)); i >= 0 {
			g.t.Errorf("a secret is in the log: %s", log[max(0, i-300):min(len(log), i+100)])
		}
	}
	if !g.t.Failed() {
		return
	}
	var told []string
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte("code_interpreter")) || bytes.Contains(line, []byte(`"level":"error"`)) {
			told = append(told, string(line[:min(len(line), 500)]))
		}
	}
	g.t.Logf("Caddy logged\n%s", strings.Join(told[max(0, len(told)-30):], "\n"))
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
