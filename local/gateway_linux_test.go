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

package local

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// gatewayVariable makes the test binary a gateway of its own, to be killed.
const gatewayVariable = "LOCAL_TEST_GATEWAY"

// beGateway starts sandboxes, one idle and one busy, tells that they are there and
// waits for its end.
func beGateway() int {
	s, err := New(context.Background(), Config{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, code := range []string{"print('idle')", "import subprocess\nsubprocess.Popen(['sleep', '1000'])\nprint('busy')\nwhile True: pass"} {
		sb, err := s.launch(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		run, err := sb.driver.execute(sb.executeCommand(sb.kernel(""), code, nil))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		for e := range run.events {
			if e.kind == "stdout" {
				break
			}
		}
	}
	fmt.Println("ready")
	select {}
}

func TestNothingSurvivesTheGateway(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), gatewayVariable+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		cmd.Process.Kill()
		t.Fatalf("the gateway did not start: %q, %v", lines.Text(), cmd.Wait())
	}
	below := descendants(cmd.Process.Pid)
	if len(below) < 2*4+1 {
		t.Errorf("the gateway has %d processes, too few for two sandboxes", len(below))
	}
	fds := map[int]int{}
	for _, pid := range below {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatalf("process %d: %v", pid, err)
		}
		defer unix.Close(fd)
		fds[pid] = fd
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	deadline := time.Now().Add(20 * time.Second)
	for pid, fd := range fds {
		wait := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(wait, int(time.Until(deadline).Milliseconds()))
		if n != 1 {
			name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
			t.Errorf("process %d lives on (%v): %q", pid, err, name)
		}
	}
}

func TestClosedServerLeavesNoProcessAndNoDescriptor(t *testing.T) {
	_ = newServer(t, Config{}).Close() // what the runtime opens once
	before := openDescriptors(t)
	s := newServer(t, Config{Warm: 1})
	c := newClient(t, s)
	c.want(c.create(nil), "1", "1")
	awaitWarm(t, s, 1)
	if n := len(children(os.Getpid())); n < 2 {
		t.Errorf("%d children while sandboxes live", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left := children(os.Getpid()); len(left) > 0 { // zombies count
		t.Errorf("children %v are left", left)
	}
	if after := openDescriptors(t); after != before {
		t.Errorf("%d descriptors were open before, %d are now", before, after)
	}
	if _, err := c.try(t.Context(), nil, "GET", "/sandboxes", nil); err == nil {
		t.Error("a closed server answers")
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestCloseDoesNotWaitForASandboxThatStarts(t *testing.T) {
	s := newServer(t, Config{Preload: []string{"time", "matplotlib.pyplot"}})
	c := newClient(t, s)
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		res, err := c.try(context.Background(), nil, "POST", "/sandboxes", map[string]any{"templateID": "x"})
		if err == nil {
			res.Body.Close()
		}
	}()
	for len(children(os.Getpid())) == 0 {
		time.Sleep(time.Millisecond)
	}
	within(t, 5*time.Second, "Close", func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	<-failed
}
