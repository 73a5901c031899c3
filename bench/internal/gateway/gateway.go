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

// Package gateway starts the processes that are measured and says what they
// have used.
package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	startTime = 20 * time.Second
	stopTime  = 10 * time.Second
	logSize   = 16 << 10
)

// Command is a process that listens on a port of the loopback.
type Command struct {
	// Name is what errors call it.
	Name string
	// Args is the command line that has it listen on the port, which may use
	// files in dir, a directory of its own.
	Args func(dir string, port int) ([]string, error)
}

// Process is a started one.
type Process struct {
	// Addr is where it listens.
	Addr string

	name string
	dir  string
	cmd  *exec.Cmd
	log  *tail
	done chan struct{} // closed when it has ended
}

// Start starts the command and returns when it accepts connections.
func Start(ctx context.Context, c Command) (*Process, error) {
	dir, err := os.MkdirTemp("", "bench-"+c.Name+"-")
	if err != nil {
		return nil, err
	}
	p := &Process{name: c.Name, dir: dir, log: &tail{}, done: make(chan struct{})}
	if err := p.start(ctx, c); err != nil {
		_ = os.RemoveAll(dir) // the first error is the one that matters
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	if err := p.ready(ctx); err != nil {
		p.Stop()
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	return p, nil
}

func (p *Process) start(ctx context.Context, c Command) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	args, err := c.Args(p.dir, port)
	if err != nil {
		return err
	}
	p.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	// It has to outlive ctx for as long as Stop takes.
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), args[0], args[1:]...)
	p.cmd.Env = append(environment(), "XDG_DATA_HOME="+p.dir, "XDG_CONFIG_HOME="+p.dir)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the kernel ends the process with the thread that started it
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // that it has ended is all there is to know
			close(p.done)
		}
	}()
	return <-started
}

// environment is that of this process without what would change a gateway.
func environment() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "E2B_") && !strings.HasPrefix(e, "GODEBUG=") {
			env = append(env, e)
		}
	}
	return env
}

// freePort returns a port that was free a moment ago.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

var errEnded = errors.New("the process has ended")

// ready waits until the process accepts connections.
func (p *Process) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	var d net.Dialer
	for {
		c, err := d.DialContext(ctx, "tcp", p.Addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not listen: %w; its last words: %s", ctx.Err(), p.log)
		case <-p.done:
			return fmt.Errorf("%w; its last words: %s", errEnded, p.log)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Stop ends the process, by force when it takes its time.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.done:
	case <-time.After(stopTime):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	_ = os.RemoveAll(p.dir) // in the directory for temporary files
}

// CPU returns the time that the process has spent, in user and in system mode
// together, as its CPU clock has it: the same as in /proc/PID/stat, but not
// rounded to hundredths of a second.
func (p *Process) CPU() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(cpuClock(p.cmd.Process.Pid), &ts); err != nil {
		return 0, fmt.Errorf("reading the CPU clock of %s: %w", p.name, err)
	}
	return time.Duration(ts.Nano()), nil
}

// cpuClock is what clock_getcpuclockid returns: the complement of the process
// id, and CPUCLOCK_SCHED in the lowest bits.
func cpuClock(pid int) int32 { return int32(^pid<<3 | 2) }

// Memory is resident memory in bytes.
type Memory struct{ Now, Peak int64 }

// Memory returns how much memory the process has and has had at most.
func (p *Process) Memory() (m Memory, err error) {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	if err != nil {
		return m, err
	}
	if m.Now, err = field(status, "VmRSS:"); err != nil {
		return m, err
	}
	m.Peak, err = field(status, "VmHWM:")
	return m, err
}

// field returns a size of /proc/PID/status in bytes.
func field(status []byte, name string) (int64, error) {
	for line := range bytes.Lines(status) {
		fields := strings.Fields(string(line))
		if len(fields) == 3 && fields[0] == name && fields[2] == "kB" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in the status of the process", name)
}

// Log returns the end of what the process has written.
func (p *Process) Log() string { return p.log.String() }

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	t.buf = t.buf[max(0, len(t.buf)-logSize):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.buf))
}
