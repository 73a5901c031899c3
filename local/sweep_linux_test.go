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
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// orphanVariable makes the test binary what a gateway leaves that is killed
// while it starts a sandbox.
const orphanVariable = "LOCAL_TEST_ORPHAN"

func TestStartEndsWhatAKilledGatewayLeft(t *testing.T) {
	flags := uintptr(syscall.CLONE_NEWPID)
	if os.Geteuid() != 0 {
		flags |= syscall.CLONE_NEWUSER
	}
	start := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
		cmd.Args = args
		cmd.Env = append(os.Environ(), orphanVariable+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	orphan := start("bwrap", "--args", "3", "--", "python3", "-I", "-c", fmt.Sprintf(bootCommand, fdPayload))
	other := start("bwrap", "--args", "3", "--", "sh")

	s := newServer(t, Config{})
	if err := orphan.Wait(); err == nil || orphan.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Errorf("the orphan ended with %v, want it killed", err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("somebody else's process was ended: %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // says that it was killed

	// Sandboxes of a gateway that lives are left alone by the next one.
	sb, err := s.launch(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer sb.end()
	newServer(t, Config{})
	select {
	case <-sb.process.done:
		t.Error("a live sandbox was taken for an orphan")
	default:
	}
}
