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

// Package driver holds the Python program that runs inside an embedded
// sandbox: a fork server of kernels that run notebook cells (see the package
// pydriver beside this file). It needs Python 3.9 or newer on Linux and the
// standard library only.
//
// The program is one file, a zip archive. [Archive] returns it with bytecode
// for one interpreter, which starts in half the time; [Source] returns it
// without, for any. Bind the file read-only somewhere inside the sandbox and
// start the interpreter with [Arguments]. The file is opened again when a part
// of the program is first needed, so it must stay where it is.
//
// # Protocol
//
// The process reads commands on descriptor 0 and writes events on descriptor
// 1, one JSON object a line; descriptor 2 is for what Python itself has to say.
// The first command is
//
//	{"op":"start","preload":["numpy"],"home":"/home/user"}
//	  -> {"type":"ready","python":"3.11.2"}  ("preload_errors": {module: message})
//
// preload names modules that are imported once and shared by all kernels. Then
//
//	{"op":"create","context":"C","language":"python"|"bash","cwd":"/home/user"}
//	  -> {"type":"created","context":"C"} | {"type":"refused","context":"C","message":"..."}
//	{"op":"execute","context":"C","run":"R","code":"...","language":"python"|"bash","env_vars":{"A":"b"}}
//	  -> events with "context" and "run": number_of_executions, stdout, stderr, result and
//	     error as in the E2B protocol, and last exactly one end_of_execution
//	{"op":"interrupt","context":"C","run":"R"}   KeyboardInterrupt, the state is kept
//	{"op":"kill","context":"C"}                  ends the kernel; a run in progress ends with
//	                                             the error ContextRestarting, and a new kernel serves the context
//	{"op":"restart","context":"C"}               -> {"type":"restarted","context":"C"}
//	{"op":"remove","context":"C"}                -> {"type":"removed","context":"C"}
//
// A kernel that dies during a run ends the run with ContextRestarting. When it
// dies between runs, the next run is not executed but answered so: its code was
// written for a state that is gone. The end of descriptor 0 ends everything.
//
// What the code inside writes to any descriptor can change what its own
// kernel says, never what another says, and every line is bounded (16 MiB).
package driver

import (
	"archive/zip"
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"sync"
)

//go:embed pydriver/*.py
var sources embed.FS

//go:embed compile.py
var compiler string

// Source returns the program as a zip archive of Python source. It is the same
// for every call and must not be changed.
var Source = sync.OnceValue(archiveSource)

// Archive returns the program as a zip archive that also holds bytecode for
// the given interpreter, which it runs once for that. Another version of
// Python that is given the archive ignores the bytecode.
func Archive(ctx context.Context, python string) ([]byte, error) {
	var out, problem bytes.Buffer
	// The interpreter is the operator's choice, not the client's.
	cmd := exec.CommandContext(ctx, python, "-I", "-X", "utf8", "-c", compiler) // #nosec G204
	cmd.Env = []string{}
	cmd.Stdin = bytes.NewReader(Source())
	cmd.Stdout = &out
	cmd.Stderr = &problem
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("compiling the sandbox driver with %s: %w: %s", python, err, lastLine(problem.String()))
	}
	return out.Bytes(), nil
}

// Arguments returns the interpreter's arguments that run the archive, which the
// process will find at path.
func Arguments(path string) []string {
	const start = "import sys; sys.path.insert(0, sys.argv[1]); " +
		"from pydriver import supervisor; del sys.path[0]; supervisor.main()"
	return []string{"-I", "-X", "utf8", "-c", start, path}
}

// archiveSource packs the embedded files, without times, in order of name.
func archiveSource() []byte {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	err := fs.WalkDir(sources, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := sources.ReadFile(path)
		if err != nil {
			return err
		}
		// Stored, not deflated: the start is what counts.
		f, err := w.CreateHeader(&zip.FileHeader{Name: path, Method: zip.Store})
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic("packing embedded files in memory: " + err.Error())
	}
	return buf.Bytes()
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
