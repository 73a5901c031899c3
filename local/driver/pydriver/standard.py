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

"""Keeps files of the code from taking the place of the standard library.

A file beside the code hides a module of its name that has not been imported. Of
these the driver, and what it is made of, imports some only when they are needed;
a real notebook has long imported them all.
"""

import os
import sys
from importlib.machinery import PathFinder

_NAMES = frozenset(
    "ast asyncio base64 binascii bisect bz2 cProfile codecs concurrent contextvars copy dataclasses dis enum fnmatch hashlib heapq"
    " inspect linecache logging lzma mmap opcode pickle platform pprint profile pstats queue random resource select selectors shlex shutil"
    " signal socket ssl string struct subprocess tempfile textwrap threading timeit token tokenize traceback types typing"
    " uuid warnings weakref zlib".split()
)
_PLACES = [os.path.dirname(os.__file__), os.path.join(os.path.dirname(os.__file__), "lib-dynload")]


class _Finder:
    """Finds those modules in the standard library, and no others."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, _PLACES) if path is None and name in _NAMES else None


def install():
    sys.meta_path.insert(0, _Finder)
