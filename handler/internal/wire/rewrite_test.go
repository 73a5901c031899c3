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

package wire

import "testing"

// rewritten returns a turn of a request as text.
func rewritten(t *testing.T, body string, o RewriteOptions, turn Turn) string {
	t.Helper()
	r, ok := Scan(NewBody([]byte(body)))
	if !ok {
		t.Fatalf("Scan(%s) cannot follow", body)
	}
	return string(r.Rewrite(o).Turn(turn).Bytes())
}

const fn = `{"type":"function","function":{"name":"run_python","description":"Runs Python code and returns what it prints (stdout and stderr) and the value of its last expression. ` +
	`Variables, imports and files stay from one call to the next. Use it for calculations, data analysis and plots, without asking for permission first.",` +
	`"parameters":{"type":"object","properties":{"code":{"type":"string","description":"The Python source code to run."}},"required":["code"]}}}`

func TestRewriteKeepsAllOtherBytes(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"nothing to do", ` { "model" : "m" , "tools":[ {"type":"function"} ] } `, ` { "model" : "m" , "tools":[ {"type":"function"} ] } `},
		{"the tool", `{"tools": [ {"type": "code_interpreter"} ], "x": 1.10}`, `{"tools": [ ` + fn + ` ], "x": 1.10}`},
		{"options of the tool go", `{"tools":[{"container":{"type":"auto"},"type":"code_interpreter"}]}`, `{"tools":[` + fn + `]}`},
		{"several of it become one", `{"tools":[{"type":"code_interpreter"}, {"type":"function"}, {"type":"code_interpreter"} ,{"type":"code_interpreter"} ]}`, `{"tools":[` + fn + `, {"type":"function"} ]}`},
		{"several in front", `{"tools":[{"type":"code_interpreter"}, {"type":"code_interpreter"}, {"a":1}]}`, `{"tools":[` + fn + `, {"a":1}]}`},
		{"session id alone, last", `{"a":1 , "metadata" : {"session_id":"s"} }`, `{"a":1 }`},
		{"session id alone, first", `{ "metadata":{"session_id":"s"}, "a":1}`, `{ "a":1}`},
		{"session id alone, only", `{ "metadata":{"session_id":"s"} }`, `{  }`},
		{"session id alone, between", `{"a":1, "metadata":{ "session_id" : null }, "b":2}`, `{"a":1, "b":2}`},
		{"session id first", `{"metadata":{"session_id":"s", "k":"v"}}`, `{"metadata":{"k":"v"}}`},
		{"session id last", `{"metadata":{"k":"v" , "session_id":"s" }}`, `{"metadata":{"k":"v" }}`},
		{"session id between", `{"metadata":{"k":"v", "session_id":{"a":[1]}, "l":"w"}}`, `{"metadata":{"k":"v", "l":"w"}}`},
		{"session id twice", `{"metadata":{"session_id":1,"session_id":2,"l":"w","session_id":3}}`, `{"metadata":{"l":"w"}}`},
		{"metadata twice", `{"metadata":{"session_id":1},"a":1,"metadata":{"session_id":2}}`, `{"a":1}`},
		{"escaped names", `{"m\u0065tadata":{"session\u005fid":"s"},"too\u006cs":[{"t\u0079pe":"code\u005finterpreter"}]}`, `{"too\u006cs":[` + fn + `]}`},
		{"an empty metadata of the client stays", `{"metadata":{}}`, `{"metadata":{}}`},
		{"deeper ones stay", `{"x":{"metadata":{"session_id":"s"},"tools":[{"type":"code_interpreter"}]}}`, `{"x":{"metadata":{"session_id":"s"},"tools":[{"type":"code_interpreter"}]}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rewritten(t, c.body, RewriteOptions{Name: "run_python"}, Turn{}); got != c.want {
				t.Errorf("rewritten:\n got %s\nwant %s", got, c.want)
			}
		})
	}
}
