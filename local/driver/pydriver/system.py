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

"""Calls of the system that the standard library does not wrap."""

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_SIGKILL = 9


def hide_process():
    """Keeps other processes of the same user out of this one's /proc entry."""
    _prctl(_PR_SET_DUMPABLE, 0)


def show_process():
    """Undoes hide_process, which a fork inherits."""
    _prctl(_PR_SET_DUMPABLE, 1)


def die_with_parent():
    """Asks the system to end this process when its parent ends."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def _prctl(option, argument):
    # The ctypes package costs milliseconds and a megabyte in every sandbox;
    # its core does for a call with two integers. Without it the sandbox's own
    # walls still stand: these calls only add to them.
    try:
        import _ctypes

        address = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")
        _ctypes.call_function(address, (option, argument, 0, 0, 0))
    except (ImportError, AttributeError, OSError):
        pass
