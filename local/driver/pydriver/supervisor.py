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

"""The process the gateway starts: a fork server for kernels.

It reads commands on descriptor 0 and writes events on descriptor 1, both
JSON lines (the Go package's documentation lists them). One kernel process is
forked per context, so a context starts in about a millisecond, shares the
pages of what was imported before, and can die without taking anything along.
Nothing here blocks but poll(): a reader that does not read stops the kernels,
not the commands.
"""

import gc
import json
import os
import select
import signal
import sys
import time

from . import kernel, process, relay, system
from .context import Context

OUT_LIMIT = 1 << 18  # bytes waiting for the reader before kernels must wait
HELD_LIMIT = 1 << 20  # about the bytes that wait for a run to begin
REPEAT = (0.025, 0.075, 0.175, 0.4)  # seconds after which an interrupt is sent again
LINE_LIMIT = 16 << 20  # bytes of one event
COMMAND_LIMIT = 64 << 20  # bytes of one command

_encode_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

_RESTARTED = {
    "type": "error",
    "name": "ContextRestarting",
    "value": "Context was restarted",
    "traceback": "",
}


def main():
    """Runs the supervisor until its input ends."""
    commands, events = _take_over_descriptors()
    # Interrupts come as commands; a terminal's is for the gateway, which ends
    # its sandboxes in its own order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        Supervisor(commands, events).run()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def _take_over_descriptors():
    """Moves the protocol away from 0 and 1, where user code would meet it."""
    import fcntl

    commands = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 200)
    events = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 200)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.closerange(3, 200)
    os.closerange(max(commands, events) + 1, 1024)
    os.set_blocking(commands, False)
    os.set_blocking(events, False)
    return commands, events


class Supervisor:
    """The event loop and everything it watches."""

    def __init__(self, commands, events):
        self._commands = commands
        self._events = events
        self._input = bytearray()
        self._output = bytearray()
        self._contexts = {}
        self._sources = {}  # descriptor -> (context, kernel process)
        self._poll = select.poll()
        self._interest = {}
        self._home = None
        self._wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake_write = wake
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _nothing)
        self._done = False

    def run(self):
        """Serves until end of input."""
        while not self._done:
            self._watch()
            for fd, _ in self._wait():
                self._ready(fd)
            self._deliver_due()
            self._write()
        for context in self._contexts.values():
            self._end_kernel(context)

    # What the loop waits for.

    def _watch(self):
        """Brings the poll set in line with what can be dealt with now."""
        wanted = {self._commands: select.POLLIN, self._wake: select.POLLIN}
        if self._output:
            wanted[self._events] = select.POLLOUT
        room = len(self._output) < OUT_LIMIT
        for context in self._contexts.values():
            child = context.kernel
            if child is None:
                continue
            if child.pending:
                wanted[child.commands] = select.POLLOUT
            if room and (context.run is not None or context.held_size < relay.TEXT_LIMIT):
                for fd in child.sources:
                    wanted[fd] = select.POLLIN
        if wanted == self._interest:
            return
        for fd in self._interest.keys() - wanted.keys():
            self._poll.unregister(fd)
        for fd, mask in wanted.items():
            if self._interest.get(fd) != mask:
                self._poll.register(fd, mask)
        self._interest = wanted

    def _wait(self):
        deadlines = []
        for context in self._contexts.values():
            if context.kernel:
                deadlines.extend(context.repeats[:1])
                if due := context.kernel.relay.deadline():
                    deadlines.append(due)
        if not deadlines:
            return self._poll.poll()
        return self._poll.poll(max(0.0, min(deadlines) - time.monotonic()) * 1000 + 0.5)

    def _ready(self, fd):
        if fd == self._commands:
            self._read_commands()
        elif fd == self._wake:
            process.drain(fd)
            self._reap()
        elif fd in self._sources:
            self._read_kernel(fd)
        elif fd != self._events:
            self._feed_kernel(fd)

    def _deliver_due(self):
        now = time.monotonic()
        for context in self._contexts.values():
            if context.kernel is None:
                continue
            deadline = context.kernel.relay.deadline()
            if deadline and deadline <= now:
                context.kernel.relay.flush()
            if context.repeats and context.repeats[0] <= now:
                context.repeats = context.repeats[1:]
                context.kernel.signal(signal.SIGINT)

    # The gateway's side.

    def _read_commands(self):
        data = process.read(self._commands)
        if data is None:
            return
        if not data:
            self._done = True
            return
        self._input += data
        if len(self._input) > COMMAND_LIMIT:
            self._done = True
            return
        if b"\n" not in data:
            return
        *lines, rest = bytes(self._input).split(b"\n")
        self._input = bytearray(rest)
        for line in lines:
            try:
                command = json.loads(line)
                handler = getattr(self, "_do_" + command["op"])
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
            handler(command)

    def _send(self, event):
        try:
            line = _encode_json(event).encode("ascii")
        except (ValueError, RecursionError, MemoryError):
            return  # a kernel that is honest sends no infinity and nests no deeper
        if len(line) < LINE_LIMIT:  # a kernel that is honest sends no longer ones
            self._output += line
            self._output += b"\n"

    def _write(self):
        while self._output:
            try:
                written = os.write(self._events, self._output)
            except BlockingIOError:
                return
            except OSError:
                self._done = True  # nobody is left to talk to
                return
            del self._output[:written]

    def deliver(self, context, event):
        """Delivers an event of a kernel, or keeps it until it has a run."""
        begins = event["type"] == "number_of_executions"
        if context.run is None or not (begins or context.begun):
            context.held.append(event)
            context.held_size += len(event.get("text") or "") + 1024
            if context.run is not None and context.held_size > HELD_LIMIT:
                self._release(context)
            return
        self._tagged(context, event)
        if begins and not context.begun:
            context.begun = True
            self._release(context)
            if context.interrupt:
                self._interrupt(context)

    def _release(self, context):
        held, context.held, context.held_size = context.held, [], 0
        for event in held:
            self._tagged(context, event)

    def _tagged(self, context, event):
        self._send({"context": context.name, "run": context.run, **event})

    def _finish(self, context):
        """Ends the run in progress."""
        self._release(context)
        self._tagged(context, {"type": "end_of_execution"})
        context.run, context.begun, context.interrupt, context.repeats = None, False, False, ()

    # Commands.

    def _do_start(self, command):
        self._home = command.get("home") or os.environ.get("HOME") or "/"
        system.hide_process()
        failures = kernel.prepare(command.get("preload") or ())
        gc.collect()
        gc.freeze()
        ready = {"type": "ready", "python": "%d.%d.%d" % sys.version_info[:3]}
        if failures:
            ready["preload_errors"] = failures
        self._send(ready)

    def _do_create(self, command):
        name = command.get("context")
        language = command.get("language") or "python"
        cwd = command.get("cwd") or self._home
        problem = None
        if name in self._contexts:
            problem = "context %s exists already" % name
        elif language not in ("python", "bash"):
            problem = "language %r is not available: use python or bash" % language
        elif not os.path.isdir(cwd):
            problem = "cwd %r is not a directory" % cwd
        else:
            context = Context(name, language, cwd)
            problem = self._start_kernel(context)
        if problem:
            self._send({"type": "refused", "context": name, "message": problem})
            return
        self._contexts[name] = context
        self._send({"type": "created", "context": name})

    def _do_execute(self, command):
        name, run = command.get("context"), command.get("run")
        context = self._contexts.get(name)
        if context is None:
            self._refuse_run(name, run, "ContextNotFound", "Context %s not found" % name)
            return
        if context.run is not None:
            self._refuse_run(name, run, "ContextBusy", "Context %s is busy" % name)
            return
        context.run = run
        problem = None
        if context.kernel is None:
            problem = self._start_kernel(context)
        if context.lost:
            context.lost = False
            context.held.append(_RESTARTED)
            self._finish(context)
            return
        if problem:
            context.held.append(
                {"type": "error", "name": "ContextUnavailable", "value": problem, "traceback": ""}
            )
            self._finish(context)
            return
        context.serial += 1
        context.kernel.send(
            {
                "serial": context.serial,
                "code": command.get("code") or "",
                "language": command.get("language") or context.language,
                "env_vars": command.get("env_vars") or {},
                "sandbox_env_vars": command.get("sandbox_env_vars") or {},
            }
        )

    def _refuse_run(self, name, run, error, value):
        head = {"context": name, "run": run}
        self._send({**head, "type": "error", "name": error, "value": value, "traceback": ""})
        self._send({**head, "type": "end_of_execution"})

    def _do_interrupt(self, command):
        context = self._contexts.get(command.get("context"))
        if context is None or context.run is None or context.run != command.get("run"):
            return
        if context.begun:
            self._interrupt(context)
        else:
            context.interrupt = True

    def _interrupt(self, context):
        context.kernel.signal(signal.SIGINT)
        # Python misses a signal that comes just before it enters a call that
        # blocks. A kernel takes only the first one that it sees of a volley.
        now = time.monotonic()
        context.repeats = tuple(now + delay for delay in REPEAT)

    def _do_kill(self, command):
        context = self._contexts.get(command.get("context"))
        if context is not None:
            self._lose_kernel(context)

    def _do_restart(self, command):
        context = self._contexts.get(command.get("context"))
        if context is None:
            return
        context.cwd = self._home
        context.held, context.held_size = [], 0
        self._lose_kernel(context)
        context.lost = False
        self._send({"type": "restarted", "context": context.name})

    def _do_remove(self, command):
        context = self._contexts.get(command.get("context"))
        if context is None:
            return
        self._end_kernel(context)
        if context.run is not None:
            context.held.append(_RESTARTED)
            self._finish(context)
        del self._contexts[context.name]
        self._send({"type": "removed", "context": context.name})

    # Kernels.

    def _start_kernel(self, context):
        """Forks a kernel for the context. Returns what went wrong, if any."""
        try:
            context.kernel = child = process.Process(self, context)
        except OSError as err:
            return "cannot start a Python process: %s" % os.strerror(err.errno)
        for fd in child.sources:
            self._sources[fd] = (context, child)
        return None

    def descriptors(self):
        """Every descriptor of the supervisor, for a new kernel to close."""
        yield from (self._commands, self._events, self._wake, self._wake_write)
        for context in self._contexts.values():
            if context.kernel:
                yield from context.kernel.descriptors()

    def _end_kernel(self, context):
        child, context.kernel = context.kernel, None
        if child is None:
            return
        child.kill()
        for fd in child.descriptors():
            self._sources.pop(fd, None)
            if self._interest.pop(fd, None) is not None:
                self._poll.unregister(fd)
            os.close(fd)

    def _lose_kernel(self, context):
        """Ends the context's kernel, says so to the run, and starts a new one.

        One that ended before it had anything to do is followed by another one
        only when there is: that may end at once, too.
        """
        useless = context.kernel is not None and context.kernel.exited() and not context.kernel.used
        if context.kernel is not None:
            context.kernel.kill()
            context.kernel.hear_out()
        self._end_kernel(context)
        if context.run is not None:
            context.held.append(_RESTARTED)
            self._finish(context)
        else:
            context.lost = True
        if useless or self._start_kernel(context) is not None:
            context.kernel = None  # tried again at the next execute

    def _reap(self):
        for context in list(self._contexts.values()):
            if context.kernel is not None and context.kernel.exited():
                self._lose_kernel(context)

    def _read_kernel(self, fd):
        context, child = self._sources[fd]
        if context.kernel is not child:
            return
        if fd != child.channel:
            data = process.read(fd)
            if data:
                child.relay.raw(child.sources[fd], data)
            elif data is not None:
                self._forget(child, fd)
            return
        data = process.read(fd)
        if data is None:
            return
        if not data:
            self._lose_kernel(context)  # it lives on but has no voice
            return
        # What a program had written before the kernel said this comes first.
        child.take_output()
        try:
            child.relay.feed(data)
        except (relay.LineTooLong, MemoryError):
            self._lose_kernel(context)

    def _forget(self, child, fd):
        """Stops watching a captured descriptor that nobody can write to."""
        del child.sources[fd]
        del self._sources[fd]
        if self._interest.pop(fd, None) is not None:
            self._poll.unregister(fd)
        os.close(fd)

    def run_ended(self, context, child, serial):
        """Hears from a kernel that the run is over."""
        if context.kernel is not child or context.run is None or serial != context.serial:
            return
        child.take_output()
        child.relay.flush()
        self._finish(context)

    def _feed_kernel(self, fd):
        for context in self._contexts.values():
            if context.kernel is not None and context.kernel.commands == fd:
                context.kernel.write()
                return


def _nothing(number, frame):
    pass
