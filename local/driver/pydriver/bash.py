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

"""Cells in bash, which keep their variables, functions and directory.

Each cell has a process of its own, so that an exit, an error or an interrupt costs
nothing. At its end bash writes down what it knows, as a script that the next
one reads first.
"""

import re
import shlex
import tempfile

from . import command

_WHOLE = b"\nset +nvx\n# whole\n"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# Saves what bash knows. Options come last: from then on "set -e" and the like hold.
# Those that would show or skip this script itself are not kept. A trap of the
# cell's own for its EXIT is put behind the one that saves.
_FUNCTIONS = r"""
__save() {{
  set -- "$?"
  {{
    printf "%s\n" "${{__once-}}"; unset -v __once {once}; unset -f __save trap
    declare -p; declare -f; alias -p; builtin trap - EXIT; builtin trap -p
    shopt -p; printf "cd -- %q\n" "$PWD"; set +o; printf "set +nvx\n# whole\n"
  }} >|{state} || :
  return "$1"
}}
trap() {{
  builtin trap "$@" || return
  [ "$BASH_SUBSHELL" = 0 ] || return 0
  set -- "$(builtin trap -p EXIT)"
  case $1 in *__save*) return 0;; esac
  eval "set -- $1"
  set -- "$(printf "if {{ __save; }} 2>/dev/null; then eval %q; else eval %q; fi" "${{3-}}" "${{3-}}")"
  builtin trap "$1" EXIT
}}
"""

# One line, so that bash's own messages name the lines of the cell. What cannot be
# set again, such as UID, complains to nobody.
_SCRIPT = (
    """unset -v {once}; . {state} 2>/dev/null; builtin trap '{{ __save; }} 2>/dev/null' EXIT; """
    """eval "$(<{cell})\""""
)

_state = b""  # this kernel's


def run(source, once):
    """Runs a cell. once are environment variables for it alone.

    Raises CalledProcessError when the cell fails.
    """
    global _state
    shell = command.shell_path()
    if not shell.endswith("bash"):
        command.script([shell], source)
        return
    with tempfile.TemporaryFile(dir="/tmp") as state, tempfile.TemporaryFile(dir="/tmp") as cell:
        names = [name for name in once if _NAME.match(name)]
        fields = {
            "state": "/dev/fd/%d" % state.fileno(),
            "cell": "/dev/fd/%d" % cell.fileno(),
            "once": " ".join(["__none__", *names]),
        }
        state.write(_FUNCTIONS.format(**fields).encode() + _state)
        if names:  # what they are otherwise
            state.write(("__once=$(declare -p %s 2>/dev/null) || :\n" % " ".join(names)).encode())
        for name in names:
            state.write(("export %s=%s\n" % (name, shlex.quote(once[name]))).encode("utf-8", "replace"))
        state.flush()
        cell.write(source.encode("utf-8", "replace"))
        cell.flush()
        script = _SCRIPT.format(**fields)
        try:
            command.program([shell, "-c", script, "bash"], "bash", (state.fileno(), cell.fileno()))
        finally:
            state.seek(0)
            left = state.read()
            if left.endswith(_WHOLE):  # else bash was killed, or its disk is full
                _state = left
