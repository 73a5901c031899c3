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

"""The state of a context, and the running of its cells."""

import builtins
import linecache
import mmap
import os
import sys

from . import cell as cells
from . import channel, ipython, loop, results, tracebacks

# Commands that need no mark in a cell of one line.
_COMMANDS = frozenset("cat cd cp ll ls man mkdir mv pip pwd rm rmdir who whos".split())
HISTORY = 1000  # values that Out keeps
CELLS = 5000  # cells whose source is kept for tracebacks


class Shell:
    """Runs cells in one namespace and reports what comes of them."""

    def __init__(self, link, interrupts, module):
        self.link = link
        self.loop = loop.Loop()
        self.module = module
        self.namespace = module.__dict__
        self.count = 0
        self.cells = {}  # file name -> Cell, for tracebacks
        self.cell = None  # the one that runs
        self.inputs = [""]
        self.values = {}
        self.directories = [os.getcwd()]
        self.outputs = None  # a list while displays are captured
        self.last_traceback = None
        self.magic_name = None
        self._interrupts = interrupts
        self._reserve = _Reserve()
        self._flags = 0
        self._adopted = set()
        self._set_up_namespace()

    def _set_up_namespace(self):
        from . import display

        ipython.instance.shell = display.shell = self
        builtins.display = display.display
        builtins.__show__ = self._show_expression
        builtins.input = _unanswered("raw_input")
        builtins.exit = builtins.quit = _Exit()
        self.namespace.update(
            __builtins__=builtins,
            In=self.inputs,
            Out=self.values,
            _ih=self.inputs,
            _oh=self.values,
            _dh=self.directories,
            get_ipython=ipython.get_ipython,
            exit=builtins.exit,
            quit=builtins.quit,
            _="",
            __="",
            ___="",
            _i="",
            _ii="",
            _iii="",
        )
        self._unders = ["", "", ""]
        self.hidden = set(self.namespace)
        sys.displayhook = self._show_expression

    # One run.

    def run(self, command):
        """Runs one cell. Returns the exit status of a child it forked."""
        source = command["code"]
        if cells.is_blank(source):
            self._announce(self.count + 1)  # the number that the next one has, too
            return 0
        self._interrupts.arm()
        environment = _Environment()
        self._begin(source)
        error = self._guarded(self._run, source, command, environment)
        for stream in (sys.stdout, sys.stderr):
            if not isinstance(stream, channel.TextStream):  # what the cell put in its place
                self._guarded(lambda: stream.flush())  # noqa: B023
        if self.link.in_child:
            return 0 if error is None else self._end_child(error)
        if error is None:
            self._reserve.fill()
        elif isinstance(error, MemoryError):
            self._reserve.release()
        self.report_safely(error)
        self.report_safely(self._guarded(self.show_figures))
        self._guarded(ipython.instance.events.trigger, "post_run_cell", None)
        environment.restore()
        return 0

    def _begin(self, source):
        self.count += 1
        self.inputs.append(source)
        for name in ("_iii", "_ii", "_i"):
            back = len(self.inputs) - 1 - name.count("i")
            self.namespace[name] = self.inputs[back] if back > 0 else ""
        self.namespace["_i%d" % self.count] = source
        self._announce(self.count)

    def _announce(self, count):
        self.link.event({"type": "number_of_executions", "execution_count": count})

    def _guarded(self, function, *arguments):
        """Calls a function during which SIGINT means KeyboardInterrupt."""
        try:
            try:
                self._interrupts.active = True
                function(*arguments)
            finally:
                self._interrupts.active = False
        except BaseException as error:
            self._interrupts.active = False
            return error
        return None

    def _run(self, source, command, environment):
        self._interrupts.begin()
        self._adopt(command["sandbox_env_vars"])
        environment.set(command["env_vars"])
        if command["language"] == "bash":
            from . import bash

            bash.run(source, command["env_vars"])
            return
        ipython.instance.events.trigger("pre_run_cell", None)
        self.cell = self._new_cell(source)
        self._compile(self.cell)
        shown, value = self.cell.run(self.namespace, self.loop)
        if shown and value is not None:
            self.show(value, True)
        ipython.instance.events.trigger("post_execute")

    def _adopt(self, variables):
        """Sets the variables of the sandbox, once: from then on they are the code's."""
        for name, value in variables.items():
            if name not in self._adopted:
                os.environ[name] = value
                self._adopted.add(name)

    def _show_expression(self, value):
        if value is not None:
            self.show(value, True)

    def _new_cell(self, source):
        cell = cells.Cell(source, self.count)
        if len(self.cells) >= CELLS:
            oldest = next(iter(self.cells))
            del self.cells[oldest]
            linecache.cache.pop(oldest, None)
        self.cells[cell.filename] = cell
        lines = source.splitlines(True)
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        linecache.cache[cell.filename] = (len(source), None, lines, cell.filename)
        return cell

    def _compile(self, cell):
        try:
            if self._is_command(cell.source):
                raise SyntaxError
            cell.compile(self._flags, ipython.instance.ast_node_interactivity)
        except SyntaxError:
            from . import transform

            source = cell.source
            replaced = transform.transform(source)
            if replaced == source:
                raise
            cell.source = replaced
            try:
                cell.compile(self._flags, ipython.instance.ast_node_interactivity)
            finally:
                cell.source = source
        self._flags = cell.flags

    def _is_command(self, source):
        """Whether a cell is one line like ``ls -l``, which Python parses, too."""
        words = source.split(None, 1)
        if not words or words[0] not in _COMMANDS:
            return False
        if words[0] in self.namespace or hasattr(builtins, words[0]):
            return False
        from . import transform

        return transform.is_command(source)

    def run_nested(self, source, offset):
        """Runs code for a magic of the cell, whose line it begins on is offset.

        Returns whether the code has a value, and the value.
        """
        cell = self.cell
        nested = cells.Cell("\n" * max(0, offset) + source, self.count)
        if offset > 0 and cell is not None:
            nested.filename = cell.filename  # so that it is shown in its place
        else:
            nested.filename = self._new_cell(nested.source).filename
        self._compile(nested)
        return nested.run(self.namespace, self.loop)

    @property
    def body_offset(self):
        """The lines before the body of a cell magic."""
        source = self.cell.source
        return source[: len(source) - len(source.lstrip())].count("\n") + 1

    # What a run says.

    def show(self, value, main, include=None, exclude=None):
        """Shows a value; as the value of the cell when main is true."""
        if not self._draws_itself(value):
            bundle = results.bundle(value, self._complain, include, exclude)
            self.publish(bundle, main)
        if main:
            self._remember(value)

    def _draws_itself(self, value):
        """Whether the value has shown itself in a way of its own."""
        draw = results.method(value, "_ipython_display_")
        if draw is None:
            return False
        try:
            draw()
        except NotImplementedError:
            return False
        except Exception as error:
            self._complain(error)
            return False
        return True

    def publish(self, bundle, main):
        """Sends a bundle of representations as a result."""
        if self.outputs is not None:
            self.outputs.append(bundle)
            return
        event = results.event(bundle, main)
        while True:
            try:
                self.link.event(event)
                return
            except ValueError:
                largest = max(event, key=lambda name: len(str(event[name])))
                size = len(str(event.pop(largest)))
                self.note("[%s of %d bytes is too large to show]" % (largest, size))
            except TypeError as error:
                event = {key: event[key] for key in event if isinstance(event[key], (str, bool))}
                event["extra"] = {}
                self._complain(error)

    def _remember(self, value):
        space, unders = self.namespace, self._unders
        names = ("_", "__", "___")
        # Names that the cells gave another meaning keep it.
        if all(space.get(name, unders[i]) is unders[i] for i, name in enumerate(names)):
            if value is not self.values:
                unders[:] = [value, unders[0], unders[1]]
                space.update(zip(names, unders))
        if len(self.values) >= HISTORY:
            for key in list(self.values)[: HISTORY // 5]:
                del self.values[key]
                space.pop("_%d" % key, None)
        space["_%d" % self.count] = value
        self.values[self.count] = value

    def show_figures(self):
        """Shows the figures that the cell left open."""
        if "matplotlib.pyplot" in sys.modules:
            from . import figures

            figures.flush()

    def _complain(self, error):
        self.note(tracebacks.only(error))

    def note(self, text):
        """Says something of the kernel's own on standard error."""
        try:
            sys.stderr.write(text + "\n")
        except Exception:  # the user's stream, or none at all
            self.link.text("stderr", text + "\n")

    def report(self, error):
        """Sends an exception as an error event."""
        name, value, traceback = tracebacks.report(error, self.cells, self.cell)
        self.last_traceback = traceback
        if not isinstance(error, MemoryError):  # its frames hold what was too much
            sys.last_type, sys.last_value = type(error), error
            sys.last_traceback = error.__traceback__
            if sys.version_info >= (3, 12):
                sys.last_exc = error
        self.link.event({"type": "error", "name": name, "value": value, "traceback": traceback})

    def report_safely(self, error):
        """Sends an exception, or no more than its name when that fails."""
        if error is not None and self._guarded(self.report, error) is not None:
            # The report itself was interrupted, or memory is short.
            name = type(error).__name__
            self.link.event({"type": "error", "name": name, "value": "", "traceback": name})

    def adopt_threads(self, threading):
        """Reports what ends a thread as the error of a cell is reported."""

        def excepthook(args):
            if args.exc_value is None or args.exc_type is SystemExit:
                return
            name = args.thread.name if args.thread is not None else "unknown"
            traceback = tracebacks.printed(args.exc_value, self.cells)
            sys.stderr.write("Exception in thread %s:\n%s" % (name, traceback))

        threading.excepthook = excepthook

    def _end_child(self, error):
        """Ends a forked child as Python would end it. Returns its status."""
        if isinstance(error, SystemExit):
            if error.code is None or isinstance(error.code, int):
                return (error.code or 0) & 0xFF
            sys.stderr.write("%s\n" % error.code)
            return 1
        sys.stderr.write(tracebacks.printed(error, self.cells))
        return 1


def _unanswered(name):
    """A function that asks the user, whom nobody can ask here."""

    def ask(prompt="", *args, **kwargs):
        raise ipython.StdinNotImplementedError(
            "%s was called, but this frontend does not support input requests." % name
        )

    return ask


def adopt_getpass(getpass):
    """Makes the module's questions errors, as input() is."""
    getpass.getpass = _unanswered("getpass")


class _Exit:
    """exit and quit: an error, as sys.exit() is, that leaves the kernel alive."""

    def __repr__(self):
        return "Use exit() or Ctrl-D (i.e. EOF) to exit"

    def __call__(self, code=None):
        raise SystemExit(code) if code is not None else SystemExit


class _Reserve:
    """Address space for the kernel itself when a cell has used up the rest.

    It is never touched, so that it takes no memory. Without it a kernel could
    neither report the MemoryError nor run the cell that frees something.
    """

    SIZE = 16 << 20

    def __init__(self):
        self._space = None
        self.fill()

    def fill(self):
        if self._space is None:
            try:
                self._space = mmap.mmap(-1, self.SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            except (OSError, MemoryError):
                pass  # there is none to reserve now; tried again after the next run

    def release(self):
        if self._space is not None:
            self._space.close()
            self._space = None


class _Environment:
    """Environment variables that hold for one run."""

    def __init__(self):
        self._saved = {}

    def set(self, variables):
        """Sets variables. Raises when one has a name or value that none can have."""
        for name, value in variables.items():
            before = os.environ.get(name)
            os.environ[name] = value
            self._saved[name] = before

    def restore(self):
        for name, value in self._saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
