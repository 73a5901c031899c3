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
	"context"
	_ "embed" // for boot.py and probe.py
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	pydriver "github.com/caddy-code-interpreter/caddy-code-interpreter/local/driver"
)

var (
	//go:embed boot.py
	bootSource string

	//go:embed probe.py
	probeSource string
)

// probeTimeout bounds the start of an interpreter; a shim may run a shell or two.
const probeTimeout = 15 * time.Second

// minimumPython is the oldest version that the driver is written for.
var minimumPython = [3]int{3, 9, 0}

// interpreter is a Python of this machine, as it says itself.
type interpreter struct {
	Executable string   `json:"executable"`
	Version    [3]int   `json:"version"`
	Virtual    bool     `json:"virtual"`    // a virtual environment: its bin directory belongs on PATH
	Paths      []string `json:"paths"`      // prefixes and import path, existing and readable
	Unreadable []string `json:"unreadable"` // the same, but not readable with the sandbox's rights
	Code       []byte   `json:"code"`       // bytecode of boot and driver, one after the other
}

// findPython resolves the configured interpreter ("" for the default). What a
// shim, a virtual environment, pyenv or conda stand for only Python itself can
// tell, so it is asked, as the user that sandboxes run as.
func findPython(ctx context.Context, configured string, run func(*exec.Cmd)) (*interpreter, error) {
	path, err := pythonPath(configured)
	if err != nil {
		return nil, err
	}
	input, err := driverSource()
	if err != nil {
		return nil, fmt.Errorf("encoding the driver: %w", err)
	}

	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "-I", "-c", probeSource)
	cmd.Dir = "/"
	cmd.Env = shimEnvironment()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &complaint
	run(cmd)
	if err := cmd.Run(); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil, unreadableError(path, closedDirectory(path))
		}
		return nil, fmt.Errorf("python %q does not run: %w: %s", path, err, lastLine(complaint.String()))
	}
	var py interpreter
	if err := json.Unmarshal(out.Bytes(), &py); err != nil {
		return nil, fmt.Errorf("python %q is no Python interpreter: %w", path, err)
	}
	return &py, py.check(path)
}

// driverSource returns what the probe compiles: boot.py, and the modules of the
// driver under the names that they are imported by.
func driverSource() ([]byte, error) {
	sources := [][2]string{{"<boot>", bootSource}}
	files, err := fs.Glob(pydriver.Files, "pydriver/*.py")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := pydriver.Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := "pydriver." + strings.TrimSuffix(filepath.Base(file), ".py")
		sources = append(sources, [2]string{strings.TrimSuffix(name, ".__init__"), string(text)})
	}
	return json.Marshal(sources)
}

// check says why the interpreter cannot be used, if so.
func (py *interpreter) check(path string) error {
	if slices.Compare(py.Version[:], minimumPython[:]) < 0 {
		return fmt.Errorf("python %q is version %d.%d; version %d.%d or newer is needed",
			path, py.Version[0], py.Version[1], minimumPython[0], minimumPython[1])
	}
	if len(py.Code) == 0 {
		return fmt.Errorf("python %q cannot compile the driver", path)
	}
	if len(py.Unreadable) > 0 {
		return unreadableError(path, py.Unreadable[0])
	}
	for _, p := range py.Paths {
		for _, own := range []string{"/home/user", "/tmp", "/proc", "/dev", "/etc"} {
			if p == "/" || p == own || strings.HasPrefix(own, p+"/") {
				return fmt.Errorf("python %q lives in %s, which a sandbox has its own version of; use an interpreter with a directory to itself", path, p)
			}
		}
	}
	return nil
}

// binds returns the directories that a sandbox needs besides /usr, outer ones
// first and none twice.
func (py *interpreter) binds() []string {
	paths := slices.Clone(py.Paths)
	slices.Sort(paths)
	var out []string
	for _, p := range slices.Compact(paths) {
		covered := slices.ContainsFunc(append(out, systemDirs...), func(outer string) bool {
			return p == outer || strings.HasPrefix(p, outer+"/")
		})
		if !covered {
			out = append(out, p)
		}
	}
	return out
}

// systemDirs are in every sandbox anyway.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// pythonPath returns the program to ask.
func pythonPath(configured string) (string, error) {
	if configured != "" {
		path, err := exec.LookPath(configured)
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				return "", unreadableError(configured, closedDirectory(configured))
			}
			return "", fmt.Errorf("python %q not found: set option python to an interpreter of this machine", configured)
		}
		return filepath.Abs(path)
	}
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", errors.New("python3 found neither at /usr/bin/python3 nor in PATH: install python3, or set option python")
}

// shimEnvironment passes on what pyenv, conda and virtual environments look at,
// and nothing else: the gateway's environment holds secrets.
func shimEnvironment() []string {
	env := []string{}
	for _, name := range []string{"PATH", "HOME", "PYENV_ROOT", "PYENV_VERSION", "ASDF_DATA_DIR", "CONDA_PREFIX", "VIRTUAL_ENV"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// closedDirectory returns the first directory on the way to path that others may
// not pass, or path itself.
func closedDirectory(path string) string {
	for i := 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		if info, err := os.Stat(path[:i]); err != nil || info.Mode().Perm()&0o001 == 0 {
			return path[:i]
		}
	}
	return path
}

func unreadableError(python, path string) error {
	return fmt.Errorf("python %q needs %s, which the user that sandboxes run as cannot read: "+
		"make it readable for others, or set option python to an interpreter elsewhere (such as /usr/bin/python3)", python, path)
}

// lastLine returns the last line that says something.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
