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
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestValueOfACell(t *testing.T) {
	p := start(t)
	for _, test := range []struct{ code, want string }{
		{"1 + 1", "2"},
		{"x = 3\nx", "3"},
		{"'a' 'b'", "ab"},
		{`"it's"`, `"it's"`},
		{"1, 'a'", "(1, 'a')"},
		{"{'b': 1, 'a': {2, 1}}", "{'b': 1, 'a': {1, 2}}"},
		{"[]", "[]"},
		{"(1,)", "(1,)"},
		{"frozenset({1})", "frozenset({1})"},
		{"int, ValueError", "(int, ValueError)"},
		{"class A: pass\nA", "__main__.A"},
		{"def f(a, *b, c=1, **d): pass\nf", "<function __main__.f(a, *b, c=1, **d)>"},
		{"ValueError('x', 1)", "ValueError('x', 1)"},
		{"import collections\ncollections.Counter('aab')", "Counter({'a': 2, 'b': 1})"},
		{"collections.OrderedDict(a=1)", "OrderedDict([('a', 1)])"},
		{"collections.defaultdict(list, a=[1])", "defaultdict(list, {'a': [1]})"},
		{"collections.deque([1], maxlen=2)", "deque([1], maxlen=2)"},
		{"import re\nre.compile('a\\\\d')", "re.compile(r'a\\d', re.UNICODE)"},
		{"l = [1]; l.append(l); l", "[1, [...]]"},
		{"d = {}; d[1] = d; d", "{1: {...}}"},
		{"['x' * 30] * 3", "['" + strings.Repeat("x", 30) + "',\n '" + strings.Repeat("x", 30) + "',\n '" + strings.Repeat("x", 30) + "']"},
		{"{'key': list(range(25))}", "{'key': [0," + lines(1, 24, "  ") + "]}"},
		{"'\\ud800'", "\\ud800"},
		{"class P:\n  def _repr_pretty_(self, p, cycle): p.text('pretty')\nP()", "pretty"},
		{"class R:\n  def __repr__(self): return 'one\\ntwo'\n[R()]", "[one\n two]"},
		{"[R(), R()], 3", "([one\n  two,\n  one\n  two],\n 3)"},
		{"import numpy\nnumpy.eye(2), numpy.eye(2)", "(array([[1., 0.],\n        [0., 1.]]),\n array([[1., 0.],\n        [0., 1.]]))"},
		{"for i in range(3): pass\ni", "2"},
		{"from __future__ import annotations\n1", "1"},
		{"def g(x: undefined): return 5\ng(1)", "5"}, // the future of an earlier cell
		{"__name__", "__main__"},
		{"'__file__' in globals()", "False"},
		{"sum(1 for _ in range(5))  # comment;", "5"},
		{"import sys; sys.stdin.read()", ""},
		{"import pickle; pickle.loads(pickle.dumps(A)) is A", "True"},
		{"import inspect; inspect.getsource(f)", "def f(a, *b, c=1, **d): pass\\n"},
		{"import os; os.getcwd() == os.environ['HOME']", "True"},
		{"type(get_ipython()).__name__", "ZMQInteractiveShell"},
		{"import asyncio\nawait asyncio.sleep(0, 'slept')", "slept"},
		{"async def w(): return 7\nawait w()", "7"},
		{"asyncio.run(w())", "7"},
		{"[await w() for _ in range(2)]", "[7, 7]"},
		{"async with asyncio.Lock(): y = 4\ny", "4"},
		{"  x = 1\n  if x:\n      x = 9\n  x", "9"}, // indented as a whole
		{"%pwd", p.home},
		{"a = %pwd\na", p.home},
		{"lines = !echo one; echo two\nlines", "['one', 'two']"},
		{"lines.n", "one\\ntwo"},
		{"d = {}\nd['k=[ '] = !echo 1\nd", "{'k=[ ': ['1']}"},
		{"a, b = %sx echo 1; echo 2\na + b", "12"},
		{"if True: a = !echo 1\na", "['1']"},
		{"!true\n'a = %.2f' % 3", "a = 3.00"},
		{"%pwd\nstr('a = !b') + str(\"%c\" % 'c')  # d = !e", "a = !bc"},
		{"%time 5", ""},
		{"import pandas as pd\npd.get_option('display.max_columns')", "20"}, // as in a notebook, not a terminal
		{"'x' * (3 << 20)", ""},
		{"%env HOME", p.home},
	} {
		t.Run(test.code, func(t *testing.T) {
			if test.want == "" {
				p.run(test.code)
				return
			}
			if got := p.value(test.code); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// lines are numbers as a list that does not fit on a line continues with them.
func lines(from, to int, indent string) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		if i > from {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n%s%d", indent, i)
	}
	return b.String()
}

func TestCellsThatShowNoValue(t *testing.T) {
	p := start(t)
	for _, code := range []string{
		"1;", "1 ;  # quiet", "x = 1", "None", "def f(): pass", "import os", "pass", "# nothing",
		"%matplotlib inline", "%config InlineBackend.figure_format = 'retina'", "%load_ext autoreload\n%autoreload 2",
		"%cd -q /tmp", "with open('/dev/null') as f:\n    f", "input", "!true",
	} {
		events := p.run(code)
		if code == "input" {
			continue // shows itself; it is there so that the table has one that does
		}
		if len(events) != 0 {
			t.Errorf("%q showed %+v", code, events)
		}
	}
}

func TestOutputOfACell(t *testing.T) {
	p := start(t)
	for _, test := range []struct{ code, stdout, stderr string }{
		{"print('a'); print('b', end='')", "a\nb", ""},
		{"import sys\nsys.stdout.write('x');", "x", ""},
		{"sys.stdout.buffer.write(b'\\xe2\\x98'); sys.stdout.buffer.write(b'\\x83\\xff');", "☃\ufffd", ""},
		{"print('\\ud800|\\udfff')", "\ufffd|\ufffd\n", ""},
		{"print('\\x00\\x1b[31m')", "\x00\x1b[31m\n", ""},
		{"import os\nos.system('printf \"\\\\377\\\\n\"');", "\ufffd\n", ""},
		{"os.write(1, b'raw'); os.write(2, b'err');", "raw", "err"},
		{"!echo {1+1} $HOME", "2 " + p.home + "\n", ""},
		{"x = 'val'\n!echo $x {x} {{x}} $$x", "val val {x}\n", ""},
		{"!echo out; echo err >&2; echo out", "out\nerr\nout\n", ""},
		{"%%capture c\n!echo out; echo err >&2; echo out", "", ""},
		{"print([c.stdout, c.stderr])", "['out\\nerr\\nout\\n', '']\n", ""},
		{"def f(x):\n    a = %sx echo {x}\n    %cd -q $x\n    !echo {a[0]} $x\nf('/usr')\n%cd -q ~", "/usr /usr\n", ""},
		{"!echo one \\\n  two", "one two\n", ""},
		{"for i in range(2):\n    !echo {i}", "0\n1\n", ""},
		{"if True:\n    %cd /\nelse:\n    !false", "/\n", ""},
		{"%cd ~", p.home + "\n", ""},
		{"%%bash\nx=5\necho $x\necho err >&2", "5\n", "err\n"},
		{"%%sh\necho sh", "sh\n", ""},
		{"%%bash -s a 'b c'\necho $2 $1", "b c a\n", ""},
		{"%%bash --out got\necho in; echo err >&2", "", "err\n"},
		{"print([got])", "['in\\n']\n", ""},
		{"%%script --err=got --no-raise-error bash -s x\necho $1; echo err >&2; exit 1", "x\n", ""},
		{"print([got])", "['err\\n']\n", ""},
		{"%%python - arg\nimport sys; print(sys.argv)", "['-', 'arg']\n", ""},
		{"%%writefile f.txt\nline", "Writing f.txt\n", ""},
		{"%%writefile -a f.txt\nmore", "Appending to f.txt\n", ""},
		{"!cat f.txt", "line\nmore\n", ""},
		{"cat f.txt", "line\nmore\n", ""},
		{"%%capture got\nprint('in'); 5", "", ""},
		{"print(got.stdout, len(got.outputs))", "in\n 1\n", ""},
		{"%env A=b", "env: A=b\n", ""},
		{"!echo $A", "b\n", ""},
		{"import warnings\nwarnings.simplefilter('always')", "", ""},
		{"with open('script.py', 'w') as f: f.write('import sys\\nz = 1\\nprint(sys.argv[1], __name__)');", "", ""},
		{"%run script.py arg", "arg __main__\n", ""},
		{"print(z)", "1\n", ""},
		{"text = '''\n!echo no\n%pwd\n'''\nprint(text)\n!echo yes", "\n!echo no\n%pwd\n\nyes\n", ""},
		{"from IPython.utils.capture import capture_output\nwith capture_output() as c: print('hidden')\nprint(len(c.stdout))", "7\n", ""},
		{"for i in range(3):\n    print(i)\n    !echo $i$i", "0\n00\n1\n11\n2\n22\n", ""},
		{"import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as s:\n    !echo hidden\nprint(len(s.getvalue()))", "7\n", ""},
		{"import logging\nlogging.warning('w')", "", "WARNING:root:w\n"},
	} {
		t.Run(test.code, func(t *testing.T) {
			events := p.run(test.code)
			if got := output(events, "stdout"); got != test.stdout {
				t.Errorf("stdout %q, want %q (all: %+v)", got, test.stdout, events)
			}
			if got := output(events, "stderr"); got != test.stderr {
				t.Errorf("stderr %q, want %q", got, test.stderr)
			}
		})
	}
}

func TestOutputKeepsItsOrder(t *testing.T) {
	p := start(t)
	events := p.run("import os, sys\nprint('1'); print('2', file=sys.stderr); os.system('echo 3'); print('4')\n" +
		"display(5)\nprint('6')\n7")
	var order strings.Builder
	for _, e := range events {
		order.WriteString(strings.TrimSpace(e.Text))
		order.WriteByte(' ')
	}
	if got := strings.Join(strings.Fields(order.String()), " "); got != "1 2 3 4 5 6 7" {
		t.Errorf("order %q in %+v", got, events)
	}
}

func TestProgressIsDeliveredWhileTheCellRuns(t *testing.T) {
	p := start(t)
	gate := filepath.Join(p.home, "gate")
	run := p.begin("c", "import os\nprint('half', end='')\nos.mkfifo('gate')\nopen('gate').read()\nprint(' done')", nil)
	p.next() // the number of executions
	if e := p.next(); e.Text != "half" {
		t.Fatalf("before the end came %+v", e)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := output(p.end("c", run), "stdout"); got != " done\n" {
		t.Errorf("rest is %q", got)
	}
}

func TestClearOutputDeliversTheTextBefore(t *testing.T) {
	p := start(t)
	events := p.run("from IPython.display import clear_output\nprint(1); clear_output(wait=True); print(2)")
	if len(events) != 2 || events[0].Text != "1\n" || events[1].Text != "2\n" {
		t.Errorf("events %+v", events)
	}
}

func TestRepresentations(t *testing.T) {
	p := start(t)
	for _, test := range []struct {
		code  string
		check func(event) bool
	}{
		{"from IPython.display import *\nHTML('<b>')", func(e event) bool { return e.HTML == "<b>" && *e.Main }},
		{"display(Markdown('# m'))", func(e event) bool { return e.Markdown == "# m" && !*e.Main }},
		{"Latex('$x$')", func(e event) bool { return e.Latex == "$x$" }},
		{"Math('x')", func(e event) bool { return e.Latex == "$\\displaystyle x$" }},
		{"SVG('<?xml?><svg/>')", func(e event) bool { return e.SVG == "<svg/>" }},
		{"Javascript('x()')", func(e event) bool { return e.JavaScript == "x()" }},
		{"JSON([1, {'a': None}])", func(e event) bool { return string(e.JSON) == `[1,{"a":null}]` }},
		{"Image(data=b'\\x89PNG')", func(e event) bool { return e.PNG == "iVBORw==" }},
		{"Image(url='http://x/y.png')", func(e event) bool { return strings.Contains(e.HTML, "http://x/y.png") }},
		{"Code('x = 1')", func(e event) bool { return e.Text == "x = 1" }},
		{"class H:\n  def _repr_html_(self): return '<i>'\n  def _repr_latex_(self): return None\nH()", func(e event) bool { return e.HTML == "<i>" && e.Latex == "" }},
		{"class M:\n  def _repr_mimebundle_(self, include=None, exclude=None): return {'text/html': 'h', 'x/y': {'z': 1}}, {}\nM()", func(e event) bool { return e.HTML == "h" && string(e.Extra) == `{"x/y":{"z":1}}` }},
		{"class I:\n  def _ipython_display_(self): display('own')\nI()", func(e event) bool { return e.Text == "own" }},
		{"class J:\n  def _repr_json_(self): return {'a': 1}\nJ()", func(e event) bool { return string(e.JSON) == `{"a":1}` }},
		{"class B:\n  def _repr_png_(self): return b'abc'\nB()", func(e event) bool { return e.PNG == "YWJj" }},
		{"from unittest.mock import MagicMock\nMagicMock()", func(e event) bool { return e.HTML == "" && strings.HasPrefix(e.Text, "<MagicMock id=") }},
		{"H", func(e event) bool { return e.Text == "__main__.H" && e.HTML == "" }},
		{"{'a': [1, 2.5, float('nan'), True]}", func(e event) bool { return string(e.JSON) == `{"a":[1,2.5,null,true]}` }},
		{"{1: 2}", func(e event) bool { return e.JSON == nil && e.Text == "{1: 2}" }},
		{"[object]", func(e event) bool { return e.JSON == nil }},
		{"[2**70]", func(e event) bool { return e.JSON == nil }},
		{"publish_display_data({'text/plain': 'p', 'text/html': 'q'})", func(e event) bool { return e.Text == "p" && e.HTML == "q" }},
		{"class K:\n  def _repr_javascript_(self): return {'a': 1}\nK()", func(e event) bool { return e.JavaScript == "{'a': 1}" }},
		{"import sys\nsys.setrecursionlimit(20000)\ndeep = []\nfor _ in range(1500): deep = [deep]\ndeep", func(e event) bool {
			return e.JSON == nil && strings.HasPrefix(e.Text, "[[[[")
		}},
		{"%%html\n<u>", func(e event) bool { return e.HTML == "<u>\n" }},
		{"%%latex\n$x$\n", func(e event) bool { return e.Latex == "$x$\n" }},
		{"import pandas as pd\npd.DataFrame({'t': pd.to_datetime(['2024-01-02']), 'n': [None]})", func(e event) bool {
			return string(e.Data) == `{"t":["2024-01-02T00:00:00"],"n":[null]}` && strings.Contains(e.HTML, "2024-01-02")
		}},
		{"pd.Series([1])", func(e event) bool { return e.Text == "0    1\ndtype: int64" && e.Data == nil }},
		{"get_ipython().display_formatter.formatters['text/html'].for_type(complex, lambda v: '<c>')\n1j", func(e event) bool { return e.HTML == "<c>" }},
	} {
		t.Run(test.code, func(t *testing.T) {
			events := p.run(test.code)
			if len(events) != 1 || !test.check(events[0]) {
				t.Errorf("got %+v", events)
			}
		})
	}
}

func TestFailingRepresentationsHarmNothing(t *testing.T) {
	p := start(t)
	events := p.run("class C:\n  def _repr_html_(self): 1/0\nC()")
	if got := results(events); len(got) != 1 || !strings.HasPrefix(got[0].Text, "<__main__.C at 0x") {
		t.Errorf("no text in place of the HTML: %+v", events)
	}
	if output(events, "stderr") != "ZeroDivisionError: division by zero\n" {
		t.Errorf("nothing said: %+v", events)
	}
	events = p.run("import sys\nsaved, sys.stderr = sys.stderr, None\nC()")
	if output(events, "stderr") != "ZeroDivisionError: division by zero\n" || len(results(events)) != 1 {
		t.Errorf("without sys.stderr: %+v", events)
	}
	p.ok("sys.stderr = saved")
	if e := p.fails("class D:\n  def __repr__(self): 1/0\nD()"); e.Name != "ZeroDivisionError" {
		t.Errorf("error %+v", e)
	}
	if e := p.fails("class E:\n  def _ipython_display_(self): raise SystemExit(2)\nE()"); e.Name != "SystemExit" {
		t.Errorf("error %+v", e)
	}
	if got := p.value("class F:\n  def _ipython_display_(self): raise NotImplementedError\n  def __repr__(self): return 'F()'\nF()"); got != "F()" {
		t.Errorf("in place of what is not implemented: %q", got)
	}
	events = p.run("class G(F):\n  def _ipython_display_(self): 1/0\nG()")
	if got := results(events); len(got) != 1 || got[0].Text != "F()" || output(events, "stderr") != "ZeroDivisionError: division by zero\n" {
		t.Errorf("no text in place of what fails: %+v", events)
	}
	if got := p.value("'alive'"); got != "alive" {
		t.Errorf("then %q", got)
	}
}

func TestEveryExpressionCanBeShown(t *testing.T) {
	p := start(t)
	p.ok("from IPython.core.interactiveshell import InteractiveShell\nInteractiveShell.ast_node_interactivity = 'all'")
	if got := results(p.run("1\nNone\nx = 2\nx\n'last'")); len(got) != 3 || got[0].Text != "1" || got[1].Text != "2" || got[2].Text != "last" {
		t.Errorf("results %+v", got)
	}
	p.ok("InteractiveShell.ast_node_interactivity = 'none'")
	p.ok("5")
	p.ok("%config InteractiveShell.ast_node_interactivity = \"all\"")
	if got := results(p.run("1\n2")); len(got) != 2 {
		t.Errorf("with the magic: %+v", got)
	}
	p.ok("InteractiveShell.ast_node_interactivity = 'last_expr_or_assign'")
	for _, test := range [][2]string{{"y = 1\nx = 2", "2"}, {"x += 1", "3"}, {"x: int = 4", "4"}, {"x", "4"}} {
		if got := p.value(test[0]); got != test[1] {
			t.Errorf("%q shows %q, want %q", test[0], got, test[1])
		}
	}
	for _, code := range []string{"x = 5;", "x = y = 6", "x, y = 7, 8", "z: int", "x = None"} {
		p.ok(code)
	}
}

func TestStreamsOfTheCellsOwnAreFlushed(t *testing.T) {
	p := start(t)
	events := p.run("import io, sys\nsaved = sys.stdout\nown = sys.stdout = io.TextIOWrapper(io.BufferedWriter(saved.buffer))\nprint('kept')")
	if got := output(events, "stdout"); got != "kept\n" {
		t.Errorf("got %q in %+v", got, events)
	}
	p.ok("class Broken:\n  def flush(self): 1/0\nsys.stdout = Broken()")
	p.ok("sys.stdout = None")
	p.ok("sys.stdout = saved")
}

func TestHistory(t *testing.T) {
	p := start(t)
	p.value("10")
	p.value("20")
	for _, test := range [][2]string{
		{"_, __, In[1], Out[2], _1, _i1", "(20, 10, '10', 20, 10, '10')"},
		{"_i, _ii", "('_, __, In[1], Out[2], _1, _i1', '20')"},
	} {
		if got := p.value(test[0]); got != test[1] {
			t.Errorf("%s is %q, want %q", test[0], got, test[1])
		}
	}
	p.ok("_ = 'mine'")
	p.value("30")
	if got := p.value("_"); got != "mine" {
		t.Errorf("_ of the user became %q", got)
	}
}

func TestEnvironmentVariablesHoldForOneRun(t *testing.T) {
	p := start(t)
	p.ok("import os\nos.environ['KEPT'] = 'before'")
	with := map[string]any{"env_vars": map[string]string{"KEPT": "run", "NEW": "n"}}
	events := p.end("c", p.begin("c", "os.environ['KEPT'], os.environ['NEW']", with))
	if got := results(events); len(got) != 1 || got[0].Text != "('run', 'n')" {
		t.Errorf("in the run: %+v", events)
	}
	if got := p.value("os.environ['KEPT'], os.environ.get('NEW')"); got != "('before', None)" {
		t.Errorf("after the run: %s", got)
	}
}

func TestImpossibleEnvironmentVariablesAreAnError(t *testing.T) {
	p := start(t)
	for name, value := range map[string]string{"A": "x\x00y", "A=B": "x", "": "y", "A\x00B": "x"} {
		events := p.end("c", p.begin("c", "print('ran')", map[string]any{"env_vars": map[string]string{name: value}}))
		last := events[len(events)-1]
		if output(events, "stdout") != "" || last.Type != "error" || (last.Name != "ValueError" && last.Name != "OSError") {
			t.Errorf("%q=%q: %+v", name, value, events)
		}
	}
	if got := p.value("import os\nrepr(os.environ.get('A'))"); got != "None" {
		t.Errorf("A became %q", got)
	}
}

func TestCommandsOfOneLineNeedNoMark(t *testing.T) {
	p := start(t)
	p.ok("import os; os.mkdir('" + p.home + "/commands'); os.chdir('" + p.home + "/commands'); open('file', 'w').write('text') and None")
	t.Cleanup(func() {
		if err := os.RemoveAll(p.home + "/commands"); err != nil {
			t.Error(err)
		}
	})
	if got := p.value("pwd"); got != p.home+"/commands" {
		t.Errorf("pwd: %q", got)
	}
	for code, want := range map[string]string{"ls": "file\n", "ls -1": "file\n", "cat file": "text", "cat ./file": "text", "cd /tmp": "/tmp\n"} {
		p.ok("os.chdir('" + p.home + "/commands')")
		if got := output(p.run(code), "stdout"); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
	p.ok("ls, l = 5, 3")
	for code, want := range map[string]string{"ls": "5", "ls -l": "2", "ls - l": "2"} {
		if got := p.value(code); got != want {
			t.Errorf("%s with variables: %q, want %q", code, got, want)
		}
	}
	if got := p.value("!true\nls"); got != "5" {
		t.Errorf("a variable in a cell with a command: %q", got)
	}
	if events := p.run("%%time\n\n"); events[len(events)-1].Type == "error" {
		t.Errorf("a magic over nothing: %+v", events)
	}
	for _, code := range []string{"rm - 1", "cat / 2", "cat", "print(1)\npwd"} {
		if e := p.fails(code); e.Name != "NameError" {
			t.Errorf("%s: %+v", code, e)
		}
	}
}

func TestPythonIsNoCommandBesideOthers(t *testing.T) {
	p := start(t)
	for _, test := range [][2]string{
		{"!true\nrm = 4\nrm -= 1\nrm", "3"},
		{"!true\nrun = 5\nrun -= (\n  2)\nrun", "3"},
		{"!true\nrm = 8; home = x = 2\nrm /home/x\nrm", "8"},
		{"import os\nopen('kept', 'w').close()\nmv -f kept moved\nos.path.exists('moved')", "True"},
		{"!true\n" + strings.Repeat(" ", 5000) + "\n1", "1"},
	} {
		if got := p.value(test[0]); got != test[1] {
			t.Errorf("%s: %q, want %q", test[0], got, test[1])
		}
	}
}

func TestMagicsSeeTheNamesOfTheirCaller(t *testing.T) {
	p := start(t)
	for _, test := range [][2]string{
		{"import asyncio\nawait asyncio.sleep(0)\n%time q = 1\nq", "1"},
		{"def f(n):\n    a = %time n + 1\n    %timeit -n 1 -r 1 n + 1\n    return a\nf(3)", "4"},
		{"%%time\ndef f(n):\n    a = !echo {n}\n    return a[0]\nf(3)", "3"},
	} {
		if got := results(p.run(test[0])); len(got) != 1 || got[0].Text != test[1] {
			t.Errorf("%s: %+v, want %q", test[0], got, test[1])
		}
	}
}

func TestHistoryShowsWhatIsAskedFor(t *testing.T) {
	p := start(t)
	for _, code := range []string{"1", "x = 2\nx", "print()"} {
		p.run(code)
	}
	for _, test := range [][2]string{
		{"%history", "1\nx = 2\nx\nprint()\n%history\n"},
		{"%history -n 1-2", "   1: 1\n   2:\nx = 2\nx\n"},
		{"%hist 3 1", "print()\n1\n"},
		{"%history -l 2", "%history -n 1-2\n%hist 3 1\n"},
		{"%history -o 1 2 3", "1\n1\nx = 2\nx\n2\nprint()\n"},
		{"%history -no 2", "   2:\nx = 2\nx\n2\n"},
		{"%history 10-90", "%history 10-90\n"},
		{"%history 90", ""},
	} {
		if got := output(p.run(test[0]), "stdout"); got != test[1] {
			t.Errorf("%s: %q, want %q", test[0], got, test[1])
		}
	}
	for _, code := range []string{"%history " + strings.Repeat("1", 60) + "x", "%history -g x", "%history ~1/2", "%history x"} {
		if e := p.fails(code); e.Name != "UsageError" {
			t.Errorf("%s: %+v", code, e)
		}
	}
}

func TestRunOfAScript(t *testing.T) {
	p := start(t)
	p.ok("import os\nos.mkdir('scripts')\nopen('scripts/beside.py', 'w').write('value = 6')\nNone")
	script := func(code, run string) []event {
		p.run("%%writefile scripts/script.py\n" + code)
		return p.run(run)
	}
	for _, test := range []struct{ code, run, want string }{
		{"from beside import value as a", "%run scripts/script.py\na", "6"},
		{"import sys\nb = 1\nsys.exit(0)", "%run scripts/script\nb", "1"},
		{"import sys\nc = 2\nsys.exit()", "%run scripts/script.py\nc", "2"},
		{"import sys\nd = 3\nsys.exit(4)", "%run -e scripts/script.py\nd", "3"},
		{"e = base + 1", "base = 1\n%run -i scripts/script.py\ne, __name__, '__file__' in globals()", "(2, '__main__', False)"},
		{"f = __name__, __file__, 'base' in globals()", "%run -n scripts/script.py\nf", "('script', '" + p.home + "/scripts/script.py', False)"},
		{"import pickle\nclass G: pass\ng = type(pickle.loads(pickle.dumps(G()))) is G", "%run scripts/script.py\ng", "True"},
	} {
		if got := results(script(test.code, test.run)); len(got) != 1 || got[0].Text != test.want {
			t.Errorf("%s of %q: %+v, want %q", test.run, test.code, got, test.want)
		}
	}
	for _, test := range [][3]string{
		{"h = 7\n1/0", "ZeroDivisionError", "2 1/0\n"},
		{"h = 7\n[][0]", "IndexError", "2 [][0]\n"},
		{"import sys\nh = 7\nsys.exit(2)", "SystemExit", "SystemExit: 2"},
	} {
		events := script(test[0], "%run scripts/script.py")
		if last := events[len(events)-1]; last.Name != test[1] || !strings.Contains(last.Traceback, test[2]) {
			t.Errorf("%q: %+v", test[0], events)
		}
		if got := p.value("h, sys.path.count(os.path.abspath('scripts')), __name__"); got != "(7, 0, '__main__')" {
			t.Errorf("after %q: %s", test[0], got)
		}
		p.ok("del h")
	}
	if e := p.fails("%run -x scripts/script.py"); e.Name != "UsageError" {
		t.Errorf("an unknown option: %+v", e)
	}
}

func TestPrecisionOfFloats(t *testing.T) {
	p := start(t)
	for _, test := range [][2]string{
		{"%precision 3", "%.3f"},
		{"3.14159", "3.142"},
		{"[2.0, {'a': 1.5}]", "[2.000, {'a': 1.500}]"},
		{"%precision", "%r"},
		{"3.14159, 1", "(3.14159, 1)"},
	} {
		if got := p.value(test[0]); got != test[1] {
			t.Errorf("%s: %q, want %q", test[0], got, test[1])
		}
	}
}

func TestAutoreload(t *testing.T) {
	p := start(t)
	p.run("%%writefile reloaded.py\nclass A: value = 1\ndef f(): return 1")
	p.ok("%load_ext autoreload\n%autoreload 2\nimport reloaded\nfrom reloaded import A, f as g")
	p.run("%%writefile reloaded.py\nclass A: value = 2\ndef f(): return 2")
	if got := p.value("reloaded.f(), A.value, g()"); got != "(2, 2, 2)" {
		t.Errorf("changed: %s", got)
	}
	p.run("%%writefile reloaded.py\n1/0")
	events := p.run("g()")
	if got := output(events, "stderr"); got != "[autoreload of reloaded failed: ZeroDivisionError: division by zero]\n" {
		t.Errorf("broken: %+v", events)
	}
	if got := results(events); len(got) != 1 || got[0].Text != "2" {
		t.Errorf("after that: %+v", events)
	}
	p.ok("%autoreload 0")
	p.run("%%writefile reloaded.py\ndef f(): return 3")
	if got := p.value("reloaded.f()"); got != "2" {
		t.Errorf("turned off: %s", got)
	}
}

func TestMagicsRefuseWhatTheyDoNotDo(t *testing.T) {
	p := start(t)
	for code, name := range map[string]string{
		"%conda list":   "ValueError",
		"%autoreload 1": "UsageError",
		"%config InteractiveShell.cache_size = 1": "UsageError",
		"%precision many":                         "UsageError",
		"%pylab inline":                           "UsageError",
		"%load_ext":                               "UsageError",
		"%prun -q 1":                              "UsageError",
		"%%bash --bg\necho":                       "UsageError",
		"%%bash --out\necho":                      "UsageError",
		"%%script\necho":                          "UsageError",
		"%%bash --out got\nexit 3":                "CalledProcessError",
	} {
		if e := p.fails(code); e.Name != name {
			t.Errorf("%s: %+v", code, e)
		}
	}
}

func TestBash(t *testing.T) {
	p := start(t)
	bash := map[string]any{"language": "bash", "env_vars": map[string]string{"V": "v"}}
	events := p.end("c", p.begin("c", "echo $V; pwd; echo err >&2", bash))
	if output(events, "stdout") != "v\n"+p.home+"\n" || output(events, "stderr") != "err\n" {
		t.Errorf("events %+v", events)
	}
	events = p.end("c", p.begin("c", "exit 3", bash))
	if last := events[len(events)-1]; last.Name != "CalledProcessError" || !strings.Contains(last.Value, "exit status 3") ||
		strings.Contains(last.Traceback, "File") {
		t.Errorf("error %+v", last)
	}
	p.create("b", map[string]any{"language": "bash"})
	events = p.end("b", p.begin("b", "echo in $BASH_VERSION | cut -c1-2", nil))
	if output(events, "stdout") != "in\n" {
		t.Errorf("bash context: %+v", events)
	}
}

func TestTasksGoOnBetweenCells(t *testing.T) {
	p := start(t)
	gate := filepath.Join(p.home, "gate")
	p.run("import asyncio, os\nos.mkfifo('gate')\nasync def work():\n    await asyncio.sleep(0.01)\n" +
		"    open('gate', 'w').close()\n    return 'worked'\ntask = asyncio.create_task(work())")
	if _, err := os.ReadFile(gate); err != nil { // awaits the task, with no cell running
		t.Fatal(err)
	}
	if got := p.value("await task"); got != "worked" {
		t.Errorf("task gave %q", got)
	}
}

func TestCellsThatNeedALoopHaveOne(t *testing.T) {
	p := start(t)
	p.ok("import asyncio, subprocess\nimport asyncio as aio\nasync def g(x=1): return x\ndef begin(): return asyncio.create_task(g())\n" +
		"def twice(): return begin(), begin()\ndef main(): return asyncio.run(g(2))")
	for _, test := range [][2]string{
		{"both = asyncio.gather(g(), g())", ""},
		{"await both", "[1, 1]"},
		{"main()", "2"},
		{"later = asyncio.gather(g(3))", ""},
		{"await later", "[3]"},
		{"task = begin()", ""},
		{"await task", "1"},
		{"two = twice()", ""},
		{"await two[1]", "1"},
		{"subprocess.run(['true']); task = asyncio.create_task(g(4))", ""},
		{"await task", "4"},
		{"def own(): return asyncio.create_task(g(5))\ntask = own()", ""},
		{"await task", "5"},
		{"async def all(): return await asyncio.gather(g(), g())\nasyncio.run(all())", "[1, 1]"},
		{"class C:\n  gather = 6\nasyncio.run(g(C.gather))", "6"},
		{"aio.run(g(C.gather))", "6"},
		{"from asyncio import run\nrun(g(C.gather))", "6"},
		{"main() + C.gather", "8"},
		{"[asyncio.run(g(x)) for x in (C.gather,)]", "[6]"},
	} {
		if test[1] == "" {
			p.ok(test[0])
		} else if got := p.value(test[0]); got != test[1] {
			t.Errorf("%q gives %q, want %q", test[0], got, test[1])
		}
	}
}

func TestCodeThatAsksForTheCurrentLoopGetsOne(t *testing.T) {
	for _, before := range []string{"pass", "import asyncio\nasync def f(): pass\nasyncio.run(f())", "import asyncio\nawait asyncio.sleep(0)"} {
		p := start(t)
		p.ok(before)
		ask := "import asyncio\nasync def g(x): return x\nloop = asyncio.get_event_loop()\nloop.run_until_complete(g(%d))"
		for _, test := range [][2]string{
			{fmt.Sprintf(ask, 1), "1"},
			{"asyncio.run(g(2))", "2"},
			{fmt.Sprintf(ask, 3), "3"},
			{"asyncio.run(g(4))", "4"},
			{"def within(): return asyncio.get_event_loop().run_until_complete(g(5))\nwithin()", "5"},
			{"asyncio.run(g(6))", "6"},
			{"own = asyncio.new_event_loop()\nasyncio.set_event_loop(own)\nNone", ""},
			{"asyncio.get_event_loop() is own", "True"},
		} {
			events := p.run(test[0])
			if got := results(events); test[1] != "" && (len(got) != 1 || got[0].Text != test[1]) || output(events, "stderr") != "" {
				t.Errorf("after %q, %q gives %+v, want %q", before, test[0], events, test[1])
			}
		}
	}
}

func TestLinesOfThreadsAreWhole(t *testing.T) {
	p := start(t)
	events := p.run("import threading\ndef work(i):\n  for k in range(50): print('worker', i, 'step', k)\n" +
		"threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]\n[t.start() for t in threads]\n[t.join() for t in threads]\nNone")
	lines := strings.Split(strings.TrimSuffix(output(events, "stdout"), "\n"), "\n")
	if len(lines) != 400 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		var i, k int
		if n, err := fmt.Sscanf(line, "worker %d step %d", &i, &k); n != 2 || err != nil || line != fmt.Sprintf("worker %d step %d", i, k) {
			t.Errorf("line %q", line)
		}
	}
	if got := output(p.run("def dot(): print('.', end='')\nthreads = [threading.Thread(target=dot) for _ in range(3)]\n"+
		"[t.start() for t in threads]; [t.join() for t in threads]; print('\\ndone')"), "stdout"); got != "...\ndone\n" {
		t.Errorf("got %q", got)
	}
	// What has no end of a line comes with the end of the run, or with a flush.
	events = p.run("go, said = threading.Event(), threading.Event()\ndef half():\n  print('half', end='')\n  said.set(); go.wait()\n" +
		"t = threading.Thread(target=half); t.start(); said.wait()\nprint('a', end=''); display(1); print('b', end='', flush=True)")
	if got := output(events, "stdout"); got != "abhalf" && got != "ahalfb" && got != "halfab" {
		t.Errorf("got %q in %+v", got, events)
	}
	if events[0].Text == "1" {
		t.Errorf("the result is before the text: %+v", events)
	}
	if got := output(p.run("go.set(); t.join(); print(' line')"), "stdout"); got != " line\n" {
		t.Errorf("then %q", got)
	}
}

func TestTasksOfMethodsHaveALoop(t *testing.T) {
	p := start(t)
	p.ok("import asyncio\nclass Poller:\n  async def run(self): return 6\n  def start(self): self.task = asyncio.create_task(self.run())\np = Poller()")
	p.ok("p.start()")
	if got := p.value("await p.task"); got != "6" {
		t.Errorf("got %q", got)
	}
}

func TestLibrariesFindTheCurrentLoop(t *testing.T) {
	p := start(t)
	p.run("%%writefile lib.py\nimport asyncio\ndef run(c): return asyncio.get_event_loop().run_until_complete(c)")
	p.ok("import asyncio, lib\nasync def w(n): return n\nasyncio.run(w(1))\nNone")
	if got := p.value("lib.run(w(2))"); got != "2" {
		t.Errorf("got %q", got)
	}
}

func TestContextOfACellWithAwaitIsKept(t *testing.T) {
	p := start(t)
	p.ok("import asyncio, decimal\ndecimal.getcontext().prec = 5\nawait asyncio.sleep(0)")
	if got := p.value("decimal.getcontext().prec"); got != "5" {
		t.Errorf("got %q", got)
	}
}

func TestPastedSessionRuns(t *testing.T) {
	p := start(t)
	if got := p.value(">>> def f(x):\n...     return x + 1\n...\n>>> f(1)"); got != "2" {
		t.Errorf("got %q", got)
	}
	if got := output(p.run(">>> print('wait... ok')"), "stdout"); got != "wait... ok\n" {
		t.Errorf("got %q", got)
	}
	if got := p.value(">>> 1+1"); got != "2" {
		t.Errorf("got %q", got)
	}
}

func TestNamesInSingleQuotesAreTheShells(t *testing.T) {
	p := start(t)
	p.ok("i, x = 99, 'value'")
	for code, want := range map[string]string{
		"!bash -c 'for i in 1 2; do echo $i; done'": "1\n2\n",
		"!echo '$x' $x \"$x\" {x}":                  "$x value value value\n",
		"%pip --version 2>&1 | wc -l":               "1\n",
	} {
		if got := output(p.run(code), "stdout"); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

func TestCellWithinACell(t *testing.T) {
	p := start(t)
	if events := p.run("get_ipython().run_cell('print(1)');"); len(results(events)) != 0 || output(events, "stdout") != "1\n" {
		t.Errorf("got %+v", events)
	}
	events := p.run("r = get_ipython().run_cell('1/0')\nr.success, type(r.error_in_exec).__name__")
	if got := results(events); len(got) != 1 || got[0].Text != "(False, 'ZeroDivisionError')" || !slices.ContainsFunc(events, func(e event) bool { return e.Name == "ZeroDivisionError" }) {
		t.Errorf("got %+v", events)
	}
}

func TestWhatSymPyAsksOfIPython(t *testing.T) {
	p := start(t)
	if got := p.value("from IPython.terminal.interactiveshell import TerminalInteractiveShell\nfrom IPython.lib.latextools import latex_to_png\n" +
		"isinstance(get_ipython(), TerminalInteractiveShell), get_ipython().colors, latex_to_png('x')"); got != "(False, 'NoColor', None)" {
		t.Errorf("got %q", got)
	}
}

func TestFilesDoNotHideTheStandardLibrary(t *testing.T) {
	p := start(t)
	p.ok("for name in 'profile random tempfile string typing logging inspect dis subprocess threading selectors shlex mmap'.split():\n  open(name + '.py', 'w').write('1/0')\nNone")
	p.ok("import os\nos.path.exists('mmap.py') or 1/0\nNone")
	if got := output(p.run("%%bash\necho bash"), "stdout"); got != "bash\n" {
		t.Errorf("bash says %q", got)
	}
	for code, want := range map[string]string{
		"import asyncio\nawait asyncio.sleep(0, 3)": "3", "def f(a): pass\nimport inspect; str(inspect.signature(f))": "(a)",
		"len(!echo a)": "1", "import random; random.Random(1).randint(3, 3)": "3",
	} {
		if code == "len(!echo a)" {
			code = "a = !echo a\nlen(a)"
		}
		if got := p.value(code); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
	if events := p.run("%prun 1"); events[len(events)-1].Type == "error" {
		t.Errorf("got %+v", events)
	}
	restarted(t, p.run("os._exit(1)"))
	if got := p.value("5"); got != "5" {
		t.Errorf("then %q", got)
	}
}

func TestDeepRecursion(t *testing.T) {
	p := start(t)
	if got := p.value("def fact(n): return 1 if n == 0 else n * fact(n - 1)\nlen(str(fact(1500)))"); got != "4115" {
		t.Errorf("got %q", got)
	}
}

func TestTextBetweenRunsComesWithTheNext(t *testing.T) {
	p := start(t)
	gate := filepath.Join(p.home, "gate")
	p.ok("import os, threading\nos.mkfifo('gate')\ndef late():\n    open('gate').read(); print('late'); open('gate', 'w').close()\n" +
		"threading.Thread(target=late).start()")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(gate); err != nil {
		t.Fatal(err)
	}
	events := p.run("print('now')")
	if got := output(events, "stdout"); got != "late\nnow\n" {
		t.Errorf("output %q", got)
	}
}

func TestErrorsCarryEveryKindOfText(t *testing.T) {
	p := start(t)
	if e := p.fails("raise ValueError('\\ud800|\\x00|\\u2028')"); e.Value != "\ufffd|\x00|\u2028" {
		t.Errorf("error %+q", e.Value)
	}
}
