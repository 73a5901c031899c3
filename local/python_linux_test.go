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
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// systemPython is what a virtual environment and the shims below are made of.
const systemPython = "/usr/bin/python3"

// openDir returns a directory that every user can read.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "local-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestShimIsResolvedToThePythonBehindIt(t *testing.T) {
	shim := filepath.Join(openDir(t), "python3")
	if err := os.WriteFile(shim, []byte("#!/bin/sh\nexec "+systemPython+" \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, Config{Python: shim})
	if got := s.engine.py.Executable; got != systemPython {
		t.Errorf("the shim stands for %q, want %q", got, systemPython)
	}
}

// virtualEnvironment makes one with a module and returns its directory.
func virtualEnvironment(t *testing.T, module, source string) string {
	t.Helper()
	venv := filepath.Join(openDir(t), "venv")
	if out, err := exec.Command(systemPython, "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
		t.Fatalf("making a virtual environment: %v: %s", err, out)
	}
	packages, err := filepath.Glob(venv + "/lib/python3*/site-packages")
	if err != nil || len(packages) != 1 {
		t.Fatalf("site-packages: %v %v", packages, err)
	}
	if err := os.WriteFile(packages[0]+"/"+module+".py", []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	return venv
}

func TestVirtualEnvironmentWorksWithItsPackages(t *testing.T) {
	venv := virtualEnvironment(t, "only_here", "answer = 42\n")
	c := newClient(t, newServer(t, Config{Python: venv + "/bin/python"}))
	b := c.create(nil)
	c.want(b, "import only_here, sys; print(only_here.answer, sys.prefix)", "42 "+venv)
	c.want(b, "import subprocess; print(subprocess.check_output(['python', '-c', 'import only_here; print(only_here.answer)'], text=True))", "42")
	c.want(b, "import os; os.statvfs(only_here.__file__).f_flag & os.ST_RDONLY", "1")
}

func TestCommandsFindTheInterpreter(t *testing.T) {
	c := newClient(t, newServer(t, Config{Python: systemPython}))
	b := c.create(nil)
	c.want(b, "!python -c 'import sys; print(sys.prefix)'", "/usr")
	c.want(b, "%%bash\npython3 -c 'import pandas, sys; print(sys.executable, sys.prefix)'", linksDir+"/python3 /usr")
	c.want(b, "import os; os.path.realpath('"+linksDir+"/python') == os.path.realpath('"+systemPython+"')", "True")
}

func TestPythonErrorsNameWhatIsWrong(t *testing.T) {
	dir := openDir(t)
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(systemPython, closed+"/python3"); err != nil {
		t.Fatal(err)
	}
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct{ name, python, want string }{
		{"missing", "/no/such/python", `python "/no/such/python" not found`},
		{"failing", script("failing", "echo broken shim >&2; exit 3"), "broken shim"},
		{"something else", script("else", "echo hello"), "is no Python interpreter"},
		{"too old", script("old", `echo '{"version": [3, 6, 15]}'`), "is version 3.6; version 3.9 or newer is needed"},
		{"another language", script("language", `echo '{"version": [3, 12, 1]}'`), "cannot compile the driver"},
		{"unreadable library", script("unreadable", `echo '{"version": [3, 12, 1], "code": "AA==", "unreadable": ["/opt/secret/lib"]}'`), "needs /opt/secret/lib, which the user that sandboxes run as cannot read"},
		{"in the way", script("tmp", `echo '{"version": [3, 12, 1], "code": "AA==", "paths": ["/tmp"]}'`), "lives in /tmp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := New(t.Context(), Config{Python: tt.python}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	t.Run("closed directory", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("one's own directories are open")
		}
		_, err := New(t.Context(), Config{Python: closed + "/python3"})
		if err == nil || !strings.Contains(err.Error(), "needs "+closed+", which the user that sandboxes run as cannot read") {
			t.Errorf("got %v", err)
		}
	})
}

func TestBindsAreOutermostDirectories(t *testing.T) {
	py := interpreter{Paths: []string{"/usr", "/opt/py/lib/python3.12", "/opt/py", "/usr/lib/python3", "/opt/python", "/opt/py", "/usrlocal"}}
	if got := strings.Join(py.binds(), " "); got != "/opt/py /opt/python /usrlocal" {
		t.Errorf("binds %s", got)
	}
}

func TestMissingBubblewrapIsAnErrorThatSaysSo(t *testing.T) {
	t.Setenv("PATH", "/nonexistent")
	_, err := New(t.Context(), Config{})
	if err == nil || !strings.Contains(err.Error(), "bwrap not found in PATH: install bubblewrap") {
		t.Errorf("got %v", err)
	}
}

func TestLimitBeyondThatOfTheGatewayIsAnErrorThatSaysSo(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		t.Fatal(err)
	}
	if own.Max > math.MaxInt32 {
		t.Log("the number of processes is not limited here")
		return
	}
	_, err := New(t.Context(), Config{Processes: int(own.Max)}) // and a few for the supervisor
	if err == nil || !strings.Contains(err.Error(), "lower the option processes") || strings.Contains(err.Error(), "Traceback") {
		t.Errorf("got %v", err)
	}
}

func TestConfigurationOutOfBoundsIsAnError(t *testing.T) {
	for _, cfg := range []Config{{Memory: 1}, {Disk: 1}, {Processes: 1}, {Warm: -1}, {MaxRead: -1}} {
		if _, err := New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "the least is") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
