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

package main

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestSummary(t *testing.T) {
	const passed = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"pass","Package":"p","Elapsed":1.25}
`
	for name, c := range map[string]struct {
		events string
		well   bool
		want   string
	}{
		"all pass": {passed, true, "ok    p  1.2s  1 tests\n1 passed, 0 failed\n"},
		"a test fails": {passed + `{"Action":"output","Package":"q","Test":"TestB","Output":"why\n"}
{"Action":"fail","Package":"q","Test":"TestB"}
{"Action":"fail","Package":"q"}`, false, "why\nFAIL  q  0.0s\nfailed: q TestB\n1 passed, 1 failed\n"},
		"a test is skipped": {passed + `{"Action":"output","Package":"q","Test":"TestB","Output":"no bwrap\n"}
{"Action":"skip","Package":"q","Test":"TestB"}
{"Action":"pass","Package":"q"}`, false, "no bwrap\nok    q  0.0s  1 tests\nskipped, though it should have run: q TestB\n1 passed, 1 failed\n"},
		"a build fails": {passed + `{"ImportPath":"q","Action":"build-output","Output":"q.go:1: undefined\n"}
{"ImportPath":"q","Action":"build-fail"}
{"Action":"fail","Package":"q"}`, false, "q.go:1: undefined\nFAIL  q  0.0s\nfailed: q\n1 passed, 1 failed\n"},
		"a package leaks": {passed + `{"Action":"output","Package":"q","Output":"leaked goroutine\n"}
{"Action":"fail","Package":"q"}`, false, "leaked goroutine\nFAIL  q  0.0s\nfailed: q\n1 passed, 1 failed\n"},
		"a module fails without events": {passed + `{"Action":"module-fail","Package":"sub"}`, false, "failed: sub\n1 passed, 1 failed\n"},
		"a module fails with its package": {passed + `{"Action":"fail","Package":"q"}
{"Action":"module-fail","Package":"sub"}`, false, "FAIL  q  0.0s\nfailed: q\n1 passed, 1 failed\n"},
		"a package without tests":  {passed + `{"Action":"skip","Package":"q"}`, true, "1 passed, 0 failed\n"},
		"other lines pass through": {"go: downloading x\n" + passed, true, "go: downloading x\nok "},
		"nothing":                  {"", false, "no test was run\n0 passed, 0 failed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			s := newSummary(&out)
			if err := s.read(strings.NewReader(c.events)); err != nil {
				t.Fatal(err)
			}
			if well := s.report(); well != c.well || !strings.Contains(out.String(), c.want) {
				t.Errorf("well %v, want %v; output:\n%s\nshould contain:\n%s", well, c.well, out.String(), c.want)
			}
			if strings.Contains(out.String(), "chatter") {
				t.Errorf("output of a passed test is shown:\n%s", out.String())
			}
		})
	}
}
