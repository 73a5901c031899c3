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

"""The synthetic IPython package: get_ipython() and what is imported from it.

Code written for notebooks imports IPython. Here it gets modules that are made
on demand and do what such code needs; a real IPython would not know that it
is being run.
"""

import importlib
import importlib.machinery
import sys
import types

VERSION = (8, 20, 0, "")


class ZMQInteractiveShell:
    """What get_ipython() returns. Its name is how libraries know a notebook."""

    def __init__(self):
        self.shell = None  # the kernel's Shell; None in the supervisor
        self.config = {}
        self.kernel = types.SimpleNamespace(shell=self)
        self.events = Events()
        self.display_formatter = types.SimpleNamespace(
            formatters={kind: Formatter() for kind in FORMATTED}, active_types=[]
        )
        self.display_pub = types.SimpleNamespace(publish=self._publish)
        self.displayhook = lambda value: self.shell.show(value, True)
        self.magics_manager = types.SimpleNamespace(magics={"line": {}, "cell": {}})

    ast_node_interactivity = "last_expr"
    colors = "NoColor"
    instance = staticmethod(lambda: get_ipython())
    initialized = staticmethod(lambda: True)

    @property
    def user_ns(self):
        return self.shell.namespace

    user_global_ns = user_ns

    @property
    def user_module(self):
        return self.shell.module

    @property
    def execution_count(self):
        return self.shell.count

    def _publish(self, data, metadata=None, **kwargs):
        self.shell.publish(data, False)

    def run_line_magic(self, magic_name, line="", _stack_depth=1):
        from . import magics

        return magics.run_line(self, magic_name, line)

    def run_cell_magic(self, magic_name, line, cell):
        from . import magics

        return magics.run_cell(self, magic_name, line, cell)

    def magic(self, text):
        name, _, line = text.strip().partition(" ")
        return self.run_line_magic(name.lstrip("%"), line.strip())

    def find_magic(self, magic_name, magic_kind="line"):
        from . import magics

        return magics.find(self, magic_name, magic_kind)

    find_line_magic = find_magic

    def find_cell_magic(self, magic_name):
        return self.find_magic(magic_name, "cell")

    def register_magic_function(self, func, magic_kind="line", magic_name=None):
        kinds = ("line", "cell") if magic_kind == "line_cell" else (magic_kind,)
        for kind in kinds:
            self.magics_manager.magics[kind][magic_name or func.__name__] = func

    def register_magics(self, *groups):
        for group in groups:
            group = group(self) if isinstance(group, type) else group
            for name in dir(type(group)):
                for kind, magic in getattr(getattr(type(group), name), "_magics", ()):
                    self.magics_manager.magics[kind][magic] = getattr(group, name)

    def system(self, cmd):
        from . import command

        self.user_ns["_exit_code"] = command.run(self.var_expand(cmd))

    system_raw = system_piped = system

    def getoutput(self, cmd, split=True, depth=0):
        from . import command

        lines = command.output(self.var_expand(cmd))
        return lines if split else lines.n

    def var_expand(self, cmd, depth=0, formatter=None):
        """Puts values of the caller's names into a command."""
        from . import magics

        return magics.expand(cmd, magics.names(self))

    def run_cell(self, raw_cell, store_history=False, silent=False, **kwargs):
        """Runs code as a cell."""
        try:
            shown, value = self.shell.run_nested(raw_cell, 0)
        except Exception as error:
            self.shell.report(error)
            return types.SimpleNamespace(result=None, success=False, error_in_exec=error)
        if shown and value is not None and not silent:
            self.shell.show(value, True)
        return types.SimpleNamespace(result=value, success=True, error_in_exec=None)

    def ex(self, cmd):
        exec(cmd, self.user_ns)

    def ev(self, expr):
        return eval(expr, self.user_ns)

    def push(self, variables, interactive=True):
        if isinstance(variables, dict):
            self.user_ns.update(variables)

    def drop_by_id(self, variables):
        for name, value in variables.items():
            if self.user_ns.get(name) is value:
                del self.user_ns[name]

    def showtraceback(self, exc_tuple=None, **kwargs):
        error = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
        if error is not None:
            self.shell.report(error)

    def enable_gui(self, gui=None):
        """Accepted: there is no screen."""

    def enable_matplotlib(self, gui=None):
        """Accepted: figures are always shown inline."""
        return "inline", "inline"

    def set_custom_exc(self, exc_tuple, handler):
        """Accepted: errors are reported in one way."""

    def set_next_input(self, s, replace=False):
        """Accepted: there is no next input to fill in."""

    def ask_exit(self):
        raise SystemExit


class Events:
    """Functions that are called around cells."""

    def __init__(self):
        self.callbacks = {}

    def register(self, event, function):
        registered = self.callbacks.setdefault(event, [])
        if function not in registered:
            registered.append(function)

    def unregister(self, event, function):
        registered = self.callbacks.get(event, [])
        if function in registered:
            registered.remove(function)

    def trigger(self, event, *args):
        for function in list(self.callbacks.get(event, ())):
            function(*args)


FORMATTED = (
    "text/plain",
    "text/html",
    "text/markdown",
    "image/svg+xml",
    "image/png",
    "application/pdf",
    "image/jpeg",
    "text/latex",
    "application/json",
    "application/javascript",
)


class Formatter:
    """Functions that draw the values of other people's classes."""

    used = False  # whether any of them has a function

    def __init__(self):
        self.type_printers = {}
        self._by_name = {}
        self.enabled = True

    def for_type(self, cls, function=None):
        if isinstance(cls, str):
            module, _, name = cls.rpartition(".")
            return self.for_type_by_name(module, name, function)
        before = self.type_printers.get(cls)
        if function is not None:
            self.type_printers[cls] = function
            Formatter.used = True
        return before

    def for_type_by_name(self, module, name, function=None):
        before = self._by_name.get((module, name))
        if function is not None:
            self._by_name[module, name] = function
            Formatter.used = True
        return before

    def lookup(self, cls):
        """The function for values of the class, or None."""
        for base in cls.__mro__:
            key = (base.__module__, base.__name__)
            found = self.type_printers.get(base) or self._by_name.get(key)
            if found is not None:
                return found
        return None


instance = ZMQInteractiveShell()


def get_ipython():
    """Returns the running shell."""
    return instance


class UsageError(Exception):
    """A magic was used in a way that it does not support."""


class StdinNotImplementedError(NotImplementedError):
    """Code asked for input, which nobody can give."""


UsageError.__module__ = "IPython.core.error"
StdinNotImplementedError.__module__ = "IPython.core.error"
ZMQInteractiveShell.__module__ = "ipykernel.zmqshell"


def install():
    """Makes the modules importable, in front of an installed IPython."""
    import builtins

    sys.meta_path.insert(0, _Finder())
    builtins.get_ipython = get_ipython
    builtins.__IPYTHON__ = True


class _Finder:
    """Finds the synthetic modules."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in _MODULES:
            package = any(other.startswith(name + ".") for other in _MODULES)
            return importlib.machinery.ModuleSpec(name, _Loader, is_package=package)
        if name.startswith("IPython."):
            raise ModuleNotFoundError("No module named %r in this notebook" % name, name=name)
        return None


class _Loader:
    """Fills the synthetic modules."""

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        _MODULES[module.__name__](module)


def _top(module):
    module.version_info = VERSION
    module.__version__ = "%d.%d.%d" % VERSION[:3]
    module.get_ipython = get_ipython
    module.display = importlib.import_module("IPython.display")
    module.core = importlib.import_module("IPython.core")
    module.embed = lambda *args, **kwargs: None
    module.start_ipython = lambda *args, **kwargs: None
    module.InteractiveShell = ZMQInteractiveShell


def _display(module):
    from . import display

    for name in display.names:
        setattr(module, name, getattr(display, name))


def _core(module):
    pass


def _getipython(module):
    module.get_ipython = get_ipython


def _error(module):
    module.IPythonCoreError = Exception
    module.UsageError = UsageError
    module.StdinNotImplementedError = StdinNotImplementedError


def _shell(module):
    module.InteractiveShell = ZMQInteractiveShell


def _terminal(module):
    # Who is asked whether it is a shell in a terminal is none.
    module.TerminalInteractiveShell = type("TerminalInteractiveShell", (), {})


def _latextools(module):
    module.latex_to_png = lambda *args, **kwargs: None  # there is no LaTeX


def _magic(module):
    def decorator(kind):
        def decorate(function):
            name = None
            if isinstance(function, str):
                name = function

            def register(function):
                instance.register_magic_function(function, kind, name)
                return function

            return register if name else register(function)

        return decorate

    def method(kinds):
        def decorate(argument=None):
            def mark(function, name=None):
                function._magics = [(kind, name or function.__name__) for kind in kinds]
                return function

            if callable(argument):
                return mark(argument)
            return lambda function: mark(function, argument)

        return decorate

    class Magics:
        def __init__(self, shell=None, **kwargs):
            self.shell = shell

    module.Magics = Magics
    module.magics_class = lambda cls: cls
    module.register_line_magic = decorator("line")
    module.register_cell_magic = decorator("cell")
    module.register_line_cell_magic = decorator("line_cell")
    module.line_magic = method(("line",))
    module.cell_magic = method(("cell",))
    module.line_cell_magic = method(("line", "cell"))
    module.needs_local_scope = lambda function: function


def _pylabtools(module):
    module.backend2gui = {}
    module.backends = {}


def _pretty(module):
    from . import pretty

    module.pretty = pretty.text
    module.pprint = lambda value, **kwargs: print(pretty.text(value))
    module.RepresentationPrinter = module.PrettyPrinter = pretty.Printer
    module.for_type = lambda cls, function: pretty._BY_TYPE.setdefault(cls, function)


def _capture(module):
    from . import capture

    module.capture_output = capture.Capture
    module.CapturedIO = capture.Captured


_MODULES = {
    "IPython": _top,
    "IPython.display": _display,
    "IPython.core": _core,
    "IPython.core.display": _display,
    "IPython.core.display_functions": _display,
    "IPython.core.getipython": _getipython,
    "IPython.core.error": _error,
    "IPython.core.interactiveshell": _shell,
    "IPython.core.magic": _magic,
    "IPython.core.pylabtools": _pylabtools,
    "IPython.lib": _core,
    "IPython.lib.display": _display,
    "IPython.lib.latextools": _latextools,
    "IPython.lib.pretty": _pretty,
    "IPython.terminal": _core,
    "IPython.terminal.interactiveshell": _terminal,
    "IPython.utils": _core,
    "IPython.utils.capture": _capture,
    "IPython.utils.io": _capture,
}
