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

"""Magics that change how later cells are run and shown."""

import linecache
import os
import sys

from . import ipython, pretty, tracebacks
from .magics import LINE, line_magic

# Settings.


def _accept(shell, line):
    """A magic that has nothing to change here."""


for _name in ("matplotlib", "gui", "colors", "xmode", "automagic", "autosave", "logstop"):
    LINE[_name] = _accept

_INERT = ("InlineBackend", "Completer", "IPCompleter", "HistoryManager")  # that may be set to anything


@line_magic()
def config(shell, line):
    setting, equal, value = (part.strip() for part in line.partition("="))
    owner, _, name = setting.partition(".")
    if equal and owner in _INERT:
        return
    value = value.strip("'\"")
    shells = ("InteractiveShell", "ZMQInteractiveShell")
    if owner not in shells or name != "ast_node_interactivity" or value not in ("all", "last_expr", "none"):
        raise ipython.UsageError("%%config: %s is not supported." % (line or "a list"))
    ipython.ZMQInteractiveShell.ast_node_interactivity = value


@line_magic()
def precision(shell, line):
    form = "%%.%sf" % line if line.isdigit() else line or "%r"
    try:
        form % 0.5
    except (TypeError, ValueError):
        raise ipython.UsageError("Precision must be integer or format string, not %r" % line) from None

    def draw(value, printer, cycle):
        printer.text(form % value)

    pretty._BY_TYPE[float] = draw  # inside of containers
    ipython.instance.display_formatter.formatters["text/plain"].for_type(float, draw)
    if "numpy" in sys.modules:
        sys.modules["numpy"].set_printoptions(precision=int(line) if line.isdigit() else 8)
    return form


@line_magic("load_ext", "reload_ext")
def load_ext(shell, line):
    import importlib

    if not line:
        raise ipython.UsageError("Missing module name.")
    if line == "autoreload":
        return
    module = importlib.import_module(line)
    if hasattr(module, "load_ipython_extension"):
        module.load_ipython_extension(ipython.instance)
    else:
        print("The %s module is not an IPython extension." % line)


# Modules whose files have changed.

_times = {}  # name of a module -> the time of its file when it was loaded


@line_magic()
def autoreload(shell, line):
    events = ipython.instance.events
    if line in ("2", "all"):
        _changed()
        events.register("pre_run_cell", _reload)
        events.register("post_run_cell", _changed)
    elif line in ("0", "off"):
        events.unregister("pre_run_cell", _reload)
        events.unregister("post_run_cell", _changed)
    else:
        raise ipython.UsageError("%autoreload takes 2 (all modules) or 0 (none).")


def _changed(*_):
    """The modules, with the times of their files, that have changed since they were loaded."""
    found = []
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__dict__", {}).get("__file__")
        if name == "__main__" or not isinstance(path, str) or not path.endswith(".py"):
            continue
        try:
            time = os.stat(path).st_mtime_ns
        except OSError:
            continue
        if _times.setdefault(name, time) != time:
            found.append((module, time))
    return found


def _reload(*_):
    for module, time in _changed():
        name = module.__name__
        _times[name] = time
        try:
            _renew(module)
        except Exception as error:
            ipython.instance.shell.note("[autoreload of %s failed: %s]" % (name, tracebacks.only(error)))


def _renew(module):
    """Reloads a module, also for the cells' names that are functions and classes of it."""
    import importlib.util

    try:
        # It is kept by the second, in which the file may have changed again.
        os.remove(importlib.util.cache_from_source(module.__file__))
    except (OSError, NotImplementedError):
        pass
    old, space = dict(vars(module)), ipython.instance.user_ns
    linecache.checkcache(module.__file__)
    importlib.reload(module)
    own = {id(value): n for n, value in old.items() if getattr(value, "__module__", None) == module.__name__}
    for name, value in list(space.items()):
        if id(value) in own:
            space[name] = getattr(module, own[id(value)])
