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

"""Functions that are called when a module has been imported."""

import sys

_functions = {}


def after_import(name, function):
    """Calls function with the module, now or as soon as it is imported."""
    module = sys.modules.get(name)
    if module is not None:
        function(module)
        return
    if not _functions:
        sys.meta_path.insert(0, _Finder)
    _functions[name] = function


class _Finder:
    """Lets modules be imported as usual and then calls their functions."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        function = _functions.get(name)
        if function is None:
            return None
        for finder in sys.meta_path:
            if finder is cls:
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader, function)
                return spec
        return None


class _Loader:
    """A loader that runs a function after the module's own code."""

    def __init__(self, loader, function):
        self._loader, self._function = loader, function

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        module.__loader__ = module.__spec__.loader = self._loader
        self._function(module)
