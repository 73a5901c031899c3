# Copyright 2026 The Caddy Code Interpreter Authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

"""Magics that run, time, show and capture code."""

import linecache
import os
import re
import sys
import time

from . import ipython
from .magics import CELL, LINE, cell_magic, line_magic, names, split

# Time.


def _duration(seconds, digits=3):
    if seconds >= 60:
        parts = []
        for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
            count, seconds = divmod(seconds, length)
            if count:
                parts.append("%d%s" % (count, unit))
        return " ".join(parts)
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)):
        if seconds * scale >= 1 or unit == "ns":
            return "%.*g %s" % (digits, seconds * scale, unit)


class _Clock:
    """Prints what the code inside it took."""

    def __enter__(self):
        self._before = self._used()
        self._wall = time.perf_counter()

    @staticmethod
    def _used():
        import resource

        return resource.getrusage(resource.RUSAGE_SELF)[:2]

    def __exit__(self, *exc):
        wall = time.perf_counter() - self._wall
        user, system = (after - before for after, before in zip(self._used(), self._before))
        figures = tuple(_duration(value) for value in (user, system, user + system))
        print("CPU times: user %s, sys: %s, total: %s" % figures)
        print("Wall time: %s" % _duration(wall))


@line_magic("time")
def time_line(shell, line):
    cell = shell._new_cell(line)
    shell._compile(cell)
    with _Clock():
        shown, value = cell.run(names(ipython.instance), shell.loop)
    return value if shown else None


@cell_magic("time")
def time_cell(shell, line, cell):
    source = "%s\n%s" % (line, cell) if line else cell
    with _Clock():
        shown, value = shell.run_nested(source, shell.body_offset - bool(line))
    return value if shown else None


@line_magic("timeit")
def timeit_line(shell, line, cell=None):
    import timeit

    options, code = _options(line, "nrtcpqo")
    setup, statement = ("pass", code) if cell is None else (code or "pass", cell)
    timer = timeit.Timer(statement, setup, globals=names(ipython.instance))
    number = int(options.get("n", 0))
    repeat = int(options.get("r", 7))
    digits = int(options.get("p", 3))
    if not number:
        for exponent in range(10):
            number = 10**exponent
            if timer.timeit(number) >= 0.2:
                break
    runs = [taken / number for taken in timer.repeat(repeat, number)]
    mean = sum(runs) / len(runs)
    spread = (sum((run - mean) ** 2 for run in runs) / len(runs)) ** 0.5
    if "q" not in options:
        plural = ["s" * (count != 1) for count in (repeat, number)]
        figures = (_duration(mean, digits), _duration(spread, digits), repeat, plural[0], format(number, ","), plural[1])
        print("%s ± %s per loop (mean ± std. dev. of %d run%s, %s loop%s each)" % figures)
    return runs if "o" in options else None


@cell_magic("timeit")
def timeit_cell(shell, line, cell):
    return timeit_line(shell, line, cell)


def _options(line, letters):
    """Splits leading options like -n 10 or -q from the code."""
    found = {}
    while line.startswith("-") and len(line) > 1 and line[1] in letters:
        letter, line = line[1], line[2:].lstrip()
        value = ""
        if letter in "nrp":
            value, _, line = line.partition(" ")
        found[letter] = value or "1"
        line = line.lstrip()
    return found, line


@line_magic()
def prun(shell, line):
    import cProfile

    if line.startswith("-"):
        raise ipython.UsageError("%prun: options are not supported.")
    namespace = names(ipython.instance)
    cProfile.runctx(line, namespace, namespace, sort="cumulative")


# Names and code.


def _names(shell):
    return sorted(name for name in shell.namespace if not name.startswith("_") and name not in shell.hidden)


@line_magic()
def who_ls(shell, line):
    kinds = line.split()
    return [n for n in _names(shell) if not kinds or type(shell.namespace[n]).__name__ in kinds]


@line_magic()
def who(shell, line):
    found = who_ls(shell, line)
    print("\t ".join(found) + "\t " if found else "Interactive namespace is empty.")


@line_magic()
def whos(shell, line):
    found = who_ls(shell, line)
    if not found:
        print("Interactive namespace is empty.")
        return
    rows = []
    for name in found:
        value = shell.namespace[name]
        text = " ".join(repr(value)[:60].split())
        rows.append((name, type(value).__name__, text))
    first, second = (max(len(row[i]) for row in [*rows, ("Variable", "Type", "")]) for i in (0, 1))
    print("%-*s   %-*s   Data/Info" % (first, "Variable", second, "Type"))
    print("-" * (first + second + 15))
    for name, kind, text in rows:
        print("%-*s   %-*s   %s" % (first, name, second, kind, text))


@line_magic()
def reset(shell, line):
    for name in _names(shell):
        del shell.namespace[name]


@line_magic("xdel")
def xdel(shell, line):
    shell.namespace.pop(line.strip(), None)


@line_magic("run")
def run(shell, line):
    import types

    words, options = split(line), set()
    while words and words[0] in ("-i", "-n", "-e"):
        options.add(words.pop(0))
    if not words or words[0].startswith("-"):
        raise ipython.UsageError("%run takes -i, -n and -e, and then must have a filename.")
    path = os.path.expanduser(words[0])
    if not os.path.exists(path) and os.path.exists(path + ".py"):
        path += ".py"
    if not os.path.exists(path):
        raise FileNotFoundError(2, "File `%r` not found." % path)
    path = os.path.abspath(path)
    linecache.checkcache(path)
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", 0, True)
    module = shell.module if "-i" in options else types.ModuleType("__main__")
    name = os.path.splitext(os.path.basename(path))[0] if "-n" in options else "__main__"
    main, argv, directory = sys.modules["__main__"], sys.argv, os.path.dirname(path)
    module.__name__, module.__file__ = name, path
    sys.modules["__main__"], sys.argv = module, [path, *words[1:]]
    sys.path.insert(0, directory)
    try:
        exec(code, module.__dict__)
    except SystemExit as error:
        if error.code and "-e" not in options:
            raise
    finally:
        sys.modules["__main__"], sys.argv = main, argv
        if directory in sys.path:
            sys.path.remove(directory)
        if module is shell.module:
            module.__name__ = "__main__"
            vars(module).pop("__file__", None)
        else:
            shell.namespace.update((k, v) for k, v in vars(module).items() if not k.startswith("__"))


@line_magic("history", "hist")
def history(shell, line):
    found = re.fullmatch(r"((?:-[no]+\s*)*)(?:-l\s*(\d*)|((?:\d+(?:-\d+)?(?:\s+|$))*))", line.strip())
    if not found:
        raise ipython.UsageError("%history takes -n (numbers), -o (outputs), and -l COUNT (the last ones) or cells such as 2 4-6.")
    options, last, cells = found.groups()
    current = len(shell.inputs) - 1
    if last is not None:
        numbers = range(max(1, current - int(last or 10)), current)
    elif cells:
        numbers = []
        for cell in cells.split():
            first, _, end = cell.partition("-")
            numbers.extend(range(max(1, int(first)), min(int(end or first), current) + 1))
    else:
        numbers = range(1, current + 1)
    for number in numbers:
        source = shell.inputs[number]
        if "n" in options:
            print("%4d:" % number, end="\n" if "\n" in source else " ")
        print(source)
        if "o" in options and number in shell.values:
            print(repr(shell.values[number]))


@line_magic("pinfo", "pinfo2")
def pinfo(shell, line):
    import inspect

    try:
        value = eval(line, names(ipython.instance))
    except Exception:
        print("Object `%s` not found." % line)
        return
    try:
        print("Signature: %s%s" % (line, inspect.signature(value)))
    except (TypeError, ValueError):
        print("Type: %s" % type(value).__name__)
    if shell.magic_name == "pinfo2":
        try:
            print("Source:\n%s" % inspect.getsource(value))
            return
        except (TypeError, OSError):
            pass
    print("Docstring: %s" % (inspect.getdoc(value) or "<no docstring>"))


@line_magic()
def tb(shell, line):
    print(shell.last_traceback or "No traceback available to show.")


@line_magic()
def lsmagic(shell, line):
    print("Available line magics:\n%s\n" % "  ".join("%" + name for name in sorted(LINE)))
    print("Available cell magics:\n%s" % "  ".join("%%" + name for name in sorted(CELL)))


# Output.


@cell_magic()
def capture(shell, line, cell):
    from .capture import Capture

    words = line.split()
    targets = [word for word in words if not word.startswith("-")]
    wanted = ["--no-" + kind not in words for kind in ("stdout", "stderr", "display")]
    with Capture(*wanted) as captured:
        shown, value = shell.run_nested(cell, shell.body_offset)
        if shown and value is not None:
            shell.show(value, True)
        shell.show_figures()
    if targets:
        shell.namespace[targets[0]] = captured


def _as(kind):
    def show(shell, line, cell):
        shell.publish({"text/plain": "<IPython.core.display.%s object>" % kind[0], kind[1]: cell}, False)

    return show


for _name, _kind in (
    ("html", ("HTML", "text/html")),
    ("HTML", ("HTML", "text/html")),
    ("markdown", ("Markdown", "text/markdown")),
    ("latex", ("Latex", "text/latex")),
    ("svg", ("SVG", "image/svg+xml")),
    ("SVG", ("SVG", "image/svg+xml")),
    ("javascript", ("Javascript", "application/javascript")),
    ("js", ("Javascript", "application/javascript")),
):
    CELL[_name] = _as(_kind)
