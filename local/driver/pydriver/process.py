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

"""Kernel processes as the supervisor sees them."""

import errno
import json
import os
import signal

from . import kernel, relay

CHUNK = 1 << 16  # bytes read at once
DRAIN_LIMIT = 1 << 20  # bytes taken at once of what nobody needs to wait for


class Process:
    """A kernel process and the supervisor's ends of its pipes."""

    def __init__(self, supervisor, context):
        pipes = []
        try:
            for _ in range(5):
                pipes.append(os.pipe2(os.O_CLOEXEC))
            self.pid = os.fork()
        except OSError:
            for pair in pipes:
                os.close(pair[0])
                os.close(pair[1])
            raise
        (commands, command_write), (answers, answer_write), *outputs = pipes
        channel, out, err = (pair[0] for pair in outputs)
        if self.pid == 0:
            try:
                inherited = [command_write, answer_write, channel, out, err]
                inherited.extend(supervisor.descriptors())
                ends = kernel.Ends(commands, answers, *(pair[1] for pair in outputs))
                kernel.main(ends, inherited, context.cwd)
            finally:
                os._exit(71)  # in no case a second supervisor
        for fd in (commands, answers, *(pair[1] for pair in outputs)):
            os.close(fd)
        for fd in (command_write, answer_write, channel, out, err):
            os.set_blocking(fd, False)
        self.commands = command_write
        self.answers = answer_write
        self.channel = channel
        self.sources = {channel: 0, out: 1, err: 2}
        self.pending = bytearray()
        self._alive = True
        self.used = False  # whether it was given anything to do
        self.relay = relay.Relay(
            lambda event: supervisor.deliver(context, event),
            lambda serial: supervisor.run_ended(context, self, serial),
            self._answer,
        )

    def _answer(self):
        try:
            os.write(self.answers, b".")
        except OSError:
            pass  # nobody waits: it has ended, or asks without reading

    def descriptors(self):
        """The supervisor's ends of the kernel's pipes."""
        return (self.commands, self.answers, *self.sources)

    def send(self, command):
        """Gives the kernel a command."""
        self.used = True
        self.pending += json.dumps(command, separators=(",", ":")).encode("ascii")
        self.pending += b"\n"
        self.write()

    def write(self):
        """Writes as much of the commands as the kernel takes."""
        while self.pending:
            try:
                written = os.write(self.commands, self.pending)
            except BlockingIOError:
                return
            except OSError:
                self.pending.clear()
                self.kill()
                return
            del self.pending[:written]

    def take_output(self):
        """Takes what is waiting in the captured descriptors, up to a limit."""
        taken = 0
        for fd, number in list(self.sources.items()):
            while number and taken < DRAIN_LIMIT and (data := read(fd)):
                taken += len(data)
                self.relay.raw(number, data)

    def hear_out(self):
        """Takes the last words of a kernel that has ended."""
        self.take_output()
        taken = 0
        try:
            while taken < DRAIN_LIMIT and (data := read(self.channel)):
                taken += len(data)
                self.relay.feed(data)
        except (relay.LineTooLong, MemoryError):
            pass
        self.relay.flush()

    def signal(self, number):
        """Signals the kernel and the programs it runs, as a terminal does."""
        if self._alive:
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                os.kill(self.pid, number)  # it has not made its group yet

    def exited(self):
        """Whether the kernel has come to its end."""
        if self._alive:
            try:
                self._alive = os.waitpid(self.pid, os.WNOHANG)[0] == 0
            except ChildProcessError:
                self._alive = False
            if not self._alive:
                self._kill_group()
        return not self._alive

    def kill(self):
        """Ends the kernel and its process group, and waits for it."""
        if not self._alive:
            return
        self._kill_group()
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        self._alive = False

    def _kill_group(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


def read(fd):
    """Returns bytes, b"" at the end, None when there is nothing to read."""
    try:
        return os.read(fd, CHUNK)
    except BlockingIOError:
        return None
    except OSError as err:
        if err.errno == errno.EBADF:
            raise
        return b""


def drain(fd):
    while read(fd):
        pass
