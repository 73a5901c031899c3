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

"""The magics: %name for a line, %%name for a cell."""

import os
import sys
import time

from . import command, ipython

_LINE, _CELL = {}, {}


def _magic(*names, table=None):
    def register(function):
        for name in names or (function.__name__.strip("_"),):
            (_LINE if table is None else table)[name] = function
        return function

    return register


def _cell_magic(*names):
    return _magic(*names, table=_CELL)


def find(ip, name, kind):
    """The function of a magic that code has registered, or None."""
    return ip.magics_manager.magics[kind].get(name)


def run_line(ip, name, line):
    """Runs a line magic."""
    line = expand(line, ip.user_ns) if name not in _VERBATIM else line
    ip.shell.magic_name = name
    own = find(ip, name, "line")
    if own is not None:
        return own(line)
    function = _LINE.get(name)
    if function is not None:
        return function(ip.shell, line)
    problem = "Line magic function `%%%s` not found." % name
    if name in _CELL or find(ip, name, "cell"):
        problem = "Line magic function `%%%s` not found (But cell magic `%%%%%s` exists, did you mean that instead?)." % (name, name)
    raise ipython.UsageError(problem)


def run_cell(ip, name, line, cell):
    """Runs a cell magic."""
    ip.shell.magic_name = name
    own = find(ip, name, "cell")
    if own is not None:
        return own(line, cell)
    function = _CELL.get(name)
    if function is not None:
        return function(ip.shell, expand(line, ip.user_ns), cell)
    problem = "Cell magic `%%%%%s` not found." % name
    if name in _LINE or find(ip, name, "line"):
        problem = "Cell magic `%%%%%s` not found (But line magic `%%%s` exists, did you mean that instead?)." % (name, name)
    raise ipython.UsageError(problem)


_VERBATIM = {"time", "timeit", "pinfo", "pinfo2", "prun"}


def expand(text, namespace):
    """Replaces {expression} and $name by their values, where they have one."""
    if "{" not in text and "$" not in text:
        return text
    import re

    def replace(found):
        if found.group(0) in ("$$", "{{", "}}"):
            return found.group(0)[0]
        source = found.group(1) or found.group(2)
        try:
            return str(eval(source, namespace))
        except Exception:
            return found.group(0)

    return re.sub(r"\$\$|\{\{|\}\}|\{([^{}]+)\}|\$([A-Za-z_]\w*)", replace, text)


# The shell and the file system.


@_magic("system", "sx", "!")
def _system(shell, line):
    return command.output(line)


@_cell_magic("system", "sx", "!")
def _system_cell(shell, line, cell):
    return command.output(cell)


@_magic("pip", "conda", "mamba", "uv")
def _pip(shell, line):
    status = command.run([sys.executable, "-m", "pip", *_words(line)])
    if status == 0 and line.startswith("install"):
        print("Note: you may need to restart the kernel to use updated packages.")


def _alias(program):
    def run(shell, line):
        shell.namespace["_exit_code"] = command.run("%s %s" % (program, line))

    return run


for _name in ("cat", "cp", "ln", "man", "mkdir", "mv", "rm", "rmdir", "echo", "more", "less"):
    _LINE[_name] = _alias(_name)
_LINE["ls"] = _alias("ls -F")
_LINE["ll"] = _LINE["lf"] = _alias("ls -F -l")


def _words(line):
    import shlex

    return shlex.split(line)


@_magic()
def cd(shell, line):
    line = line.strip()
    quiet = line.startswith("-q")
    line = line[2:].strip() if quiet else line
    if line == "-":
        if len(shell.directories) < 2:
            raise ipython.UsageError("%cd -: No previous directory to change to.")
        line = shell.directories[-2]
    target = os.path.expanduser(line.strip("'\"")) if line else os.path.expanduser("~")
    try:
        os.chdir(target)
    except OSError as error:
        print(error)
        return
    shell.directories.append(os.getcwd())
    if not quiet:
        print(os.getcwd())


@_magic()
def pwd(shell, line):
    return os.getcwd()


@_magic()
def dhist(shell, line):
    print("Directory history (kept in _dh)")
    for index, path in enumerate(shell.directories):
        print("%d: %s" % (index, path))


@_magic()
def env(shell, line):
    name, equal, value = line.partition("=")
    if not equal:
        name, _, value = line.strip().partition(" ")
        if not name:
            return dict(os.environ)
        if not value:
            if name in os.environ:
                return os.environ[name]
            raise ipython.UsageError("Environment does not have key: %s" % name)
    os.environ[name.strip()] = value.strip()
    print("env: %s=%s" % (name.strip(), value.strip()))


_LINE["set_env"] = env


@_cell_magic("writefile", "file")
def _writefile(shell, line, cell):
    words = _words(line)
    append = "-a" in words or "--append" in words
    names = [word for word in words if not word.startswith("-")]
    if not names:
        raise ipython.UsageError("%%writefile: the following arguments are required: filename")
    path = os.path.expanduser(names[0])
    if os.path.exists(path):
        print("Appending to %s" % path if append else "Overwriting %s" % path)
    else:
        print("Writing %s" % path)
    with open(path, "a" if append else "w", encoding="utf-8", errors="replace") as file:
        file.write(cell)


@_cell_magic("bash", "sh", "script")
def _script(shell, line, cell):
    words = _words(line)
    program = [word for word in words if not word.startswith("-")]
    quiet = "--no-raise-error" in words
    if shell.magic_name != "script" or not program:
        program = [command.shell_path()]
    try:
        command.script(program, cell)
    except command.subprocess.CalledProcessError:
        if not quiet:
            raise


@_cell_magic("python", "python3", "pypy")
def _python(shell, line, cell):
    command.script([sys.executable, "-"], cell)


@_cell_magic("perl", "ruby")
def _other(shell, line, cell):
    command.script([shell.magic_name], cell)


# Time.


def _duration(seconds):
    if seconds >= 60:
        parts = []
        for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
            count, seconds = divmod(seconds, length)
            if count:
                parts.append("%d%s" % (count, unit))
        return " ".join(parts)
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)):
        if seconds * scale >= 1 or unit == "ns":
            return "%.3g %s" % (seconds * scale, unit)


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


@_magic("time")
def _time(shell, line):
    with _Clock():
        shown, value = shell.run_nested(line, 0)
    return value if shown else None


@_cell_magic("time")
def _time_cell(shell, line, cell):
    source = "%s\n%s" % (line, cell) if line else cell
    with _Clock():
        shown, value = shell.run_nested(source, shell.body_offset - bool(line))
    return value if shown else None


@_magic("timeit")
def _timeit(shell, line, cell=None):
    import timeit

    options, code = _options(line, "nrtcpqo")
    setup, statement = ("pass", code) if cell is None else (code or "pass", cell)
    timer = timeit.Timer(statement, setup, globals=shell.namespace)
    number = int(options.get("n", 0))
    repeat = int(options.get("r", 7))
    if not number:
        for exponent in range(10):
            number = 10**exponent
            if timer.timeit(number) >= 0.2:
                break
    runs = [taken / number for taken in timer.repeat(repeat, number)]
    mean = sum(runs) / len(runs)
    spread = (sum((run - mean) ** 2 for run in runs) / len(runs)) ** 0.5
    if "q" not in options:
        figures = _duration(mean), _duration(spread), repeat, "s" * (repeat != 1), number, "s" * (number != 1)
        print("%s ± %s per loop (mean ± std. dev. of %d run%s, %s loop%s each)" % (
            *figures[:4], format(number, ","), figures[5]))
    return runs if "o" in options else None


@_cell_magic("timeit")
def _timeit_cell(shell, line, cell):
    return _timeit(shell, line, cell)


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


@_magic()
def prun(shell, line):
    import cProfile

    cProfile.runctx(line, shell.namespace, shell.namespace, sort="cumulative")


# Names and code.


def _names(shell):
    return sorted(name for name in shell.namespace if not name.startswith("_") and name not in shell.hidden)


@_magic()
def who_ls(shell, line):
    kinds = line.split()
    return [n for n in _names(shell) if not kinds or type(shell.namespace[n]).__name__ in kinds]


@_magic()
def who(shell, line):
    names = who_ls(shell, line)
    print("\t ".join(names) + "\t " if names else "Interactive namespace is empty.")


@_magic()
def whos(shell, line):
    names = who_ls(shell, line)
    if not names:
        print("Interactive namespace is empty.")
        return
    rows = []
    for name in names:
        value = shell.namespace[name]
        text = " ".join(repr(value)[:60].split())
        rows.append((name, type(value).__name__, text))
    first, second = (max(len(row[i]) for row in [*rows, ("Variable", "Type", "")]) for i in (0, 1))
    print("%-*s   %-*s   Data/Info" % (first, "Variable", second, "Type"))
    print("-" * (first + second + 15))
    for name, kind, text in rows:
        print("%-*s   %-*s   %s" % (first, name, second, kind, text))


@_magic()
def reset(shell, line):
    for name in _names(shell):
        del shell.namespace[name]


@_magic("xdel")
def _xdel(shell, line):
    shell.namespace.pop(line.strip(), None)


@_magic("run")
def _run(shell, line):
    import runpy

    words = [word for word in _words(line) if word != "-i"]
    if not words:
        raise ipython.UsageError("you must provide at least a filename.")
    path = os.path.expanduser(words[0])
    if not os.path.exists(path) and os.path.exists(path + ".py"):
        path += ".py"
    if not os.path.exists(path):
        raise FileNotFoundError(2, "File `%r` not found." % path)
    saved, sys.argv = sys.argv, [path, *words[1:]]
    main = sys.modules["__main__"]
    try:
        shell.namespace.update(
            (name, value)
            for name, value in runpy.run_path(path, run_name="__main__").items()
            if not name.startswith("__")
        )
    finally:
        sys.argv = saved
        sys.modules["__main__"] = main


@_magic("history", "hist")
def _history(shell, line):
    for source in shell.inputs[1:]:
        print(source)


@_magic("pinfo", "pinfo2")
def _pinfo(shell, line):
    import inspect

    try:
        value = eval(line, shell.namespace)
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


@_magic()
def tb(shell, line):
    print(shell.last_traceback or "No traceback available to show.")


@_magic()
def lsmagic(shell, line):
    print("Available line magics:\n%s\n" % "  ".join("%" + name for name in sorted(_LINE)))
    print("Available cell magics:\n%s" % "  ".join("%%" + name for name in sorted(_CELL)))


@_magic("load_ext", "reload_ext")
def _load_ext(shell, line):
    import importlib

    if line in ("autoreload", "line_profiler", "memory_profiler"):
        return
    module = importlib.import_module(line)
    module.load_ipython_extension(ipython.instance)


def _accept(shell, line):
    """A magic that has nothing to change here."""


for _name in ("matplotlib", "pylab", "config", "autoreload", "gui", "colors", "xmode", "automagic",
              "precision", "autosave", "unload_ext", "doctest_mode", "pdb", "logstop"):
    _LINE[_name] = _accept


# Output.


@_cell_magic()
def capture(shell, line, cell):
    from .capture import Capture

    words = line.split()
    names = [word for word in words if not word.startswith("-")]
    wanted = ["--no-" + kind not in words for kind in ("stdout", "stderr", "display")]
    with Capture(*wanted) as captured:
        shown, value = shell.run_nested(cell, shell.body_offset)
        if shown and value is not None:
            shell.show(value, True)
        shell.show_figures()
    if names:
        shell.namespace[names[0]] = captured


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
    _CELL[_name] = _as(_kind)
