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

"""Running programs for a cell: !command, %%bash, and language bash."""

import os
import subprocess
import sys

from . import channel

SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")
GRACE = 0.5  # seconds an interrupted program has to end by itself


class Lines(list):
    """The output of a command: a list of lines with IPython's short names."""

    @property
    def l(self):
        return list(self)

    list = l

    @property
    def n(self):
        return "\n".join(self)

    nlstr = n

    @property
    def s(self):
        return " ".join(self)

    spstr = s

    def grep(self, pattern, prune=False, field=None):
        """Returns the lines that match, or with prune those that do not."""
        import re

        found = pattern if callable(pattern) else re.compile(pattern, re.I).search
        return Lines(line for line in self if bool(found(line)) != prune)

    def fields(self, *numbers):
        """Returns columns of the lines, split at white space."""
        rows = [line.split() for line in self]
        if not numbers:
            return rows
        return Lines(" ".join(row[n] for n in numbers if -len(row) <= n < len(row)) for row in rows)


def shell_path():
    """The shell that commands run in."""
    return next((path for path in SHELLS if os.path.exists(path)), "/bin/sh")


def run(arguments, text=None, files=()):
    """Runs a program whose output is the cell's. Returns its exit status.

    text is the program's standard input; None means none. files are descriptors
    that it gets beside the standard ones. A string is a command for the shell, whose
    errors come among its output, in their order.
    """
    errors = None
    if isinstance(arguments, str):
        arguments = [shell_path(), "-c", arguments]
        errors = subprocess.STDOUT
    direct = all(isinstance(s, channel.TextStream) for s in (sys.stdout, sys.stderr))
    # Captured descriptors take the output, unless the cell has put something
    # else in the place of sys.stdout: then it goes there.
    pipe = None if direct else subprocess.PIPE
    stdin = subprocess.DEVNULL if text is None else subprocess.PIPE
    process = subprocess.Popen(
        arguments, stdin=stdin, stdout=pipe, stderr=errors or pipe, pass_fds=files
    )
    try:
        data = None if text is None else text.encode("utf-8", "replace")
        out, err = process.communicate(data)
    except BaseException:
        _end(process)
        raise
    if pipe is not None:
        sys.stdout.write(out.decode("utf-8", "replace"))
        if err is not None:
            sys.stderr.write(err.decode("utf-8", "replace"))
    return process.returncode


def output(command):
    """Runs a command and returns the lines of its output."""
    done = subprocess.Popen(
        [shell_path(), "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        out, _ = done.communicate()
    except BaseException:
        _end(done)
        raise
    return Lines(out.decode("utf-8", "replace").splitlines())


def script(program, text):
    """Runs a script; raises CalledProcessError when it fails."""
    _check(run(program, text), " ".join(program))


def program(arguments, name, files):
    """Runs a program with files; raises CalledProcessError when it fails."""
    _check(run(arguments, files=files), name)


def _check(status, name):
    if status:
        raise subprocess.CalledProcessError(status, name)


def _end(process):
    try:
        process.wait(GRACE)
    except BaseException:
        process.kill()
        process.wait()
