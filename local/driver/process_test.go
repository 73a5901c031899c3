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

package driver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// restarted checks that a run ended because its kernel did.
func restarted(t *testing.T, events []event) {
	t.Helper()
	if len(events) == 0 {
		t.Fatal("no events")
	}
	last := events[len(events)-1]
	if last.Type != "error" || last.Name != "ContextRestarting" || last.Value != "Context was restarted" || last.Traceback != "" {
		t.Errorf("run ended with %+v", last)
	}
}

// fresh checks that the context's kernel works, and is a new one.
func fresh(t *testing.T, p *program) {
	t.Helper()
	if got := p.value("'x' in globals(), __import__('os').getcwd() != ''"); got != "(False, True)" {
		t.Errorf("kernel has %s", got)
	}
}

func TestInterruptKeepsTheState(t *testing.T) {
	p := start(t)
	p.ok("x = 1")
	for _, code := range []string{
		"while True: pass",
		"import time; time.sleep(1000)",
		"import asyncio; await asyncio.sleep(1000)",
		"import os; os.system('sleep 1000')",
		"!sleep 1000",
		"y = !sleep 1000",
		"%%bash\nsleep 1000",
		"import threading; threading.Event().wait()",
		"while True: print('x' * 1000)",
		"import subprocess; subprocess.run(['sleep', '1000'])",
		"class S:\n  def __repr__(self):\n    while True: pass\nS()",
	} {
		t.Run(code, func(t *testing.T) {
			run := p.begin("c", code, nil)
			if e := p.next(); e.Type != "number_of_executions" {
				t.Fatalf("first event %+v", e)
			}
			p.send(map[string]any{"op": "interrupt", "context": "c", "run": run})
			events := p.end("c", run)
			if last := events[len(events)-1]; last.Name != "KeyboardInterrupt" && !strings.HasPrefix(code, "import os") {
				t.Errorf("run ended with %+v", last)
			}
			if got := p.value("x"); got != "1" {
				t.Errorf("x is %s", got)
			}
		})
	}
}

func TestInterruptWhereExceptionsAreIgnoredIsRepeated(t *testing.T) {
	p := start(t)
	run := p.begin("c", "import time\nclass F:\n  def __del__(self):\n    print('in')\n    while True: pass\nF()\nprint('on')\nwhile True: pass", nil)
	for e := p.next(); !strings.Contains(e.Text, "in\n"); {
		e = p.next()
	}
	p.send(map[string]any{"op": "interrupt", "context": "c", "run": run})
	events := p.end("c", run)
	if last := events[len(events)-1]; last.Name != "KeyboardInterrupt" || output(events, "stdout") != "on\n" || output(events, "stderr") != "" {
		t.Errorf("run ended with %+v", events)
	}
	// Nobody has interrupted this one.
	events = p.run("class G:\n  def __del__(self): raise KeyboardInterrupt\nG()\ntime.sleep(0.1)\n5")
	if got := results(events); len(got) != 1 || got[0].Text != "5" || !strings.HasPrefix(output(events, "stderr"), "Exception ignored ") {
		t.Errorf("then %+v", events)
	}
}

func TestInterruptBeforeTheBeginCounts(t *testing.T) {
	p := start(t)
	run := p.begin("c", "while True: pass", nil)
	p.send(map[string]any{"op": "interrupt", "context": "c", "run": run})
	events := p.end("c", run)
	if last := events[len(events)-1]; last.Name != "KeyboardInterrupt" {
		t.Errorf("run ended with %+v", last)
	}
}

func TestLateInterruptsHarmNothing(t *testing.T) {
	p := start(t)
	p.ok("x = 1")
	for range 50 {
		run := p.begin("c", "x", nil)
		p.send(map[string]any{"op": "interrupt", "context": "c", "run": run})
		p.end("c", run) // interrupted or not
		p.send(map[string]any{"op": "interrupt", "context": "c", "run": run})
		p.send(map[string]any{"op": "interrupt", "context": "nope", "run": run})
		if got := p.value("x"); got != "1" {
			t.Fatalf("x is %s", got)
		}
	}
}

func TestSupervisorIsNotInterrupted(t *testing.T) {
	p := start(t)
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if got := p.value("import signal, subprocess, sys\n" +
		"signal.getsignal(signal.SIGINT) is not signal.SIG_IGN, " +
		"subprocess.run([sys.executable, '-c', 'import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)'], capture_output=True).stdout"); got != "(True, b'False\\n')" {
		t.Errorf("kernel and its programs have %s", got)
	}
}

func TestKillEndsCodeThatIgnoresInterrupts(t *testing.T) {
	p := start(t)
	run := p.begin("c", "import signal, os\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nx = 1\n"+
		"os.open('ignoring', os.O_CREAT)\nprint('now')\nwhile True: pass", nil)
	p.next()
	for text := ""; text != "now\n"; {
		text += p.next().Text
	}
	p.send(map[string]any{"op": "interrupt", "context": "c", "run": run})
	p.send(map[string]any{"op": "kill", "context": "c"})
	restarted(t, p.end("c", run))
	fresh(t, p)
	if _, err := os.Stat(filepath.Join(p.home, "ignoring")); err != nil {
		t.Errorf("files are gone: %v", err)
	}
}

func TestHandlersOfInterruptsEndWithTheirCell(t *testing.T) {
	p := start(t)
	p.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN);")
	run := p.begin("c", "while True: pass", nil)
	p.next()
	p.send(map[string]any{"op": "interrupt", "context": "c", "run": run})
	if events := p.end("c", run); events[0].Name != "KeyboardInterrupt" {
		t.Errorf("events %+v", events)
	}
}

func TestWhatHandlersAndTasksRaiseBetweenRunsIsBorne(t *testing.T) {
	p := start(t)
	gate := filepath.Join(p.home, "gate")
	for _, code := range []string{
		"import signal\ndef handle(*args):\n    open('gate', 'w').close(); raise TimeoutError\n" +
			"signal.signal(signal.SIGALRM, handle)\nsignal.setitimer(signal.ITIMER_REAL, 0.05);",
		"import asyncio\nasync def leave():\n    await asyncio.sleep(0.05)\n    open('gate', 'w').close()\n    raise SystemExit\n" +
			"task = asyncio.create_task(leave())",
	} {
		p.ok("import os\nx = 1\nif not os.path.exists('gate'): os.mkfifo('gate')")
		p.run(code)
		if _, err := os.ReadFile(gate); err != nil { // until it has happened
			t.Fatal(err)
		}
		if got := p.value("x"); got != "1" {
			t.Errorf("x is %s", got)
		}
	}
}

func TestDeathOfAKernelEndsItsRun(t *testing.T) {
	p := start(t)
	for _, code := range []string{
		"import os; os._exit(0)",
		"import os; os.kill(os.getpid(), 9)",
		"import ctypes; ctypes.string_at(0)",
		"import os; os.abort()",
		"import os; os.closerange(0, 1000)",
		// The descriptors mean something else then.
		"import os\nos.closerange(3, 1000)\nfiles = [open('f%d' % i, 'w') for i in range(300)]\nprint('x')",
		"import os\nfor i in range(3, 1000):\n  try: os.dup2(0, i)\n  except OSError: pass\nprint('x')",
		"import os, sys; sys.setrecursionlimit(10**9)\nos.abort()",
		// A line without an end.
		"import os\nfor i in range(3, 300):\n  try:\n    while True: os.write(i, b'\\xffj' + b'x' * (1 << 20)) if i > 20 else os.fstat(-1)\n  except OSError: pass\nos._exit(1)",
	} {
		t.Run(code, func(t *testing.T) {
			p.ok("x = 1")
			restarted(t, p.end("c", p.begin("c", code, nil)))
			fresh(t, p)
		})
	}
}

func TestExhaustionIsAnErrorOfTheCell(t *testing.T) {
	p := start(t)
	for _, test := range []struct{ code, name, after string }{
		{"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\nfiles = []\nwhile True: files.append(open('/dev/null'))", "OSError", "files.clear(); 1"},
		{"import resource\nresource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))\nx = []\nwhile True: x.append(bytes(1000))", "MemoryError", "x.clear(); 1"},
		{"def f(): return [f() for _ in range(1)]\nf()", "RecursionError", "1"},
		{"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\nf = open('big', 'w'); f.write('x' * 1000); f.flush()", "OSError", "1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if e := p.fails(test.code); e.Name != test.name {
				t.Errorf("error %s %q\n%s", e.Name, e.Value, e.Traceback)
			}
			if got := p.value(test.after); got != "1" {
				t.Errorf("then %s", got)
			}
			p.control("restart", "restarted", "c")
		})
	}
}

func TestKernelThatCannotSpeakIsLost(t *testing.T) {
	for _, code := range []string{
		"import os\nos.write = None",
		"import builtins\nbuiltins.len = builtins.isinstance = builtins.type = builtins.range = None",
		"from pydriver import channel\nchannel.write_all = None",
	} {
		t.Run(code, func(t *testing.T) {
			p := start(t)
			restarted(t, p.run(code))
			fresh(t, p)
		})
	}
}

func TestLastWordsOfAKernelAreHeard(t *testing.T) {
	p := start(t)
	events := p.run("import os\nprint('python')\nos.system('echo program')\nos.write(2, b'raw')\nos._exit(3)")
	restarted(t, events)
	if out, err := output(events, "stdout"), output(events, "stderr"); out != "python\nprogram\n" || err != "raw" {
		t.Errorf("stdout %q, stderr %q", out, err)
	}
}

func TestDeathBetweenRunsIsToldOnce(t *testing.T) {
	p := start(t)
	gate := filepath.Join(p.home, "gate")
	p.ok("x = 1\nimport os, threading\nos.mkfifo('gate')\npid = os.getpid()\n" +
		"def die():\n    f = open('gate', 'w'); os._exit(1)\nthreading.Thread(target=die).start()")
	if _, err := os.ReadFile(gate); err != nil { // until the kernel is gone
		t.Fatal(err)
	}
	events := p.end("c", p.begin("c", "print('must not run')", nil))
	restarted(t, events)
	if len(events) != 1 {
		t.Errorf("events %+v", events)
	}
	fresh(t, p)
}

func TestFloodBetweenRunsWaitsForTheNext(t *testing.T) {
	p := start(t)
	p.run("import threading\ndef flood():\n    for i in range(20000): print('x' * 99)\n    print('done')\n" +
		"thread = threading.Thread(target=flood); thread.start()")
	run := p.begin("c", "thread.join(); print('last')", nil)
	if e := p.next(); e.Type != "number_of_executions" {
		t.Errorf("first event %+v", e)
	}
	out := output(p.end("c", run), "stdout")
	if !strings.HasSuffix(out, "done\nlast\n") || len(out) < 500_000 {
		t.Errorf("%d bytes, the end is %q", len(out), out[max(0, len(out)-50):])
	}
}

func TestForkedChildrenNeverSpeakAsTheKernel(t *testing.T) {
	p := start(t)
	for _, child := range []string{
		"print('child')",
		"print('child'); os._exit(0)",
		"print('child'); raise SystemExit(0)",
		"print('child'); display(1); 1/0",
		"import sys; print('child'); sys.exit('bye')",
		"import threading; threading.Thread(target=print, args=('child',)).start()",
	} {
		t.Run(child, func(t *testing.T) {
			events := p.run("import os\nif os.fork() == 0:\n    " + child + "\nelse:\n    os.wait()\n    print('parent')")
			if out := output(events, "stdout"); out != "child\nparent\n" && out != "child\n1\nparent\n" {
				t.Errorf("stdout %q", out)
			}
			for _, e := range events {
				if e.Type == "result" || e.Type == "error" {
					t.Errorf("the child said %+v", e)
				}
			}
		})
	}
	if got := p.value("import multiprocessing as mp\ndef sq(x): return x * x\nwith mp.get_context('fork').Pool(2) as pool: r = pool.map(sq, [1, 2])\nr"); got != "[1, 4]" {
		t.Errorf("pool gave %s", got)
	}
	if got := p.value("7"); got != "7" {
		t.Errorf("then %s", got)
	}
}

func TestForgedMessagesStayInTheirContext(t *testing.T) {
	p := start(t)
	p.create("other", map[string]any{})
	forged := `import os, json
def forge(line):
    for fd in range(3, 300):
        try:
            if os.readlink('/proc/self/fd/%d' % fd).startswith('pipe:'): os.write(fd, line)
        except OSError: pass
for message in ({"type": "created", "context": "evil"}, {"type": "ready"}, {"type": "result", "text": "t", "context": "other", "run": "9"},
                {"type": "end", "serial": 99}, {"type": "end_of_execution", "context": "other", "run": "9"}, {"type": []}, [], 3, {"type": "end"},
                {"type": "end", "serial": []}):
    forge(b'\xffj' + json.dumps(message).encode() + b'\n')
for noise in (b'\xff', b'\xff\xff\xff', b'\xffj{', b'\xffz', b'\n\n', b'\xffj' + b'[' * 100000 + b'\n', b'\xc3', b'\xffjnull\n'):
    forge(noise)
print('real')`
	events := p.run(forged) // fails on an event of another context or run
	if !strings.HasSuffix(output(events, "stdout"), "real\n") {
		t.Errorf("stdout %q", output(events, "stdout"))
	}
	if e := p.end("other", p.begin("other", "5", nil)); len(results(e)) != 1 || results(e)[0].Text != "5" {
		t.Errorf("the other context said %+v", e)
	}
}

func TestForgedMessagesOfOtherTypesAreDropped(t *testing.T) {
	p := start(t)
	p.create("other", map[string]any{})
	forge := func(message, when string) string {
		return fmt.Sprintf(`import os, threading, time
def forge():
    time.sleep(0.1)
    for fd in range(3, 100):
        try:
            if os.readlink('/proc/self/fd/%%d' %% fd).startswith('pipe:'): os.write(fd, b'\xffj' + (%s) + b'\n')
        except OSError: pass
forger = threading.Thread(target=forge)
forger.start()
%s`, message, when)
	}
	for name, message := range map[string]string{
		"a number as text":    `b'{"type":"result","text":5}'`,
		"objects in an error": `b'{"type":"error","name":5,"value":{},"traceback":[]}'`,
		"an object as count":  `b'{"type":"number_of_executions","execution_count":{}}'`,
		"infinity":            `b'{"type":"result","json":1e999,"extra":{"x":-Infinity}}'`,
		"what is deep":        `b'{"type":"result","json":' + b'[' * 250 + b']' * 250 + b'}'`,
		"what is too deep":    `b'{"type":"result","json":' + b'[' * 30000 + b']' * 30000 + b'}'`,
		"a number too long":   `b'{"type":"result","json":' + b'9' * 5000 + b'}'`,
	} {
		t.Run(name, func(t *testing.T) {
			for moment, when := range map[string]string{"during the run": "forger.join()", "between runs": ""} {
				for _, code := range []string{forge(message, when), "forger.join()"} {
					for _, e := range p.run(code) {
						// Python 3.9 has no limit for numbers; what it takes may be shown.
						if name != "a number too long" || e.Type != "result" || e.JSON == nil {
							t.Fatalf("%s: %+v", moment, e)
						}
					}
				}
				if got := p.value("'alive'"); got != "alive" {
					t.Fatalf("%s: then %q", moment, got)
				}
			}
			if got := results(p.end("other", p.begin("other", "5", nil))); len(got) != 1 || got[0].Text != "5" {
				t.Errorf("the other context said %+v", got)
			}
		})
	}
}

func TestNoiseFromAKernelIsBorne(t *testing.T) {
	p := start(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		noise := make([]byte, random.IntN(5000))
		for i := range noise {
			const alphabet = "\xff\xffjoefs{}\":,\n\x00x"
			noise[i] = alphabet[random.IntN(len(alphabet))]
		}
		code := fmt.Sprintf("import os\nfor fd in range(3, 60):\n  try:\n    if os.readlink('/proc/self/fd/%%d' %% fd).startswith('pipe:'): os.write(fd, %s)\n  except OSError: pass", pythonBytes(noise))
		p.end("c", p.begin("c", code, nil))
		events := p.end("c", p.begin("c", "'alive'", nil))
		if got := results(events); len(got) == 0 || got[len(got)-1].Text != "alive" {
			t.Fatalf("after %q: %+v", noise, events)
		}
	}
}

func pythonBytes(b []byte) string {
	var s strings.Builder
	s.WriteString("b'")
	for _, c := range b {
		fmt.Fprintf(&s, "\\x%02x", c)
	}
	s.WriteString("'")
	return s.String()
}

func TestBadCommandsAreSkipped(t *testing.T) {
	p := start(t)
	for _, line := range []string{"", "x", "{}", "[]", `{"op":1}`, `{"op":"nope"}`, `{"op":"_reap"}`, `{"op":"interrupt"}`, `{"op":"kill","context":"nope"}`, `{"op":"restart"}`, `{"op":"remove","context":"nope"}`, "\xff\xfe"} {
		if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.value("1"); got != "1" {
		t.Errorf("then %s", got)
	}
}

func TestRefusals(t *testing.T) {
	p := start(t)
	for _, test := range []struct {
		command map[string]any
		want    string
	}{
		{map[string]any{"context": "c"}, "context c exists already"},
		{map[string]any{"context": "d", "language": "cobol"}, "language 'cobol' is not available: use python or bash"},
		{map[string]any{"context": "d", "cwd": "/nope"}, "cwd '/nope' is not a directory"},
	} {
		test.command["op"] = "create"
		p.send(test.command)
		if e := p.next(); e.Type != "refused" || e.Message != test.want || e.Context != test.command["context"] {
			t.Errorf("answer %+v, want %q", e, test.want)
		}
	}
	events := p.end("nope", p.begin("nope", "1", nil))
	if len(events) != 1 || events[0].Name != "ContextNotFound" {
		t.Errorf("events %+v", events)
	}
}

func TestContextsAreApart(t *testing.T) {
	p := start(t)
	p.create("d", map[string]any{"cwd": "/"})
	p.ok("x = 'c'; import os; os.environ['X'] = 'c'")
	events := p.end("d", p.begin("d", "import os; 'x' in globals(), os.getcwd(), os.environ.get('X')", nil))
	if got := results(events); len(got) != 1 || got[0].Text != "(False, '/', None)" {
		t.Errorf("events %+v", events)
	}
	// One that computes does not stop the other.
	busy := p.begin("d", "while True: pass", nil)
	p.next()
	if got := p.value("x"); got != "c" {
		t.Errorf("x is %s", got)
	}
	p.send(map[string]any{"op": "remove", "context": "d"})
	restarted(t, p.end("d", busy))
	if e := p.next(); e.Type != "removed" {
		t.Errorf("answer %+v", e)
	}
	p.send(map[string]any{"op": "restart", "context": "c"})
	if e := p.next(); e.Type != "restarted" {
		t.Errorf("answer %+v", e)
	}
	fresh(t, p)
}

func TestRestartEndsTheRunInProgress(t *testing.T) {
	p := start(t)
	run := p.begin("c", "x = 1\nwhile True: pass", nil)
	p.next()
	p.send(map[string]any{"op": "restart", "context": "c"})
	restarted(t, p.end("c", run))
	if e := p.next(); e.Type != "restarted" {
		t.Errorf("answer %+v", e)
	}
	fresh(t, p)
}

func TestPreloadIsSharedAndReportsFailures(t *testing.T) {
	p := launch(t)
	go p.read()
	p.send(map[string]any{"op": "start", "preload": []string{"numpy", "matplotlib.pyplot", "nope_nope"}, "home": p.home})
	ready := p.next()
	if ready.Type != "ready" || len(ready.PreloadErrors) != 1 || !strings.Contains(ready.PreloadErrors["nope_nope"], "ModuleNotFoundError") || ready.Python == "" {
		t.Fatalf("answer %+v", ready)
	}
	p.create("c", map[string]any{})
	if got := p.value("import sys; 'numpy' in sys.modules"); got != "True" {
		t.Errorf("numpy loaded: %s", got)
	}
	p.create("d", map[string]any{})
	draw := "__import__('numpy').random.random()"
	first, second := p.value(draw), results(p.end("d", p.begin("d", draw, nil)))[0].Text
	if first == second {
		t.Errorf("two kernels draw the same number %s", first)
	}
	if got := figures(t, p, pyplot+"plt.plot([1])\nplt.show()"); len(got) != 1 {
		t.Errorf("%d figures", len(got))
	}
}

func TestMemoryIsBoundedUnderAFlood(t *testing.T) {
	p := start(t)
	run := p.begin("c", "import os, threading\nthreading.Thread(target=os.system, args=('yes',), daemon=True).start()\nwhile True: print('x' * 1000)", nil)
	for size := 0; size < 32<<20; {
		size += len(p.next().Text)
	}
	p.send(map[string]any{"op": "kill", "context": "c"})
	restarted(t, p.end("c", run))
	if peak := peakMemory(t, p.cmd.Process.Pid); peak > 48<<20 {
		t.Errorf("the supervisor took %d MiB", peak>>20)
	}
	fresh(t, p)
}

// peakMemory is the most memory that a process has had, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

func TestKernelWaitsForAReaderThatDoesNotRead(t *testing.T) {
	p := launch(t)
	p.silent = true
	gate := filepath.Join(p.home, "gate")
	p.send(map[string]any{"op": "start", "home": p.home})
	p.send(map[string]any{"op": "create", "context": "c"})
	p.send(map[string]any{
		"op": "execute", "context": "c", "run": "1",
		"code": "import os\nos.mkfifo('gate')\nwhile True:\n    print('x' * 1000000)",
	})
	p.send(map[string]any{"op": "create", "context": "d"})
	p.send(map[string]any{
		"op": "execute", "context": "d", "run": "2",
		"code": "import os, time\nwhile not os.path.exists('gate'): time.sleep(0.01)\nopen('gate', 'w').close()",
	})
	waitForPipe(t, gate)
	// Nobody has read a byte, and still commands are obeyed.
	p.send(map[string]any{"op": "kill", "context": "c"})
	if err := p.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) > 4<<20 {
		t.Errorf("%d bytes had been kept", len(out))
	}
	for line := range bytes.Lines(out) {
		if !json.Valid(line) && bytes.HasSuffix(line, []byte("\n")) {
			t.Errorf("line %.100q", line)
		}
	}
}

// waitForPipe waits until another process opens the pipe at path.
func waitForPipe(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestNothingOutlivesTheSupervisor(t *testing.T) {
	for _, end := range []string{"input", "SIGKILL"} {
		t.Run(end, func(t *testing.T) {
			p := start(t)
			if err := syscall.Mkfifo(filepath.Join(p.home, "gate"), 0o600); err != nil {
				t.Fatal(err)
			}
			p.begin("c", "f = open('gate', 'w')\nf.write('held'); f.flush()\nwhile True: pass", nil)
			gate, err := os.Open(filepath.Join(p.home, "gate"))
			if err != nil {
				t.Fatal(err)
			}
			defer gate.Close()
			if _, err := io.ReadFull(gate, make([]byte, 4)); err != nil {
				t.Fatal(err)
			}
			p.next()
			if end == "input" {
				err = p.stdin.Close()
			} else {
				p.killed = true
				err = p.cmd.Process.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
			// The pipe ends when the last process that holds it does.
			if rest, err := io.ReadAll(bufio.NewReader(gate)); err != nil || len(rest) > 0 {
				t.Errorf("then %q, %v", rest, err)
			}
		})
	}
}
