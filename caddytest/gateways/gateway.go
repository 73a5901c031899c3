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

package gateways

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// errNoAnswer says that a gateway has not answered: it is dead or dying.
var errNoAnswer = errors.New("no answer")

// gateway is a Caddy in a process of its own.
type gateway struct {
	port string
	cmd  *exec.Cmd
	log  string
	done chan error
}

// launch starts a gateway and waits until it listens.
func launch(t *testing.T, binary, port, caddyfile string) *gateway {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "gateway")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(config, []byte(caddyfile), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &gateway{port: port, log: filepath.Join(dir, "log"), done: make(chan error, 1)}
	log, err := os.Create(g.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	// Not bound to the test's context: its end is part of the test.
	g.cmd = exec.Command(binary, "run", "--config", config, "--adapter", "caddyfile") //nolint:noctx // see above
	g.cmd.Stdout, g.cmd.Stderr = log, log
	g.cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { g.done <- g.cmd.Wait() }()
	t.Cleanup(func() { g.report(t) })
	for late := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = conn.Close()
			return g
		}
		if time.Now().After(late) {
			g.end(t, syscall.SIGKILL)
			t.Errorf("the gateway does not listen: %v", err)
			return g
		}
	}
}

// end sends a signal and waits for the end of the process.
func (g *gateway) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := g.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("ending a gateway: %v", err)
	}
	select {
	case err := <-g.done:
		g.done <- err
		if err != nil && signal != syscall.SIGKILL {
			t.Errorf("a gateway ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("a gateway hangs")
	}
}

// report ends a gateway that a failed test has left, and shows what it logged.
func (g *gateway) report(t *testing.T) {
	g.end(t, syscall.SIGKILL)
	log, err := os.ReadFile(g.log)
	if err != nil {
		t.Error(err)
	}
	var told, warned []string
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, sandboxKey) || strings.Contains(line, sessionPrefix) {
			t.Errorf("a secret is in the log: %s", line)
		}
		switch {
		case strings.Contains(line, `"level":"warn"`), strings.Contains(line, `"level":"error"`):
			warned = append(warned, line)
		case strings.Contains(line, "sandbox"):
			told = append(told, line)
		}
	}
	if t.Failed() {
		t.Logf("the gateway on port %s logged\n%s", g.port, strings.Join(append(warned, told[max(0, len(told)-20):]...), ""))
	}
}

// sessionPrefix begins session ids, so that one is recognised where it must not be.
const sessionPrefix = "session-id-of-"

const program = `
try:
    n += 1
except NameError:
    n = 1
print(n)`

// count runs the program in a session and returns what it printed.
func (g *gateway) count(s session) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	body, err := json.Marshal(map[string]any{
		"model":    "scripted",
		"messages": []any{map[string]any{"role": "user", "content": "Run this: " + program}},
		"tools":    []any{map[string]any{"type": "code_interpreter"}},
		"metadata": map[string]any{"session_id": sessionPrefix + strconv.Itoa(s.id)},
	})
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:"+g.port+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Api-Key", "caller-"+strconv.Itoa(s.caller))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		return 0, errNoAnswer
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, errNoAnswer
	}
	return counted(resp.StatusCode, answer)
}

// counted finds the number in an answer.
func counted(status int, answer []byte) (int, error) {
	var completion struct {
		Choices []struct {
			Message struct {
				Executed []struct {
					Output string `json:"output"`
				} `json:"executed_tools"`
			} `json:"message"`
		} `json:"choices"`
	}
	err := json.Unmarshal(answer, &completion)
	if err != nil || status != http.StatusOK || len(completion.Choices) != 1 || len(completion.Choices[0].Message.Executed) != 1 {
		return 0, fmt.Errorf("status %d: %s", status, answer)
	}
	n, err := strconv.Atoi(strings.TrimSpace(completion.Choices[0].Message.Executed[0].Output))
	if err != nil {
		return 0, fmt.Errorf("no number: %s", answer)
	}
	return n, nil
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
