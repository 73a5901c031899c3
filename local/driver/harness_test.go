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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const (
	python = "/usr/bin/python3"
	// patience bounds each wait for the program: far more than any needs.
	patience = 30 * time.Second
)

// importPath is a directory that holds the program.
var importPath string

func TestMain(m *testing.M) {
	out, err := exec.CommandContext(context.Background(), python, "-I", "-c", "import matplotlib, pandas, PIL").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s needs matplotlib, pandas and Pillow for these tests:\n"+
			"apt-get install python3-matplotlib python3-pandas python3-pil\n%v: %s", python, err, out)
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "driver")
	if err == nil {
		err = os.CopyFS(dir, Files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	importPath = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}))
}

// event is one line of the program.
type event struct {
	Type           string            `json:"type"`
	Context        string            `json:"context"`
	Run            string            `json:"run"`
	Message        string            `json:"message"`
	Python         string            `json:"python"`
	PreloadErrors  map[string]string `json:"preload_errors"`
	Text           string            `json:"text"`
	Timestamp      string            `json:"timestamp"`
	ExecutionCount int               `json:"execution_count"`
	Name           string            `json:"name"`
	Value          string            `json:"value"`
	Traceback      string            `json:"traceback"`
	HTML           string            `json:"html"`
	Markdown       string            `json:"markdown"`
	SVG            string            `json:"svg"`
	PNG            string            `json:"png"`
	JPEG           string            `json:"jpeg"`
	PDF            string            `json:"pdf"`
	Latex          string            `json:"latex"`
	JavaScript     string            `json:"javascript"`
	JSON           json.RawMessage   `json:"json"`
	Data           json.RawMessage   `json:"data"`
	Chart          json.RawMessage   `json:"chart"`
	Extra          json.RawMessage   `json:"extra"`
	Main           *bool             `json:"is_main_result"`
}

// program is the driver, run directly by the host's Python.
type program struct {
	t      *testing.T
	home   string
	stdin  io.WriteCloser
	cmd    *exec.Cmd
	lines  chan event
	runs   int
	silent bool // lines are read by the test itself
	killed bool // the test has killed the process
	stdout io.Reader
}

// start starts the program, ready for contexts, with one context "c".
func start(t *testing.T, preload ...string) *program {
	t.Helper()
	p := launch(t)
	go p.read()
	p.send(map[string]any{"op": "start", "preload": preload, "home": p.home})
	if ready := p.next(); ready.Type != "ready" || len(ready.PreloadErrors) > 0 {
		t.Fatalf("answer to start: %+v", ready)
	}
	p.create("c", map[string]any{})
	return p
}

// launch starts the process alone.
func launch(t *testing.T) *program {
	t.Helper()
	const boot = "import sys; sys.path.insert(0, sys.argv.pop()); from pydriver import supervisor; " +
		"del sys.path[0]; supervisor.main()"
	home := filepath.Join(t.TempDir(), "user")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, home: home, lines: make(chan event, 1024)}
	p.cmd = exec.CommandContext(context.Background(), python, "-I", "-X", "utf8", "-c", boot, importPath)
	p.cmd.Dir = home
	p.cmd.Env = []string{
		"PATH=/usr/bin:/bin", "HOME=" + home, "MPLCONFIGDIR=" + os.TempDir() + "/driver-mpl",
		"OPENBLAS_NUM_THREADS=1", "E2B_TEST_VARIABLE=true",
	}
	p.cmd.Stderr = &prefixed{t: t}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if p.stdout, err = p.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return p
}

// stop ends the program by the end of its input, and waits for it.
func (p *program) stop() {
	if err := p.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		p.t.Error(err)
	}
	done := make(chan error, 1)
	go func() {
		// Until the reader has seen the end: Wait closes the pipe.
		for range p.lines {
		}
		done <- p.cmd.Wait()
	}()
	if p.silent {
		close(p.lines)
	}
	select {
	case err := <-done:
		if err != nil && !p.killed {
			p.t.Errorf("the program ended with %v", err)
		}
	case <-time.After(patience):
		p.t.Error("the program did not end with its input: ", p.cmd.Process.Kill())
		<-done
	}
}

func (p *program) read() {
	defer close(p.lines)
	r := bufio.NewReaderSize(p.stdout, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			p.t.Errorf("line %.200q: %v", line, err)
			continue
		}
		p.lines <- e
	}
}

func (p *program) send(command map[string]any) {
	p.t.Helper()
	line, err := json.Marshal(command)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		p.t.Fatal(err)
	}
}

// next returns the next line.
func (p *program) next() event {
	p.t.Helper()
	select {
	case e, ok := <-p.lines:
		if !ok {
			p.t.Fatal("the program has ended")
		}
		return e
	case <-time.After(patience):
		p.t.Fatal("no line from the program")
	}
	return event{}
}

func (p *program) create(context string, with map[string]any) {
	p.t.Helper()
	with["op"], with["context"] = "create", context
	p.send(with)
	if e := p.next(); e.Type != "created" || e.Context != context {
		p.t.Fatalf("answer to create: %+v", e)
	}
}

// begin sends code to a context and returns the name of the run.
func (p *program) begin(context, code string, with map[string]any) string {
	p.t.Helper()
	p.runs++
	run := strconv.Itoa(p.runs)
	command := map[string]any{"op": "execute", "context": context, "run": run, "code": code}
	maps.Copy(command, with)
	p.send(command)
	return run
}

// end returns the events of a run up to its end, without the end.
func (p *program) end(context, run string) []event {
	p.t.Helper()
	var events []event
	for {
		e := p.next()
		if e.Context != context || e.Run != run {
			p.t.Fatalf("event of another run than %s/%s: %+v", context, run, e)
		}
		if e.Type == "end_of_execution" {
			return events
		}
		events = append(events, e)
	}
}

// run runs code in context "c" and returns the events after the first, which
// must be the number of executions.
func (p *program) run(code string) []event {
	p.t.Helper()
	events := p.end("c", p.begin("c", code, nil))
	if len(events) == 0 || events[0].Type != "number_of_executions" {
		p.t.Fatalf("%q did not begin: %+v", code, events)
	}
	return events[1:]
}

// ok runs code that must say nothing.
func (p *program) ok(code string) {
	p.t.Helper()
	if events := p.run(code); len(events) > 0 {
		p.t.Fatalf("%q said %+v", code, events)
	}
}

// value runs code and returns the text of its only result.
func (p *program) value(code string) string {
	p.t.Helper()
	events := p.run(code)
	if len(events) != 1 || events[0].Type != "result" {
		p.t.Fatalf("%q gave %+v, want one result", code, events)
	}
	return events[0].Text
}

// fails runs code that must end in an error, and returns it.
func (p *program) fails(code string) event {
	p.t.Helper()
	for _, e := range p.run(code) {
		if e.Type == "error" {
			return e
		}
	}
	p.t.Fatalf("%q gave no error", code)
	return event{}
}

// output joins the text of one stream.
func output(events []event, stream string) string {
	var b strings.Builder
	for _, e := range events {
		if e.Type == stream {
			b.WriteString(e.Text)
		}
	}
	return b.String()
}

// results returns the results among events.
func results(events []event) []event {
	var found []event
	for _, e := range events {
		if e.Type == "result" {
			found = append(found, e)
		}
	}
	return found
}

// prefixed logs what Python writes to the program's own standard error.
type prefixed struct{ t *testing.T }

func (w *prefixed) Write(b []byte) (int, error) {
	w.t.Logf("stderr: %s", b)
	return len(b), nil
}
