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

"""The magics: %name for a line, %%name for a cell.

The functions are in magic_code.py, magic_programs.py and magic_settings.py.
Those of a line are called with the shell and the rest of the line, those of a
cell also with the rest of the cell.
"""

import sys

from . import ipython

LINE, CELL = {}, {}


def line_magic(*names):
    """Registers a function as a magic for lines."""
    return _register(LINE, names)


def cell_magic(*names):
    """Registers a function as a magic for cells."""
    return _register(CELL, names)


def _register(table, names):
    def register(function):
        for name in names or (function.__name__,):
            table[name] = function
        return function

    return register


def split(line):
    """Splits a line as a shell does."""
    import shlex

    return shlex.split(line)


def find(ip, name, kind):
    """The function of a magic that code has registered, or None."""
    return ip.magics_manager.magics[kind].get(name)


def run_line(ip, name, line):
    """Runs a line magic."""
    line = expand(line, names(ip)) if name not in _VERBATIM else line
    ip.shell.magic_name = name
    own = find(ip, name, "line")
    if own is not None:
        return own(line)
    function = LINE.get(name)
    if function is not None:
        return function(ip.shell, line)
    raise _unknown("Line magic function `%%%s`", name, "cell magic `%%%%%s`", name in CELL or find(ip, name, "cell"))


def run_cell(ip, name, line, cell):
    """Runs a cell magic."""
    ip.shell.magic_name = name
    own = find(ip, name, "cell")
    if own is not None:
        return own(line, cell)
    function = CELL.get(name)
    if function is not None:
        return function(ip.shell, expand(line, names(ip)), cell)
    raise _unknown("Cell magic `%%%%%s`", name, "line magic `%%%s`", name in LINE or find(ip, name, "line"))


def _unknown(kind, name, other, exists):
    problem = kind % name + " not found"
    if exists:
        problem += " (But %s exists, did you mean that instead?)" % (other % name)
    return ipython.UsageError(problem + ".")


# Magics whose line is Python, in which braces mean something else.
_VERBATIM = {"time", "timeit", "pinfo", "pinfo2", "prun"}


def names(ip):
    """The names that the code which called the driver sees."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
    if frame is None or frame.f_locals is ip.user_ns:
        return ip.user_ns
    return {**ip.user_ns, **frame.f_locals}


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

    # A $ in single quotes is for the program.
    dollar = r"\$([A-Za-z_]\w*)(?=(?:[^']*'[^']*')*[^']*$)"
    return re.sub(r"\$\$|\{\{|\}\}|\{([^{}]+)\}|" + dollar, replace, text)


from . import magic_code, magic_programs, magic_settings  # noqa: E402, F401  (they fill the tables)
