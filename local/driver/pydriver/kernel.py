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

"""A kernel: the process that runs the cells of one context."""

import errno
import json
import os
import signal
import sys
import time
import types
from _thread import get_ident, start_new_thread

from . import channel, hooks, shell, spawning, system

COMMAND_CHUNK = 1 << 16
RECURSION = 3000  # calls within calls; what IPython comes with allows that
MAX_FAILURES = 100  # exceptions in the kernel's own calls before it gives up
VOLLEY = 0.5  # seconds in which several SIGINT are one interrupt
AGAIN = 0.01  # seconds after which an interrupt is repeated that came where it had no effect

_set_handler, _sleep = signal.signal, time.sleep  # cells may replace those of the modules


def prepare(preload):
    """Imports, before the first fork, what kernels need. Returns failures."""
    import importlib
    import linecache

    from . import figures, ipython, standard

    standard.install()

    # Python 3.13 keeps the text of -c under the name that exec() gives to code.
    linecache.cache.pop("<string>", None)
    ipython.install()
    figures.install()
    failures = {}
    for name in preload:
        try:
            importlib.import_module(name)
        except BaseException as err:
            failures[name] = "%s: %s" % (type(err).__name__, err)
    return failures


class Ends:
    """A kernel's ends of the pipes between it and its supervisor."""

    def __init__(self, commands, answers, events, out, err):
        self.commands, self.answers, self.events = commands, answers, events
        self.out, self.err = out, err


def main(ends, inherited, cwd):
    """Runs a kernel in a forked process. It does not return."""
    try:
        _become_kernel(ends.out, ends.err, inherited)
        link = channel.Channel(ends.events, ends.answers)
        interrupts = Interrupts()
        link.guard = interrupts
        sys.stdout = sys.__stdout__ = channel.TextStream(link, "stdout")
        sys.stderr = sys.__stderr__ = channel.TextStream(link, "stderr")
        sys.stdin = sys.__stdin__ = open(0, closefd=False)
        try:
            os.chdir(cwd)
        except OSError:
            os.chdir("/")
        interpreter = shell.Shell(link, interrupts, _main_module())
        hooks.after_import("threading", interpreter.adopt_threads)
        hooks.after_import("getpass", shell.adopt_getpass)
        spawning.announce(link.sync)
        _serve(ends.commands, link, interrupts, interpreter)
    finally:
        # Whatever happened, nobody but the user could see it here; the
        # supervisor sees that the kernel is gone and reports that.
        os._exit(71)


def _become_kernel(out, err, inherited):
    os.setsid()
    sys.setrecursionlimit(RECURSION)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    system.die_with_parent()
    system.show_process()
    os.dup2(out, 1)
    os.dup2(err, 2)
    for fd in (out, err, *inherited):
        os.close(fd)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        # Every fork has the state of the parent's generator.
        numpy.random.seed()


def _main_module():
    """Makes the module whose namespace the cells share."""
    module = types.ModuleType("__main__", "Automatically created module for the sandbox")
    sys.modules["__main__"] = module
    sys.argv = [""]
    if "" not in sys.path:
        sys.path.insert(0, "")
    return module


class Interrupts:
    """Lets SIGINT reach the user's code, and nothing else of the kernel."""

    def __init__(self):
        self.active = False  # whether the user's code is running
        self._main = get_ident()
        self._depth = 0
        self._pending = False
        self._early = False
        self._seen = None
        self._run = 0
        self.arm()
        sys.unraisablehook = self._repeating(sys.unraisablehook)

    def arm(self):
        """Prepares for a run: takes SIGINT, also from code that has taken it."""
        self._run += 1
        self._early, self._seen = False, None
        _set_handler(signal.SIGINT, self._handle)

    def _handle(self, number, frame):
        now = time.monotonic()
        if self._seen is not None and now - self._seen < VOLLEY:
            return
        self._seen = now
        if not self.active:
            self._early = True
            return
        if self._depth:
            self._pending = True
            return
        raise KeyboardInterrupt

    def _repeating(self, hook):
        """A hook that has an interrupt repeated which came within a finalizer or the like.

        Python goes on after an exception there. Since 3.13 each import is such a place.
        """

        def unraisable(args):
            if args.exc_type is KeyboardInterrupt and self.active and self._seen is not None:
                try:
                    start_new_thread(self._repeat, (self._run,))
                    return
                except RuntimeError:  # there can be no more threads
                    pass
            hook(args)

        return unraisable

    def _repeat(self, run):
        _sleep(AGAIN)
        if self.active and run == self._run:
            self._seen = None
            os.kill(os.getpid(), signal.SIGINT)

    def begin(self):
        """Makes up for a SIGINT that came before the user's code began."""
        if self._early:
            raise KeyboardInterrupt

    def __enter__(self):
        if get_ident() == self._main:
            self._depth += 1

    def __exit__(self, *exc):
        if get_ident() != self._main:
            return False
        self._depth -= 1
        if self._pending and not self._depth:
            self._pending = False
            if self.active:
                raise KeyboardInterrupt
        return False


def _serve(commands, link, interrupts, interpreter):
    """Runs cells as they come, until there are no more."""
    reader = _Reader(commands, interpreter.loop)
    while True:
        command = reader.next()
        if command is None:
            return
        try:
            status = interpreter.run(command)
        except BaseException as error:
            # Of a signal handler of the user's, outside the user's code, or of what
            # the user has put in the place of something that the kernel needs.
            status = 1
            if not link.in_child and not _insist(interpreter.report_safely, error):
                return
        if link.in_child:
            _end_child(status)
        if not _insist(link.event, {"type": "end", "serial": command["serial"]}):
            return


def _insist(report, what):
    """Reports something of a run, whatever the user's signal handlers raise.

    Returns whether it could. Code that has broken what the kernel is made of costs
    its context the kernel, instead of letting the run never end.
    """
    failures = 0
    while failures < MAX_FAILURES:
        try:
            report(what)
            return True
        except BaseException:
            failures += 1
    return False


class _Reader:
    """Reads commands, whatever the user's signal handlers and tasks raise."""

    def __init__(self, fd, loop):
        self._fd = fd
        self._loop = loop

    def next(self):
        """Returns the next command, or None when there are no more."""
        buffer = bytearray()
        failures = 0
        while failures < MAX_FAILURES:
            try:
                data = self._loop.read(self._fd, COMMAND_CHUNK)
            except BaseException as error:
                if isinstance(error, OSError) and error.errno == errno.EBADF:
                    return None
                failures += 1
                continue
            if not data:
                return None
            buffer += data
            if data.endswith(b"\n"):
                return json.loads(bytes(buffer))
        return None


def _end_child(status):
    """Ends a child that a cell forked and let run on, as Python would."""
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()
    os._exit(status)
