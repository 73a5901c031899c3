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

"""Magics for programs, files and the environment."""

import os
import shlex
import sys

from . import command, ipython
from .magics import LINE, cell_magic, line_magic, split


@line_magic("system", "sx", "!")
def system_line(shell, line):
    return command.output(line)


@cell_magic("system", "sx", "!")
def system_cell(shell, line, cell):
    return command.output(cell)


@line_magic("pip", "uv")
def pip(shell, line):
    status = command.run("%s -m %s %s" % (shlex.quote(sys.executable), shell.magic_name, line))
    if status == 0 and line.startswith("install"):
        print("Note: you may need to restart the kernel to use updated packages.")


@line_magic("conda", "mamba")
def conda(shell, line):
    if not os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        problem = "The python kernel does not appear to be a conda environment."
        raise ValueError(problem + "  Please use ``%pip install`` instead.")
    command.run([shell.magic_name, *split(line)])


def _alias(program):
    def run(shell, line):
        shell.namespace["_exit_code"] = command.run("%s %s" % (program, line))

    return run


for _name in ("cat", "cp", "ln", "man", "mkdir", "mv", "rm", "rmdir", "echo", "more", "less"):
    LINE[_name] = _alias(_name)
LINE["ls"] = _alias("ls -F")
LINE["ll"] = LINE["lf"] = _alias("ls -F -l")


@line_magic()
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


@line_magic()
def pwd(shell, line):
    return os.getcwd()


@line_magic()
def dhist(shell, line):
    print("Directory history (kept in _dh)")
    for index, path in enumerate(shell.directories):
        print("%d: %s" % (index, path))


@line_magic()
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


LINE["set_env"] = env


@cell_magic("writefile", "file")
def writefile(shell, line, cell):
    words = split(line)
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


@cell_magic("bash", "sh")
def shell_script(shell, line, cell):
    _script(shell, [command.shell_path()], line, cell)


@cell_magic("script")
def script(shell, line, cell):
    _script(shell, [], line, cell)


@cell_magic("python", "python3", "pypy")
def python(shell, line, cell):
    _script(shell, [sys.executable], line, cell)


@cell_magic("perl", "ruby")
def other(shell, line, cell):
    _script(shell, [shell.magic_name], line, cell)


def _script(shell, program, line, cell):
    """Gives a cell to a program, whose arguments are what the magic does not take."""
    from .capture import Capture

    names, checked, words = {}, True, iter(split(line))
    for word in words:
        option, equal, value = word.partition("=")
        if option in ("--out", "--err"):
            names["std" + option[2:]] = value if equal else next(words, "")
        elif word == "--no-raise-error":
            checked = False
        elif option in ("--bg", "--proc"):
            raise ipython.UsageError("%%%%%s: %s is not supported." % (shell.magic_name, option))
        else:
            program = [*program, word]
    if not program or not all(names.values()):
        raise ipython.UsageError("%%%%%s: expected one argument" % shell.magic_name)
    try:
        with Capture("stdout" in names, "stderr" in names, False) as captured:
            command.script(program, cell)
    except command.subprocess.CalledProcessError:
        if checked:
            raise
    finally:
        for stream, name in names.items():
            shell.namespace[name] = getattr(captured, stream)
