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

// Package clients runs real clients of the OpenAI wire format against a real
// gateway: the official Go SDK here, JavaScript clients in npm. The model is
// the scripted one, the code runs in the embedded sandbox.
package clients

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// upstreamKey is the only key that the upstream of the second gateway takes.
	upstreamKey = "sk-right"
	// scriptedError is what the scripted model says when it is told to fail.
	scriptedError = "The script asked for this error."
)

// gateways are the base URLs for clients.
var gateways struct {
	open   string // the upstream asks for no key
	locked string // the upstream wants upstreamKey
}

// silence is how long a stream is silent in the tests of keep-alives.
var silence = 60 * time.Second

func TestMain(m *testing.M) {
	// Most tests wait for a silent stream; they wait together.
	flag.Parse()
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if s := os.Getenv("SILENT_SECONDS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			fmt.Fprintf(os.Stderr, "SILENT_SECONDS is %q, want a number of seconds\n", s)
			return 1
		}
		silence = time.Duration(n) * time.Second
	}
	dir, err := os.MkdirTemp("", "clients")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()

	ctx, cancel := context.WithCancel(context.Background())
	var running processes
	defer running.wait()
	defer cancel()
	if err := start(ctx, dir, &running); err != nil {
		fmt.Fprintln(os.Stderr, "starting the gateway:", err)
		return 1
	}
	return m.Run()
}

// start builds and starts two scripted models and a gateway in front of them.
func start(ctx context.Context, dir string, running *processes) error {
	for _, program := range [][2]string{{"caddy", "./cmd/caddy"}, {"scriptedmodel", "./caddytest/scriptedmodel/cmd"}} {
		build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join("..", ".."), "-o", filepath.Join(dir, program[0]), program[1])
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", build, err, out)
		}
	}
	model := filepath.Join(dir, "scriptedmodel")
	open, err := running.startModel(ctx, model)
	if err != nil {
		return err
	}
	locked, err := running.startModel(ctx, model, "-key", upstreamKey)
	if err != nil {
		return err
	}
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return err
	}
	config := "{\n\tadmin off\n\tauto_https off\n\tpersist_config off\n}\n"
	for i, upstream := range []string{open, locked} {
		config += fmt.Sprintf(`
http://:%s {
	bind 127.0.0.1
	code_interpreter {
		sandbox local
		exec_timeout %ds
	}
	reverse_proxy %s
}
`, ports[i], int(2*silence.Seconds())+30, strings.TrimSuffix(upstream, "/v1"))
	}
	caddyfile := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(caddyfile, []byte(config), 0o600); err != nil {
		return err
	}
	caddy := exec.CommandContext(ctx, filepath.Join(dir, "caddy"), "run", "--config", caddyfile, "--adapter", "caddyfile")
	caddy.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	gateways.open = "http://127.0.0.1:" + ports[0] + "/v1"
	gateways.locked = "http://127.0.0.1:" + ports[1] + "/v1"
	return running.startGateway(ctx, caddy, ports)
}

// freePorts returns ports of 127.0.0.1 that nobody listens on.
func freePorts(ctx context.Context, n int) ([]string, error) {
	ports := make([]string, n)
	for i := range ports {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		_, ports[i], err = net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// processes are what the tests started. They end with their context.
type processes struct {
	wg sync.WaitGroup
}

func (p *processes) wait() { p.wg.Wait() }

// start starts cmd, which gets a chance to end in order, and returns a channel
// that is closed when it has ended.
func (p *processes) start(cmd *exec.Cmd) (<-chan struct{}, error) {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	p.wg.Go(func() {
		defer close(ended)
		_ = cmd.Wait() // the tests see what is wrong with it
	})
	return ended, nil
}

// startModel starts a scripted model and returns its base URL.
func (p *processes) startModel(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	reader, writer, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer func() { _ = reader.Close() }()
	cmd.Stdout, cmd.Stderr = writer, os.Stderr
	_, err = p.start(cmd)
	_ = writer.Close() // the process has its own
	if err != nil {
		return "", err
	}
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s said nothing: %w", program, err)
	}
	return strings.TrimSpace(line), nil
}

// startGateway starts Caddy and waits until it listens on all ports.
func (p *processes) startGateway(ctx context.Context, cmd *exec.Cmd, ports []string) error {
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	ended, err := p.start(cmd)
	if err != nil {
		return err
	}
	for _, port := range ports {
		for {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+port)
			if err == nil {
				_ = conn.Close()
				break
			}
			select {
			case <-ended:
				return errors.New("caddy ended:\n" + log.String())
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}
