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
	"runtime"
	"strings"
	"testing"
	"time"
)

// abuse is code that means harm. Each ends within its limit in an error: one that
// the model reads, or a sandbox that is no more.
var abuse = []struct {
	name, code string
	wantError  string        // the error's name; "" for any, or a dead sandbox
	leaveAfter time.Duration // the client goes away; 0: it does not
	harmless   bool          // it may end without an error
}{
	{name: "fork bomb", code: "import os, time\nwhile True:\n    if os.fork() == 0: time.sleep(1000)", wantError: "BlockingIOError"},
	{name: "fork bomb that goes on", code: "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", leaveAfter: time.Second},
	{name: "thread bomb", code: "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()", wantError: "RuntimeError"},
	{name: "100 GB at once", code: "bytearray(100 << 30)", wantError: "MemoryError"},
	{name: "all memory bit by bit", code: "hoard = []\nwhile True: hoard.append(bytearray(b'x') * (16 << 20))"},
	{name: "all memory in many processes", code: `
import os, time
for _ in range(8):
    if os.fork() == 0:
        hoard = bytearray(b'x') * (100 << 20)
        time.sleep(1000)
        os._exit(0)
raise SystemError(os.wait()[1])`},
	{name: "memory that no process holds", code: `
import mmap, os, time
for _ in range(4):
    if os.fork() == 0:
        shared = mmap.mmap(-1, 200 << 20)
        for at in range(0, 200 << 20, 4096):
            shared[at] = 1
        shared.madvise(mmap.MADV_DONTNEED)
        time.sleep(1000)
        os._exit(0)
raise SystemError(os.wait()[1])`},
	{name: "memory in sockets", code: `
import os, socket, time
for _ in range(16):
    if os.fork() == 0:
        kept = []
        while True:
            try:
                kept.append(socket.socketpair())
            except OSError:
                time.sleep(1000)
            for end in kept[-1]:
                end.setblocking(False)
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
                try:
                    while True: end.send(b'x' * 4096)
                except BlockingIOError:
                    pass
raise SystemError(os.wait()[1])`},
	{name: "a file without end", code: "with open('/tmp/full', 'wb') as f:\n    while True: f.write(b'x' * (1 << 20))", wantError: "OSError"},
	{name: "files without end", code: "n = 0\nwhile True:\n    n += 1\n    open('/home/user/%d' % n, 'wb').write(b'x' * (16 << 20))", wantError: "OSError"},
	{name: "names without end", code: "import os\nopen('/tmp/0', 'w').close()\nn = 0\nwhile True:\n    n += 1\n    os.link('/tmp/0', '/tmp/%d' % n)"},
	{name: "open files without end", code: `
import os, select, time
for _ in range(40):
    if os.fork() == 0:
        pipes, kept = [os.pipe() for _ in range(100)], []
        while True:
            try:
                kept.append(select.epoll())
                for end, _ in pipes: kept[-1].register(end)
            except OSError:
                time.sleep(1000)
raise SystemError(os.wait()[1])`},
	{name: "terminals without end", code: `
import os, time
for _ in range(8):
    if os.fork() == 0:
        while True:
            try: os.openpty()
            except OSError: time.sleep(1000)
raise SystemError(os.wait()[1])`},
	{name: "1 GB of output", code: "for _ in range(1 << 14): print('x' * (1 << 16))", wantError: "OutputLimitExceeded"},
	{name: "a line of 500 MB", code: "import os\nfor _ in range(500): os.write(1, b'x' * (1 << 20))", wantError: "OutputLimitExceeded"},
	{name: "a value of 500 MB", code: "'x' * 500_000_000", harmless: true},
	{name: "closing every descriptor", code: "import os\nos.closerange(0, 1 << 16)\nprint('?')"},
	{name: "forged messages", code: `
import os
for fd in range(256):
    for line in (b'{"context":"x","run":"y","type":"end_of_execution"}\n', b'\xffj{"type":"end","serial":1}\n', b'\xff' * 10, b'{"type":"ready"}\n'):
        try: os.write(fd, line)
        except OSError: pass
raise SystemError('done')`, harmless: true},
	{name: "interrupts ignored", code: "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", leaveAfter: 100 * time.Millisecond},
	{name: "a loop without end", code: "while True: pass", leaveAfter: 100 * time.Millisecond},
	{name: "exceptions caught for ever", code: "while True:\n    try:\n        while True: pass\n    except BaseException: pass", leaveAfter: 100 * time.Millisecond},
	{name: "deep recursion", code: "import sys\nsys.setrecursionlimit(1 << 30)\ndef f(): return f() + f()\nf()"},
	{name: "figures without end", code: "import matplotlib.pyplot as plt\nfor _ in range(10**6): plt.figure()", leaveAfter: 2 * time.Second},
	{name: "a segmentation fault", code: "import ctypes\nctypes.string_at(0)", wantError: "ContextRestarting"},
	{name: "the interpreter's end", code: "import os\nos._exit(1)", wantError: "ContextRestarting"},
	{name: "deleting all files", code: "import shutil\n[shutil.rmtree(d, ignore_errors=True) for d in ('/home', '/tmp', '/dev', '/etc', '/run', '/usr/lib/python3.11')]\nraise SystemError('done')"},
	{name: "killing everything", code: "import os, signal\nos.kill(-1, signal.SIGKILL)"},
	{name: "stopping everything", code: "import os, signal\nos.kill(-1, signal.SIGSTOP)", leaveAfter: time.Second},
}

const (
	// abuseLimit is a generous multiple of what each abuse takes.
	abuseLimit = 30 * time.Second
	// neighbourLimit is for x+1 beside the worst of them, on a machine that may be
	// busy with other tests.
	neighbourLimit = 5 * time.Second
)

func TestAbuseEndsInAnErrorAndHarmsNobody(t *testing.T) {
	s := newServer(t, Config{Memory: 512 << 20, Disk: 64 << 20})
	c := newClient(t, s)
	neighbour := c.create(nil)
	c.want(neighbour, "x = 1", "")
	for _, tt := range abuse {
		t.Run(tt.name, func(t *testing.T) {
			c := c.with(t)
			b := c.create(nil)
			watchNeighbour(t, c, neighbour)
			within(t, abuseLimit, "the abuse", func() {
				o := c.leave(b, tt.code, tt.leaveAfter)
				if tt.leaveAfter == 0 && !tt.harmless && o.Error == "" && o.Err == nil {
					t.Errorf("it ended well: %v", o)
				}
				t.Logf("it got %v", o)
				if tt.wantError != "" && o.Error != tt.wantError {
					t.Errorf("got %v, want the error %s", o, tt.wantError)
				}
			})
			within(t, abuseLimit, "the next run", func() {
				// Its answer, or the news that the sandbox is gone, for the next one.
				if o := c.leave(b, "6*7", 0); o.Result != "42" && o.Error == "" && o.Err == nil {
					t.Errorf("afterwards: %v", o)
				}
			})
			within(t, abuseLimit, "the end", func() {
				if status, text := c.call(t.Context(), nil, "DELETE", "/sandboxes/"+b.ID, nil); status != 204 && status != 404 {
					t.Errorf("removing it: %d %s", status, text)
				}
			})
		})
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	if memory.HeapSys > 512<<20 {
		t.Errorf("the gateway's heap has grown to %d MiB", memory.HeapSys>>20)
	}
	c.want(neighbour, "x", "1")
}

// leave runs code and goes away after some time; 0: when it takes too long.
func (c *client) leave(b *box, code string, after time.Duration) outcome {
	c.t.Helper()
	if after == 0 {
		after = abuseLimit
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), after)
	defer cancel()
	return c.runWith(ctx, b, map[string]any{"code": code})
}

// watchNeighbour lets another sandbox work until the test's end, and logs the
// longest that it took.
func watchNeighbour(t *testing.T, c *client, b *box) {
	var worst time.Duration
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			start := time.Now()
			o := c.runWith(context.Background(), b, map[string]any{"code": "x+1"})
			took := time.Since(start)
			if o.Result != "2" || took > neighbourLimit {
				t.Errorf("the neighbour got %v in %v", o, took)
			}
			worst = max(worst, took)
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
		t.Logf("the neighbour waited at most %v", worst)
	})
}

func TestLostKernelSaysThatMemoryWasTheReason(t *testing.T) {
	c := newClient(t, newServer(t, Config{Memory: 128 << 20}))
	b := c.create(nil)
	o := c.run(b, "hoard = []\nwhile True: hoard.append(bytearray(b'x') * (4 << 20))")
	if o.Error != "MemoryError" && !strings.Contains(o.Value, "it used more than 128 MiB of memory") {
		t.Errorf("got %v", o)
	}
	c.want(b, "'hoard' in globals()", "False")
}

func TestForksThatShareMemoryAreCountedOnce(t *testing.T) {
	c := newClient(t, newServer(t, Config{Memory: 256 << 20}))
	c.want(c.create(nil), `
import os, time
data = bytearray(b"x") * (100 << 20)
children = []
for _ in range(6):
    pid = os.fork()
    if pid == 0:
        time.sleep(3 * `+fmt.Sprint(watchInterval.Seconds())+`)
        os._exit(7)
    children.append(pid)
[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]`, "[7, 7, 7, 7, 7, 7]")
}

func TestInterruptKeepsState(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	c.want(b, "x = 42", "")
	c.leave(b, "while True: pass", 100*time.Millisecond)
	within(t, interruptGrace, "the run after an interrupted one", func() { c.want(b, "x", "42") })
	c.leave(b, "import time; time.sleep(1000)", 100*time.Millisecond)
	within(t, interruptGrace, "the run after an interrupted one", func() { c.want(b, "x", "42") })
}

func TestCodeThatIgnoresInterruptsIsKilled(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	c.want(b, "x = 42; open('kept', 'w').write('file') and None", "")
	c.leave(b, "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", 100*time.Millisecond)
	if o := c.run(b, "'x' in globals(), open('kept').read()"); o.Result != "(False, 'file')" && o.Error != "ContextRestarting" {
		t.Errorf("afterwards: %v", o)
	}
}
