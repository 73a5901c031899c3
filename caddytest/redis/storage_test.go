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

package redis

import (
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/caddytest/gateways"
)

// Two gateways with one Redis: sessions go on whichever gets the request, and
// when one of them dies.
func TestGatewaysShareSessionsInRedis(t *testing.T) {
	gateways.Trial{
		Binary:   gateways.Build(t, "./caddy"),
		Storage:  "test_redis " + serveRedis(t),
		Requests: 300, Callers: 4, Sessions: 5,
	}.Full().Run(t)
}

// serveRedis starts a Redis without anything on a disk and returns its address.
func serveRedis(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	// Not bound to the test's context, which ends before the gateways do.
	cmd := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting redis-server: %v: install redis-server", err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it says that it was killed
	})
	for late := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			return address
		}
		if time.Now().After(late) {
			t.Fatalf("redis-server does not listen: %v", err)
		}
	}
}
