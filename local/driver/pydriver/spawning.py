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

"""Being told before code starts another program.

What a cell prints and what the programs say that it starts go different ways
to the supervisor. For the order to be right, the one must have arrived before
the other begins.
"""

import os

from . import hooks


def announce(function):
    """Calls function before code starts a program or forks."""
    os.register_at_fork(before=function)
    for name in ("system", "posix_spawn", "posix_spawnp"):
        setattr(os, name, _preceded(getattr(os, name), function))

    def adapt(subprocess):
        popen = subprocess.Popen
        popen._execute_child = _preceded(popen._execute_child, function)

    hooks.after_import("subprocess", adapt)


def _preceded(original, function):
    def call(*args, **kwargs):
        function()
        return original(*args, **kwargs)

    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(call, name, getattr(original, name, None))
    return call
