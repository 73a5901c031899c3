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

func TestOwnerOfAName(t *testing.T) {
	mine := Tools{Name: "run_python", Clients: Names{"get_weather": {}, "a.b": {}, "f:1": {}}}
	python := Tools{Name: "run_python", Clients: Names{"python": {}}}
	opaque := Tools{Name: "run_python", Opaque: true}
	for _, c := range []struct {
		tools Tools
		name  string
		owner Owner
		known string
	}{
		{mine, "run_python", Gateway, "run_python"},
		{mine, "functions.run_python", Gateway, "run_python"},
		{mine, "functions.run_python:0", Gateway, "run_python"},
		{mine, "run_python:12", Gateway, "run_python"},
		{mine, "default_api:run_python", Gateway, "run_python"},
		{mine, "tools/run_python", Gateway, "run_python"},
		{mine, "python", Gateway, "python"},
		{mine, "functions.code_interpreter", Gateway, "code_interpreter"},
		{mine, "get_weather", Client, "get_weather"},
		{mine, "functions.get_weather", Client, "get_weather"},
		{mine, "a.b", Client, "a.b"},
		{mine, "f:1", Client, "f:1"},
		{mine, "Run_Python", Nobody, "Run_Python"},
		{mine, "PYTHON", Nobody, "PYTHON"},
		{mine, "run_python_2", Nobody, "run_python_2"},
		{mine, "run", Nobody, "run"},
		{mine, "functions.", Nobody, "functions."},
		{mine, "container.exec", Nobody, "container.exec"},
		{mine, "multi_tool_use.parallel", Nobody, "multi_tool_use.parallel"},
		{mine, "", Nobody, ""},
		{python, "python", Client, "python"},
		{python, "functions.python", Client, "python"},
		{python, "code_interpreter", Gateway, "code_interpreter"},
		{python, "run_python", Gateway, "run_python"},
		{opaque, "web_search", Client, "web_search"},
		{opaque, "run_python", Gateway, "run_python"},
		{opaque, "", Nobody, ""},
	} {
		if owner, known := c.tools.Owner(c.name); owner != c.owner || known != c.known {
			t.Errorf("Owner(%q) of %v is %v, %q", c.name, c.tools, owner, known)
		}
	}
}

func TestNamesAreCleanedOfTemplates(t *testing.T) {
	for name, want := range map[string]string{
		"run_python":                       "run_python",
		"run_python<|channel|>commentary":  "run_python",
		"run_python<|constrain|>json":      "run_python",
		"<|start|>functions.run_python<|a": "functions.run_python",
		" run_python\n":                    "run_python",
		"<|":                               "",
		"<|channel|>":                      "",
		"":                                 "",
	} {
		if got := cleanName(name); got != want {
			t.Errorf("cleanName(%q) is %q, want %q", name, got, want)
		}
	}
}
