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

"""The event loop behind top-level await.

It is made when a cell first needs it. From then on the kernel waits for its
commands inside it, so that tasks go on between cells as in a notebook.
"""

import os
import sys


class Loop:
    """The kernel's asyncio loop, if there is one yet."""

    def __init__(self):
        self._loop = None

    def read(self, fd, size):
        """Reads from fd; the tasks of earlier cells go on while it waits."""
        if not self._has_tasks():
            return os.read(fd, size)
        import asyncio

        ready = self._loop.create_future()
        self._loop.add_reader(fd, lambda: ready.done() or ready.set_result(None))
        try:
            self._enter(asyncio)
            self._loop.run_until_complete(ready)
        finally:
            self._loop.remove_reader(fd)
        return os.read(fd, size)

    def _has_tasks(self):
        if self._loop is None or self._loop.is_closed():
            return False
        import asyncio

        waiting = (getattr(self._loop, name, None) for name in ("_ready", "_scheduled"))
        return bool(asyncio.all_tasks(self._loop)) or any(waiting)

    def run(self, function, *arguments):
        """Runs a coroutine function to its end and returns its value."""
        coroutine = task = context = None
        try:
            import asyncio
            import contextvars

            self._open(asyncio)
            coroutine = function(*arguments)
            context = contextvars.copy_context()
            options = {"context": context} if sys.version_info >= (3, 11) else {}
            task = self._loop.create_task(coroutine, **options)
            return self._loop.run_until_complete(task)
        except KeyboardInterrupt:
            if task is not None:
                self._cancel(task)
            raise
        finally:
            _adopt(context)
            if coroutine is not None:
                coroutine.close()  # one that was interrupted before its start

    def offer(self):
        """Has code that asks for the current loop find one.

        asyncio.run() in an earlier cell leaves none, and since Python 3.14 there
        is none to begin with.
        """
        import asyncio

        # get_event_loop() would warn of what it does not find.
        get = getattr(asyncio.events, "_get_event_loop_policy", None) or asyncio.get_event_loop_policy
        current = getattr(getattr(get(), "_local", None), "_loop", None)
        if current is None or current.is_closed():
            self._open(asyncio)

    def _open(self, asyncio):
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        self._enter(asyncio)

    def _cancel(self, task):
        """Gives an interrupted task the chance to clean up."""
        task.cancel()
        try:
            self._loop.run_until_complete(task)
        except BaseException:
            # Its answer to the cancellation; the interrupt is what is reported.
            pass

    def _enter(self, asyncio):
        # asyncio.run() in a cell leaves its thread without a current loop.
        asyncio.set_event_loop(self._loop)


def _adopt(context):
    """Gives the cells that follow the values of a task's context variables."""
    for variable, value in context.items() if context else ():
        if variable.get(None) is not value:
            variable.set(value)
