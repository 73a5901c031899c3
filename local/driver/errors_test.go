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

const rule = "---------------------------------------------------------------------------"

// head is the first line of a traceback as the server joins it.
func head(name string) string {
	const rest = "Traceback (most recent call last)"
	return name + strings.Repeat(" ", len(rule)-len(name)-len(rest)) + rest
}

func TestTracebacks(t *testing.T) {
	p := start(t)
	p.ok("def divide(a, *, b=0):\n    # by nothing\n    c = 1\n\n    return a / b")
	for _, test := range []struct{ name, code, want string }{
		{
			"a function of an earlier cell", "x = 1\ndivide(x)",
			rule + head("ZeroDivisionError") + "Cell In[2], line 2\n      1 x = 1\n----> 2 divide(x)\n" +
				"Cell In[1], line 5, in divide(a, b)\n      1 def divide(a, *, b=0):\n      2     # by nothing\n      3     c = 1\n----> 5     return a / b\n" +
				"ZeroDivisionError: division by zero",
		},
		{
			"statements around the line", "a = 1\nb = [\n    1,\n    2,\n]\nraise ValueError(\n    'x')\nc = 1\n# note\nd = 1\ne = 1",
			rule + head("ValueError") + "Cell In[3], line 6\n      1 a = 1\n      2 b = [\n      3     1,\n      4     2,\n      5 ]\n" +
				"----> 6 raise ValueError(\n      7     'x')\n      8 c = 1\n      9 # note\nValueError: x",
		},
		{
			"causes", "try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e",
			rule + head("ZeroDivisionError") + "Cell In[4], line 2\n      1 try:\n----> 2     1/0\n      3 except ZeroDivisionError as e:\n" +
				"ZeroDivisionError: division by zero\nThe above exception was the direct cause of the following exception:\n" +
				head("KeyError") + "Cell In[4], line 4\n      2     1/0\n      3 except ZeroDivisionError as e:\n----> 4     raise KeyError('k') from e\nKeyError: 'k'",
		},
		{
			"contexts", "try:\n    1/0\nexcept ZeroDivisionError:\n    nope",
			rule + head("ZeroDivisionError") + "Cell In[5], line 2\n      1 try:\n----> 2     1/0\n      3 except ZeroDivisionError:\n" +
				"ZeroDivisionError: division by zero\nDuring handling of the above exception, another exception occurred:\n" +
				head("NameError") + "Cell In[5], line 4\n      2     1/0\n      3 except ZeroDivisionError:\n----> 4     nope\nNameError: name 'nope' is not defined",
		},
		{
			"recursion", "def f(n):\n    return f(n + 1)\nf(0)",
			rule + head("RecursionError") + "Cell In[6], line 3\n      1 def f(n):\n      2     return f(n + 1)\n----> 3 f(0)\n" +
				strings.Repeat("Cell In[6], line 2, in f(n)\n      1 def f(n):\n----> 2     return f(n + 1)\n", 2) +
				"    [... skipping similar frames: f at line 2 (N times)]\n" +
				"Cell In[6], line 2, in f(n)\n      1 def f(n):\n----> 2     return f(n + 1)\n" +
				"RecursionError: maximum recursion depth exceeded",
		},
		{
			"notes", "e = ValueError('v')\ne.add_note('a note')\nraise e",
			rule + head("ValueError") + "Cell In[7], line 3\n      1 e = ValueError('v')\n      2 e.add_note('a note')\n----> 3 raise e\nValueError: v\na note",
		},
		{
			"groups", "raise ExceptionGroup('g', [ValueError(1), ExceptionGroup('h', [KeyError(2)])])",
			rule + head("ExceptionGroup") + "Cell In[8], line 1\n----> 1 raise ExceptionGroup('g', [ValueError(1), ExceptionGroup('h', [KeyError(2)])])\n" +
				"ExceptionGroup: g (2 sub-exceptions)\n  | ValueError: 1\n  | ExceptionGroup: h (1 sub-exception)\n  |   | KeyError: 2",
		},
		{
			"a lambda and a generator", "list((lambda q: q / 0)(i) for i in [1])",
			rule + head("ZeroDivisionError") + "Cell In[9], line 1\n----> 1 list((lambda q: q / 0)(i) for i in [1])\n" +
				"Cell In[9], line 1, in <genexpr>(.0)\n----> 1 list((lambda q: q / 0)(i) for i in [1])\n" +
				"Cell In[9], line 1, in <genexpr>.<lambda>(q)\n----> 1 list((lambda q: q / 0)(i) for i in [1])\nZeroDivisionError: division by zero",
		},
		{
			"no message", "assert False",
			rule + head("AssertionError") + "Cell In[10], line 1\n----> 1 assert False\nAssertionError: ",
		},
		{
			"an error in the code of exec", "exec('1/0')",
			rule + head("ZeroDivisionError") + "Cell In[11], line 1\n----> 1 exec('1/0')\nFile <string>:1\nZeroDivisionError: division by zero",
		},
		{
			"the syntax of code that is compiled", "compile('def', 'f', 'exec')",
			rule + head("SyntaxError") + "Cell In[12], line 1\n----> 1 compile('def', 'f', 'exec')\n  File f:1\n    def\n       ^\nSyntaxError: invalid syntax",
		},
		{
			"top-level await", "import asyncio\nasync def a():\n    await asyncio.sleep(0)\n    1/0\nawait a()",
			rule + head("ZeroDivisionError") + "Cell In[13], line 5\n      3     await asyncio.sleep(0)\n      4     1/0\n" +
				"----> 5 await a()\nCell In[13], line 4, in a()\n      2 async def a():\n      3     await asyncio.sleep(0)\n----> 4     1/0\nZeroDivisionError: division by zero",
		},
		{
			"a timed cell", "%%time\nx = 1\n1/0",
			rule + head("ZeroDivisionError") + "Cell In[14], line 3\n      1 %%time\n      2 x = 1\n----> 3 1/0\nZeroDivisionError: division by zero",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := times.ReplaceAllString(p.fails(test.code).Traceback, "(N times)")
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestTracebackShowsLibrariesInOneLineEach(t *testing.T) {
	p := start(t)
	e := p.fails("import json\njson.loads('{')")
	if e.Name != "JSONDecodeError" {
		t.Fatalf("error %+v", e)
	}
	for _, part := range []string{
		"Cell In[1], line 2\n      1 import json\n----> 2 json.loads('{')\nFile /usr/",
		", in loads(s, cls, object_hook, parse_float, parse_int, parse_constant, object_pairs_hook, **kw)\n",
	} {
		if !strings.Contains(e.Traceback, part) {
			t.Errorf("no %q in\n%s", part, e.Traceback)
		}
	}
	if n := strings.Count(e.Traceback, "\n"); n > 10 {
		t.Errorf("%d lines:\n%s", n, e.Traceback)
	}
}

func TestTracebackShowsTheUsersOwnModules(t *testing.T) {
	p := start(t)
	p.run("%%writefile own.py\nx = 1\ndef f():\n    y = 2\n    raise ValueError('own')\n")
	e := p.fails("import own\nown.f()")
	want := ", in f()\n      2 def f():\n      3     y = 2\n----> 4     raise ValueError('own')\nValueError: own"
	if !strings.HasSuffix(e.Traceback, want) {
		t.Errorf("got\n%s", e.Traceback)
	}
}

func TestErrorsOfTheUsersOwnMaking(t *testing.T) {
	p := start(t)
	for _, test := range []struct{ code, name, value, traceback string }{
		{"import sys; sys.exit('bye')", "SystemExit", "bye", "SystemExit: bye\n"},
		{"sys.exit()", "SystemExit", "", "SystemExit\n"},
		{"exit(4)", "SystemExit", "4", "SystemExit: 4\n"},
		{"quit()", "SystemExit", "", "SystemExit\n"},
		{"class E(Exception):\n  def __str__(self): raise self\nraise E", "E", "<unprintable E object>", "E: <unprintable E object>"},
		{"class F(BaseException): pass\nraise F('base')", "F", "base", "F: base"},
		{"raise GeneratorExit", "GeneratorExit", "", "GeneratorExit: "},
		{"input()", "StdinNotImplementedError", "raw_input was called, but this frontend does not support input requests.", "input requests."},
		{"import getpass; getpass.getpass()", "StdinNotImplementedError", "getpass was called, but this frontend does not support input requests.", "input requests."},
		{"breakpoint()\n1", "StdinNotImplementedError", "", "input requests."},
		{"%nope", "UsageError", "Line magic function `%nope` not found.", "UsageError: Line magic function `%nope` not found."},
		{"%%nope\nx", "UsageError", "Cell magic `%%nope` not found.", "UsageError: Cell magic `%%nope` not found."},
		{"%bash x", "UsageError", "Line magic function `%bash` not found (But cell magic `%%bash` exists, did you mean that instead?).", ""},
		{"%env NOPE", "UsageError", "Environment does not have key: NOPE", ""},
		{"%%bash\nexit 7", "CalledProcessError", "Command '/bin/bash' returned non-zero exit status 7.", ""},
		{"import nope", "ModuleNotFoundError", "No module named 'nope'", ""},
		{"import IPython.nope", "ModuleNotFoundError", "No module named 'IPython.nope' in this notebook", ""},
		{"x = (", "SyntaxError", "", "SyntaxError: '(' was never closed\n"},
		{"if 1:\n    x = 1\n  y = 2", "IndentationError", "", "IndentationError: unindent does not match any outer indentation level\n"},
		{"return 1", "SyntaxError", "", "SyntaxError: 'return' outside function\n"},
		{"x = '\\ud800'.encode()", "UnicodeEncodeError", "", ""},
		{"bytearray(1 << 60)", "MemoryError", "", "MemoryError: "},
		{"'\x00'", "SyntaxError", "", ""},
	} {
		t.Run(test.code, func(t *testing.T) {
			e := p.fails(test.code)
			if test.name == "SyntaxError" && e.Name == "ValueError" {
				return // Python before 3.12 has another name for a null byte
			}
			if e.Name != test.name || test.value != "" && e.Value != test.value || !strings.HasSuffix(e.Traceback, test.traceback) {
				t.Errorf("got %s %q\n%s", e.Name, e.Value, e.Traceback)
			}
			if strings.Contains(e.Traceback, "pydriver") {
				t.Errorf("the driver shows:\n%s", e.Traceback)
			}
		})
	}
	if got := p.value("'alive'"); got != "alive" {
		t.Errorf("then %q", got)
	}
}

func TestLastErrorIsKept(t *testing.T) {
	p := start(t)
	p.fails("1/0")
	want := "('ZeroDivisionError', True, True, True)"
	if got := p.value("import sys\nlast = sys.last_value\nsys.last_type.__name__, last.__traceback__ is sys.last_traceback, " +
		"isinstance(last, sys.last_type), getattr(sys, 'last_exc', last) is last"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestThreadsReportTheirErrors(t *testing.T) {
	p := start(t)
	events := p.run("import threading\ndef f():\n    1/0\nt = threading.Thread(target=f, name='T'); t.start(); t.join()")
	text := output(events, "stderr")
	if !strings.HasPrefix(text, "Exception in thread T:\n") || !strings.Contains(text, "Cell In[1], line 3, in f()\n      2 def f():\n----> 3     1/0\n") {
		t.Errorf("events %+v", events)
	}
}

func TestWarningsShowTheUsersLine(t *testing.T) {
	p := start(t)
	text := output(p.run("import warnings\ndef old():\n    warnings.warn('old', DeprecationWarning, stacklevel=2)\nold()"), "stderr")
	if text = cellNumber.ReplaceAllString(cellFile.ReplaceAllString(text, ""), "N.py"); text != "N.py:4: DeprecationWarning: old\n  old()\n" {
		t.Errorf("warning %q", text)
	}
}
