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

"""Keeping the output of code from the output of its cell."""

import io
import sys

from . import display


class Captured:
    """What was captured: text, and displayed bundles."""

    def __init__(self, stdout="", stderr="", outputs=()):
        self.stdout, self.stderr, self.outputs = stdout, stderr, list(outputs)

    def show(self):
        """Puts everything into the output of the cell after all."""
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)
        for bundle in self.outputs:
            display.shell.publish(bundle, False)

    __call__ = show

    def __str__(self):
        return self.stdout


class Capture:
    """A context manager that gives a Captured."""

    def __init__(self, stdout=True, stderr=True, display=True):
        self._wanted = stdout, stderr, display

    def __enter__(self):
        self._captured = Captured()
        self._saved = sys.stdout, sys.stderr, display.shell.outputs
        self._out, self._err = io.StringIO(), io.StringIO()
        if self._wanted[0]:
            sys.stdout = self._out
        if self._wanted[1]:
            sys.stderr = self._err
        if self._wanted[2]:
            display.shell.outputs = self._captured.outputs
        return self._captured

    def __exit__(self, *exc):
        sys.stdout, sys.stderr, display.shell.outputs = self._saved
        self._captured.stdout = self._out.getvalue()
        self._captured.stderr = self._err.getvalue()
        return False
