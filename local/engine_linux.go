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

// Package e2b is a client of the E2B protocol: the control plane, which makes
package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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
	args := strings.Join(bwrapArgs(py, l), "\x00") + "\x00"
	return &engine{bwrap: bwrap, py: py, limits: l, args: []byte(args), seccomp: filter, thread: newThread()}, nil
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
	out, err := exec.CommandContext(ctx, path, "--version").Output() //nolint:gosec // found in PATH by name
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

// process is a sandbox as the gateway holds it: bubblewrap, and in it process 1
// of the sandbox, whose end is the end of everything inside.
type process struct {
	stdin  *os.File // commands to the driver; deadlines work
	stdout *os.File // the driver's events
	done   chan struct{}

	cmd       *exec.Cmd
	initMu    sync.Mutex
	init      *os.File // pidfd of the sandbox's process 1
	released  bool     // init is closed
	initPID   int
	memory    int64 // bytes, the limit
	complaint *tail
	uid       int // 0: the gateway's own
}

// start starts a sandbox. It returns when bubblewrap has made its process 1;
// what fails later is seen as its end, with the reason in why.
func (e *engine) start() (*process, error) {
	p := &process{done: make(chan struct{}), complaint: &tail{}, memory: e.limits.memory}
	files, info, err := e.files()
	if err != nil {
		return nil, err
	}
	defer closeAll(files)
	defer info.Close()
	stdin, theirs1, err := pipeTo()
	if err != nil {
		return nil, err
	}
	theirs2, stdout, err := pipeFrom()
	if err != nil {
		closeAll([]*os.File{stdin, theirs1})
		return nil, err
	}
	defer closeAll([]*os.File{theirs1, theirs2})
	p.stdin, p.stdout = stdin, stdout

	p.cmd = &exec.Cmd{
		Path:       e.bwrap,
		Args:       e.commandLine(),
		Env:        []string{}, // process 1's is readable inside
		Dir:        "/",
		Stdin:      theirs1,
		Stdout:     theirs2,
		Stderr:     p.complaint,
		ExtraFiles: files,
		// A terminal's ^C is for the gateway, which then ends its sandboxes in order.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		WaitDelay:   reapTimeout,
	}
	if os.Geteuid() == 0 {
		if p.uid, err = takeUID(); err != nil {
			closeAll([]*os.File{stdin, stdout})
			return nil, err
		}
		p.cmd.SysProcAttr.Credential = credential(p.uid)
	}
	if err := e.thread.do(p.cmd.Start); err != nil {
		releaseUID(p.uid)
		closeAll([]*os.File{stdin, stdout})
		return nil, fmt.Errorf("starting bwrap: %w", err)
	}
	files[fdInfo-fdArgs].Close()
	p.init, p.initPID, err = openInit(info)
	go p.wait()
	if err != nil {
		p.kill()
		return nil, p.startError(err)
	}
	return p, nil
}

// commandLine is bubblewrap's, with the command that it runs inside.
func (e *engine) commandLine() []string {
	return []string{
		"bwrap", "--args", strconv.Itoa(fdArgs), "--",
		e.py.Executable, "-I", "-c", fmt.Sprintf(bootCommand, fdPayload),
		strconv.FormatInt(e.limits.memory+mappedLibraries, 10),
		strconv.Itoa(e.limits.processes),
		strconv.Itoa(maxOpenFiles),
		strconv.FormatInt(e.limits.disk, 10),
	}
}

// files returns the descriptors that bubblewrap inherits, and the reading end of
// its information pipe.
func (e *engine) files() (files []*os.File, info *os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
		}
	}()
	add := func(name string, content []byte) error {
		file, err := memFile(name, content)
		if err == nil {
			files = append(files, file)
		}
		return err
	}
	if err := add("args", e.args); err != nil {
		return nil, nil, err
	}
	if err := add("seccomp", e.seccomp); err != nil {
		return nil, nil, err
	}
	info, infoWriter, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	files = append(files, infoWriter)
	contents := [][]byte{e.py.Code}
	for _, file := range sandboxFiles {
		contents = append(contents, []byte(file.text))
	}
	for _, content := range contents {
		if err := add("file", content); err != nil {
			info.Close()
			return nil, nil, err
		}
	}
	return files, info, nil
}

// openInit waits for bubblewrap to tell its child, the sandbox's process 1, and
// opens a descriptor of that process, which never means another one.
func openInit(info *os.File) (init *os.File, pid int, err error) {
	if err := info.SetReadDeadline(time.Now().Add(infoTimeout)); err != nil {
		return nil, 0, err
	}
	var told struct {
		Child int `json:"child-pid"`
	}
	if err := json.NewDecoder(info).Decode(&told); err != nil {
		return nil, 0, fmt.Errorf("bwrap told nothing of its sandbox: %w", err)
	}
	fd, err := unix.PidfdOpen(told.Child, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("opening process %d: %w", told.Child, err)
	}
	return os.NewFile(uintptr(fd), "pidfd"), told.Child, nil
}

// wait reaps bubblewrap and closes done.
func (p *process) wait() {
	_ = p.cmd.Wait() // how it ended says nothing: it is always killed
	releaseUID(p.uid)
	close(p.done)
}

// kill ends everything inside and waits until bubblewrap has been reaped. It ends
// process 1 of the sandbox, not bubblewrap: that one would leave process 1 to the
// host's init, which a gateway in a container may be itself. It may be called
// more than once, also at the same time.
func (p *process) kill() {
	if p.init != nil {
		p.signalEnd()
		select {
		case <-p.done:
			return
		case <-time.After(reapTimeout):
		}
	}
	_ = p.cmd.Process.Kill() // fails only when it has ended
	<-p.done
}

// signalEnd makes everything inside end, and does not wait for it.
func (p *process) signalEnd() {
	p.initMu.Lock()
	defer p.initMu.Unlock()
	if !p.released {
		// A process that has ended already is all that can go wrong.
		_ = unix.PidfdSendSignal(int(p.init.Fd()), unix.SIGKILL, nil, 0)
	}
}

// release closes the gateway's ends. The process must have ended.
func (p *process) release() {
	closeAll([]*os.File{p.stdin, p.stdout})
	p.initMu.Lock()
	defer p.initMu.Unlock()
	p.released = true
	if p.init != nil {
		p.init.Close()
	}
}

// why returns what bubblewrap or the driver complained about. The process must
// have ended.
func (p *process) why() string { return strings.TrimSpace(string(p.complaint.buf)) }

// startError adds to err what is known of a process that has ended, and closes it.
func (p *process) startError(err error) error {
	p.release()
	if why := p.why(); why != "" {
		return &startError{complaint: why, err: err}
	}
	return err
}

// memFile returns a file in memory that is read from its beginning.
func memFile(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("creating a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	if _, err = file.WriteAt(content, 0); err != nil {
		file.Close()
		return nil, fmt.Errorf("writing a file in memory: %w", err)
	}
	return file, nil
}

func pipeTo() (ours, theirs *os.File, err error)   { theirs, ours, err = os.Pipe(); return }
func pipeFrom() (theirs, ours *os.File, err error) { ours, theirs, err = os.Pipe(); return }

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // closed twice at worst
	}
}

// thread runs functions on one OS thread that lives until close. The kernel ends
// a sandbox with the thread that started it (--die-with-parent is PR_SET_PDEATHSIG),
// and Go ends threads at will.
type thread struct {
	mu     sync.Mutex
	jobs   chan func()
	closed bool
}

func newThread() *thread {
	t := &thread{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the function
		for job := range t.jobs {
			job()
		}
	}()
	return t
}

func (t *thread) do(f func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errEngineClosed
	}
	result := make(chan error, 1)
	t.jobs <- func() { result <- f() }
	return <-result
}

func (t *thread) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		close(t.jobs)
	}
}
