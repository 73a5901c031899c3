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

// Command testsummary reads the events of "go test -json" on standard input
// and prints what matters of them: a line for each package, the output of what
// failed, and at the end, alone on its line, "N passed, N failed".
//
// It fails when something failed, when a test was skipped, and when there was
// no test: a skipped test of this project is one whose prerequisites are
// missing, and says nothing about the code.
//
// The caller may add {"Action":"module-fail","Package":"..."} where "go test"
// of a module failed, so that a failure without events is not lost.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	s := newSummary(os.Stdout)
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		os.Exit(1)
	}
	if !s.report() {
		os.Exit(1)
	}
}

// event is one line of "go test -json"; see "go doc test2json".
type event struct {
	Action     string
	Package    string
	ImportPath string // of build events
	Test       string
	Elapsed    float64 // seconds
	Output     string
}

// name identifies a test, a package or a build.
type name struct {
	pkg, test string
}

func (n name) String() string {
	if n.test == "" {
		return n.pkg
	}
	return n.pkg + " " + n.test
}

// summary collects events.
type summary struct {
	out             io.Writer
	output          map[name]*strings.Builder
	tests           map[string]int // finished tests of a package
	failedIn        map[string]int // failed tests of a package
	passed          int
	failedBefore    int // failures before the current module
	failed, skipped []name
}

func newSummary(out io.Writer) *summary {
	return &summary{
		out:      out,
		output:   map[name]*strings.Builder{},
		tests:    map[string]int{},
		failedIn: map[string]int{},
	}
}

// read reads all events. Lines that are none, such as what the go command
// says before it starts a test, are passed on.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
			s.add(e)
		} else {
			fmt.Fprint(s.out, line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading events: %w", err)
		}
	}
}

func (s *summary) add(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "output":
		if s.output[n] == nil {
			s.output[n] = new(strings.Builder)
		}
		s.output[n].WriteString(e.Output)
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "module-fail":
		if len(s.failed) == s.failedBefore {
			s.failed = append(s.failed, n)
		}
		s.failedBefore = len(s.failed)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(e.Action, n)
		}
		delete(s.output, n)
	}
}

func (s *summary) endTest(action string, n name) {
	s.tests[n.pkg]++
	switch action {
	case "pass":
		s.passed++
	case "skip":
		s.skipped = append(s.skipped, n)
		s.show(n)
	case "fail":
		s.failed = append(s.failed, n)
		s.failedIn[n.pkg]++
		s.show(n)
	}
}

func (s *summary) endPackage(e event) {
	n := name{pkg: e.Package}
	switch e.Action {
	case "pass":
		fmt.Fprintf(s.out, "ok    %s  %.1fs  %d tests\n", e.Package, e.Elapsed, s.tests[e.Package])
	case "fail":
		// Without a failed test it is the build, a leak, a panic or the time limit.
		if s.failedIn[e.Package] == 0 {
			s.failed = append(s.failed, n)
			s.show(n)
		}
		fmt.Fprintf(s.out, "FAIL  %s  %.1fs\n", e.Package, e.Elapsed)
	}
}

// show prints what n wrote.
func (s *summary) show(n name) {
	if b := s.output[n]; b != nil {
		fmt.Fprint(s.out, b.String())
	}
}

// report prints the end and reports whether all is well.
func (s *summary) report() bool {
	for _, list := range []struct {
		title string
		names []name
	}{{"skipped, though it should have run", s.skipped}, {"failed", s.failed}} {
		for _, n := range slices.Compact(list.names) {
			fmt.Fprintf(s.out, "%s: %s\n", list.title, n)
		}
	}
	failed := len(s.failed) + len(s.skipped)
	if s.passed == 0 && failed == 0 {
		fmt.Fprintln(s.out, "no test was run")
	}
	fmt.Fprintf(s.out, "%d passed, %d failed\n", s.passed, failed)
	return s.passed > 0 && failed == 0
}
