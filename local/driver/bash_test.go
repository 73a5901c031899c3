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
	"strings"
	"testing"
)

func TestBashKeepsItsState(t *testing.T) {
	p := start(t)
	p.create("b", map[string]any{"language": "bash"})
	run := func(code, want string, options map[string]any) []event {
		t.Helper()
		events := p.end("b", p.begin("b", code, options))
		if got := output(events, "stdout") + output(events, "stderr"); got != want {
			t.Errorf("%q prints %q, want %q", code, got, want)
		}
		return events
	}
	once := map[string]any{"env_vars": map[string]string{"ONCE": "it's now", "kept": "for once"}}
	run("shopt -s expand_aliases; mkdir d; cd d; kept='a  b'; list=(1 '2 3'); f() { echo \"f $1\"; }; alias a='echo alias'; export E=e", "", nil)
	run(`pwd; echo "$kept"; echo "${list[1]}"; f x; a; bash -c 'echo $E'`, p.home+"/d\na  b\n2 3\nf x\nalias\ne\n", nil)
	run(`echo "$ONCE" "$kept"`, "it's now for once\n", once)
	run(`echo "[$ONCE]"; f y`, "[]\nf y\n", nil)

	// However a cell ends, the next one goes on.
	for _, code := range []string{"n=1; exit 3", "n=2; false", "n=3; (exit 1) || nonsense", "n=4; set -e; false; echo no"} {
		events := p.end("b", p.begin("b", code, nil))
		if last := events[len(events)-1]; last.Name != "CalledProcessError" {
			t.Errorf("%q ends in %+v", code, last)
		}
		run("echo $n; set +e", code[2:3]+"\n", nil)
	}
	// Also with a trap of its own.
	for _, code := range []string{"n=5; trap 'echo bye $?' EXIT", "n=6; set -e; trap \"echo 'bye' \\$?; exit\" EXIT", "n=7; trap 'echo bye 0' EXIT TERM; exit"} {
		run(code, "bye 0\n", nil)
		run("echo $n; set +e", code[2:3]+"\n", nil)
	}
	run("set -e; trap 'echo status $?' EXIT; n=8; (exit 4)", "status 4\n", nil)
	run("set +e; echo $n; trap - EXIT; (trap 'echo sub' EXIT); n=9", "8\nsub\n", nil)
	run("echo $n", "9\n", nil)
	run("trap - TERM; twice='1 \"'", "", nil)
	for range 2 {
		run(`echo "$twice"; twice=3`, "2\n", map[string]any{"env_vars": map[string]string{"twice": "2"}})
		run(`echo "$twice"; bash -c 'echo $twice'`, "1 \"\n\n", nil)
	}
	run("true\n\nnonsense", "bash: line 3: nonsense: command not found\n", nil)
	run("set -xC; set -u; x=1", "++ set -u\n++ x=1\n", nil)
	run("echo ${y-unset} $x", "unset 1\n", nil)
	run("cat; sleep 1000 & disown; echo going on", "going on\n", nil)
	big := strings.Repeat("#", 300_000) + "\necho big\nbig=$(printf %0200000d 7)"
	run(big, "big\n", nil)
	run("echo ${#big}; rm -rf ~/d", "200000\n", nil)
	run("echo $x", "1\n", nil)

	busy := p.begin("b", "x=lost; touch ~/begun; sleep 1000", nil)
	p.next()
	p.send(map[string]any{"op": "interrupt", "context": "b", "run": busy})
	p.end("b", busy)
	run("echo ${x-}", "1\n", nil)
	p.send(map[string]any{"op": "restart", "context": "b"})
	if e := p.next(); e.Type != "restarted" {
		t.Errorf("answer %+v", e)
	}
	run("echo \"[${x-}]\"; pwd", "[]\n"+p.home+"\n", nil)
}
