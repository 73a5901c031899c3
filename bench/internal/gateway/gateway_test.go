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
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary is also the process that the tests start.
func init() {
	addr := os.Getenv("BENCH_TEST_LISTEN")
	if addr == "" {
		runtime.LockOSThread() // so that no test runs on the main thread, which never ends
		return
	}
	if addr == "no" {
		fmt.Fprintln(os.Stderr, "no configuration")
		os.Exit(1)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		os.Exit(2)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			os.Exit(3)
		}
		if line, _ := io.ReadAll(c); string(line) == "work" {
			for start := time.Now(); time.Since(start) < 100*time.Millisecond; {
			}
		}
		c.Close()
	}
}

func self(listen func(port int) string) Command {
	return Command{Name: "self", Args: func(_ string, port int) ([]string, error) {
		return []string{"/usr/bin/env", "BENCH_TEST_LISTEN=" + listen(port), os.Args[0]}, nil
	}}
}

func TestProcessIsMeasured(t *testing.T) {
	p, err := Start(t.Context(), self(func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	before, err := p.CPU()
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "work"); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c); err != nil {
		t.Fatal(err)
	}
	after, err := p.CPU()
	// Others may use the processor, so that it gets less than the whole time.
	if err != nil || after <= before || after-before > 10*time.Second {
		t.Errorf("100 ms of work cost %s: %v", after-before, err)
	}
	m, err := p.Memory()
	if err != nil || m.Now < 1<<20 || m.Peak < m.Now {
		t.Errorf("memory is %+v: %v", m, err)
	}
}

func TestProcessThatEndsIsAnErrorWithItsWords(t *testing.T) {
	_, err := Start(t.Context(), self(func(int) string { return "no" }))
	if err == nil || !strings.Contains(err.Error(), "no configuration") {
		t.Errorf("Start = %v", err)
	}
}

func TestStatusFieldsAreBytes(t *testing.T) {
	status := []byte("Name:\tcaddy\nVmHWM:\t    2048 kB\nVmRSS:\t 1024 kB\n")
	if n, err := field(status, "VmHWM:"); n != 2<<20 || err != nil {
		t.Errorf("VmHWM = %d, %v", n, err)
	}
	if _, err := field(status, "VmSwap:"); err == nil {
		t.Error("a field that is not there has a value")
	}
}

func TestProcessOutlivesTheThreadThatAskedForIt(t *testing.T) {
	var (
		p   *Process
		err error
	)
	thread := make(chan int)
	go func() {
		defer func() { thread <- unix.Gettid() }()
		runtime.LockOSThread() // never unlocked: it ends with the function
		p, err = Start(t.Context(), self(func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }))
	}()
	task := fmt.Sprintf("/proc/self/task/%d", <-thread)
	if err != nil {
		t.Fatal(err)
	}
	for gone := false; !gone; {
		_, err := os.Stat(task)
		gone = os.IsNotExist(err)
	}
	p.Stop()
	if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("it was ended with the thread: %v", status.Signal())
	}
}
