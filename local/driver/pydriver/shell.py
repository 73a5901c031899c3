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
import os

from . import cell as cells
from . import loop, results, tracebacks


class Shell:
    """Runs cells in one namespace and reports what comes of them."""

    def __init__(self, link, interrupts, module):
        self.link = link
        self.loop = loop.Loop()
        self.module = module
        self.namespace = module.__dict__
        self.count = 0
        self.cells = {}  # file name -> Cell, for tracebacks
        self._interrupts = interrupts
        self._flags = 0
        self.namespace["__builtins__"] = builtins

    def run(self, command):
        """Runs one cell. Returns the exit status of a child it forked."""
        environment = _Environment(command["env_vars"])
        error = self._guarded(self._run, command)
        if error is not None:
            failed = self._guarded(self._report, error)
            if failed is not None:
                self.link.event(_error_event(type(error).__name__, "", ""))
        environment.restore()
        return 0 if error is None else 1

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

    def _run(self, command):
        source = command["code"]
        if cells.is_blank(source):
            return
        self.count += 1
        self.link.event({"type": "number_of_executions", "execution_count": self.count})
        self._run_python(source)

    def _run_python(self, source):
        cell = cells.Cell(source, self.count)
        self.cells[cell.filename] = cell
        lines = source.splitlines(True)
        linecache.cache[cell.filename] = (len(source), None, lines, cell.filename)
        cell.compile(self._flags)
        self._flags = cell.flags
        shown, value = cell.run(self.namespace, self.loop)
        if shown and value is not None:
            self.link.event(results.event(results.bundle(value), True))

    def _report(self, error):
        compiling = isinstance(error, SyntaxError) and error.__traceback__ is not None
        name, value, traceback = tracebacks.report(error, self.cells, compiling)
        self.link.event(_error_event(name, value, traceback))


def _error_event(name, value, traceback):
    return {"type": "error", "name": name, "value": value, "traceback": traceback}


class _Environment:
    """Environment variables that hold for one run."""

    def __init__(self, variables):
        self._saved = {name: os.environ.get(name) for name in variables}
        for name, value in variables.items():
            os.environ[name] = value

    def restore(self):
        for name, value in self._saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
