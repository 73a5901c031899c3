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
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// bootCommand hands the interpreter over to boot.py. It is all that the command
// line inside shows.
const bootCommand = "import marshal;payload=open(%d,'rb');exec(marshal.load(payload))"

// engine starts sandboxes. It is safe for concurrent use.
type engine struct {
	bwrap   string
	py      *interpreter
	limits  limits
	args    []byte // bubblewrap's, NUL-separated
	seccomp []byte
	thread  *thread
	seed    atomic.Pointer[seedFile] // nil: none
}

// String says what holds the code, for logs.
func (e *engine) String() string {
	v := e.py.Version
	return fmt.Sprintf("bubblewrap (%s), python %d.%d.%d (%s)", e.bwrap, v[0], v[1], v[2], e.py.Executable)
}

// newEngine finds what a sandbox consists of. It starts none.
func newEngine(ctx context.Context, pythonOption string, l limits) (*engine, error) {
	filter, err := seccompProgram()
	if err != nil {
		return nil, err
	}
	bwrap, err := findBwrap(ctx)
	if err != nil {
		return nil, err
	}
	asSandbox := func(*exec.Cmd) {}
	if os.Geteuid() == 0 {
		uid, err := takeUID()
		if err != nil {
			return nil, err
		}
		defer releaseUID(uid)
		asSandbox = func(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential(uid)} }
	}
	py, err := findPython(ctx, pythonOption, asSandbox)
	if err != nil {
		return nil, err
	}
	return &engine{bwrap: bwrap, py: py, limits: l, args: joinArgs(bwrapArgs(py, l)), seccomp: filter, thread: newThread()}, nil
}

// close ends the thread that sandboxes hang on. All of them must have ended.
func (e *engine) close() { e.thread.close() }

// findBwrap returns bubblewrap's path when its version will do.
func findBwrap(ctx context.Context) (string, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return "", errors.New("bwrap not found in PATH: install bubblewrap (apt install bubblewrap, dnf install bubblewrap), or use sandbox e2b")
	}
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("bwrap %q does not run: %w", path, err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(out), "bubblewrap %d.%d", &major, &minor); err != nil {
		return "", fmt.Errorf("bwrap %q tells no version but %q", path, strings.TrimSpace(string(out)))
	}
	if major == 0 && minor < 8 {
		return "", fmt.Errorf("bwrap %q is version %d.%d: install bubblewrap 0.8 or newer, or use sandbox e2b", path, major, minor)
	}
	return path, nil
}

// start starts a sandbox. It returns when bubblewrap has made its process 1;
// what fails later is seen as its end, with the reason in why.
func (e *engine) start() (*process, error) {
	ends, err := e.plumb()
	if err != nil {
		return nil, err
	}
	defer ends.closeTheirs()
	p := &process{
		commands:  ends.commands,
		events:    ends.events,
		done:      make(chan struct{}),
		complaint: &tail{},
		memory:    e.limits.memory,
	}
	p.cmd = &exec.Cmd{
		Path:       e.bwrap,
		Args:       e.commandLine(),
		Env:        []string{}, // process 1's is readable inside
		Dir:        "/",
		Stderr:     p.complaint,
		ExtraFiles: ends.extra,
		// A terminal's ^C is for the gateway, which then ends its sandboxes in order.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		WaitDelay:   reapTimeout,
	}
	if err := e.run(p); err != nil {
		ends.closeOurs()
		return nil, err
	}
	ends.closeTheirs() // bubblewrap's end has to show on the information pipe
	p.init, p.initPID, err = openInit(ends.info)
	if err == nil {
		err = p.goFirst()
	}
	ends.info.Close()
	ends.block.Close()
	go p.wait()
	if err != nil {
		p.kill()
		return nil, p.startError(err)
	}
	return p, nil
}

// run starts bubblewrap, as a user of its own when the gateway is root.
func (e *engine) run(p *process) error {
	if os.Geteuid() == 0 {
		var err error
		if p.uid, err = takeUID(); err != nil {
			return err
		}
		p.cmd.SysProcAttr.Credential = credential(p.uid)
	}
	if err := e.thread.do(p.cmd.Start); err != nil {
		releaseUID(p.uid)
		if p.uid != 0 {
			return fmt.Errorf("starting bwrap as user %d: %w", p.uid, err)
		}
		return fmt.Errorf("starting bwrap: %w", err)
	}
	return nil
}

// commandLine is bubblewrap's, with the command that it runs inside.
func (e *engine) commandLine() []string {
	return []string{
		"bwrap", "--args", strconv.Itoa(fdArgs), "--",
		e.py.Executable, "-I", "-c", fmt.Sprintf(bootCommand, fdPayload),
		strconv.Itoa(fdCommands), strconv.Itoa(fdEvents),
		strconv.FormatInt(e.limits.memory+mappedLibraries, 10),
		strconv.Itoa(e.limits.processes),
		strconv.Itoa(maxOpenFiles),
		strconv.FormatInt(e.limits.disk, 10),
	}
}
