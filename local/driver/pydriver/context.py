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

"""A context of the sandbox, as its supervisor knows it."""


class Context:
    """A context: the kernel that serves it now, and the run in progress."""

    def __init__(self, name, language, cwd):
        self.name = name
        self.language = language
        self.cwd = cwd
        self.kernel = None
        self.run = None  # the gateway's name of the run in progress
        self.serial = 0  # the number of that run for the kernel
        self.begun = False
        self.interrupt = False  # asked for before the run had begun
        self.repeats = ()  # when the signal of an interrupt is sent again
        self.lost = False  # the kernel died between runs
        self.held = []  # events that wait for a run to belong to
        self.held_size = 0
