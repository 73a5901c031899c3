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

package handler

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire"
)

// A history can be long, and most of it is not before calls.
func TestRecallDecodesOnlyWhatIsBeforeCalls(t *testing.T) {
	long := `{"role":"user","content":[0` + strings.Repeat(`,{"a":"b"}`, 1000) + `]}`
	calls := `{"role":"assistant","tool_calls":[{"id":"call_1"}]}`
	for name, c := range map[string]struct {
		messages string
		decodes  bool
	}{
		"no calls":     {long, false},
		"text":         {long + `,{"role":"assistant","content":"","tool_calls":null}`, false},
		"another role": {long + `,{"role":"tool","tool_calls":[{"id":"call_1"}]}`, false},
		"calls before": {calls + `,` + long, false},
		"calls after":  {long + `,` + calls, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				m.hidden.add(memoryKey{}, nil, 0)
				req, ok := wire.Scan(wire.NewBody([]byte(`{"messages":[` + c.messages + `]}`)))
				if !ok {
					t.Fatal("the request cannot be read")
				}
				x := &exchange{h: &Handler{}, req: req}
				if n := testing.AllocsPerRun(1, func() { m.recall(x) }); n > 1000 != c.decodes {
					t.Errorf("%v allocations", n)
				}
			})
		})
	}
}
