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
	"bytes"
	"encoding/base64"
	"image/png"
	"strings"
	"testing"
	"time"
)

func TestSandboxRunsCodeAndKeepsState(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	c.want(b, "x = 42; print(x)", "42")
	c.want(b, "x + 1", "43")
	if o := c.run(b, "import sys; print('warned', file=sys.stderr)"); o.Stderr != "warned\n" || o.Count != 3 {
		t.Errorf("stderr: %v", o)
	}
	if o := c.run(b, "def f(): return 1 / 0\nf()"); o.Error != "ZeroDivisionError" || o.Value != "division by zero" ||
		!strings.Contains(o.Trace, "return 1 / 0") || strings.Contains(o.Trace, "pydriver") {
		t.Errorf("error: %v %s", o, o.Trace)
	}
	c.want(b, "x", "42")
	other := c.create(nil)
	if o := c.run(other, "x"); o.Error != "NameError" {
		t.Errorf("another sandbox: %v", o)
	}
	c.remove(b)
	c.want(other, "'on'", "on")
}

func TestFiguresArePNGs(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	o := c.run(c.create(nil), "import matplotlib.pyplot as plt\nplt.plot([1, 4, 2])\nplt.show()")
	image, err := base64.StdEncoding.DecodeString(o.PNG)
	if err != nil || o.Error != "" {
		t.Fatalf("%v; install matplotlib for %s (apt install python3-matplotlib)", o, systemPython)
	}
	if img, err := png.Decode(bytes.NewReader(image)); err != nil || img.Bounds().Dx() < 100 {
		t.Errorf("the figure is no picture: %v", err)
	}
}

func TestPandasAndNumpyWork(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	c.want(b, "import numpy as np; (np.random.default_rng(1).random((300, 300)) @ np.eye(300)).shape", "(300, 300)")
	c.want(b, "import pandas as pd; pd.DataFrame({'a': [1, 2, 2]}).groupby('a').size().to_dict()", "{1: 1, 2: 2}")
}

func TestToolsOfTheSystemWork(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	for name, tt := range map[string]struct{ code, want string }{
		"a pipeline":      {"import subprocess; subprocess.check_output('seq 5 | sort -r | head -2 | paste -sd,', shell=True)", "b'5,4\\n'"},
		"asyncio":         {"import asyncio; p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=-1); (await p.communicate())[0]", "b'hi\\n'"},
		"multiprocessing": {"import multiprocessing as mp; mp.get_context('fork').Pool(2).map(abs, [-1, -2])", "[1, 2]"},
		"threads":         {"from concurrent.futures import ThreadPoolExecutor as T; list(T(4).map(abs, [-1, -2]))", "[1, 2]"},
		"sqlite":          {"import sqlite3; d = sqlite3.connect('x.db'); d.execute('create table t(a)'); d.execute('insert into t values (7)'); d.commit(); d.execute('select * from t').fetchall()", "[(7,)]"},
		"temporary files": {"import tempfile, shutil; d = tempfile.mkdtemp(); open(d + '/a', 'w').write('x'); shutil.copytree(d, d + 'b') == d + 'b'", "True"},
		"shared memory":   {"from multiprocessing.shared_memory import SharedMemory as S; s = S(create=True, size=10); s.buf[0] = 7; o = S(s.name); v = o.buf[0]; o.close(); s.close(); s.unlink(); v", "7"},
		"archives":        {"import tarfile, io; t = tarfile.open('x.tgz', 'w:gz'); t.addfile(tarfile.TarInfo('a'), io.BytesIO()); t.close(); tarfile.open('x.tgz').getnames()", "['a']"},
		"time zones":      {"import zoneinfo, datetime; datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).utcoffset().seconds", "7200"},
		"its own name":    {"import getpass, os; getpass.getuser(), os.path.expanduser('~')", "('user', '/home/user')"},
	} {
		t.Run(name, func(t *testing.T) { c.with(t).want(b, tt.code, tt.want) })
	}
}

func TestRestartedSandboxKeepsItsFiles(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	c.want(b, "x = 1; open('kept', 'w').write('file') and None", "")
	if o := c.run(b, "print('bye', flush=True)\nimport os; os._exit(1)"); o.Stdout != "bye\n" || o.Error != "ContextRestarting" || !o.Ended {
		t.Errorf("the kernel's end: %v", o)
	}
	within(t, 5*time.Second, "the run after a restart", func() {
		c.want(b, "'x' in globals(), open('kept').read()", "(False, 'file')")
	})
}

func TestCellThatReplacesWhatTheKernelNeedsHidesNoOther(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	c.want(b, "import signal\nsignal.signal = None", "")
	c.want(b, "print('hello')", "hello")
	c.want(b, "import sys\nsys.modules['pydriver.kernel'].Interrupts.arm = None", "")
	if o := c.run(b, "print('hello')"); o.Error != "TypeError" || !o.Ended {
		t.Errorf("the cell that did not run says %v", o)
	}
}
