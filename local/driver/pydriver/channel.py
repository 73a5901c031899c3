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

"""How a kernel talks to its supervisor, and the sys.stdout that does so.

The pipe carries UTF-8 text with control marks between. A mark is the byte
0xFF, which no UTF-8 text contains, and a letter: ``o`` and ``e`` say that the
text which follows is stdout or stderr, ``j`` that one line of JSON follows,
``f`` that the text so far is to be delivered now, ``s`` that the kernel waits
for a byte in answer. So text, the bulk of the
traffic, needs no parsing on either side, and a reader that finds rubbish is
in step again at the next mark.
"""

import io
import json
import os
from _thread import RLock, get_ident

MARK = b"\xff"
PIECE = 1 << 16  # bytes written at once: what is written stays interruptible
LINE_LIMIT = 8 << 20  # bytes of one event; the supervisor bears twice as much

_FDS = {"stdout": 1, "stderr": 2}
_MARKS = {"stdout": MARK + b"o", "stderr": MARK + b"e"}
_encode_json = json.JSONEncoder(separators=(",", ":")).encode


class Channel:
    """The kernel's end of the pipe. In forked children it has no events."""

    def __init__(self, fd, answers):
        self._fd = fd
        self._answers = answers
        self._lock = RLock()
        self._current = None
        self._main = get_ident()
        self._lines = {}  # (thread, stream) -> the start of a line, of threads other than the main one
        self.guard = _NoGuard()
        os.register_at_fork(after_in_child=self._become_child)

    @property
    def in_child(self):
        """Whether this process is a fork of the kernel, made by its code."""
        return self._fd < 0

    def _become_child(self):
        # A child of the user's code has a voice (the captured descriptors 1
        # and 2) but must never speak as the kernel.
        if self._fd >= 0:
            try:
                os.close(self._fd)
            except OSError:
                pass
        self._fd = -1
        self._lock = RLock()
        self._lines = {}

    def text(self, stream, text):
        """Sends text of "stdout" or "stderr".

        print() writes its arguments and the end of its line one by one. What a
        thread writes is sent line by line, or before the main one writes.
        """
        key = get_ident(), stream
        if key[0] == self._main:
            self.settle(True)
        elif self._fd >= 0:
            with self._lock:
                text = self._lines.pop(key, "") + text
                end = text.rfind("\n") + 1 if len(text) < PIECE else len(text)
                if end < len(text):
                    self._lines[key] = text[end:]
                    text = text[:end]
        if text:
            self._send_text(stream, text)

    def settle(self, all_threads=False):
        """Sends the starts of lines that the thread, or all, have written."""
        if not self._lines:
            return
        with self.guard, self._lock:
            keys = [key for key in self._lines if all_threads or key[0] == get_ident()]
            for key in keys:
                self._send_text(key[1], self._lines.pop(key))

    def _send_text(self, stream, text):
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError:
            data = scrub(text).encode("utf-8")
        if len(data) <= PIECE:
            self._text(stream, data)
            return
        view = memoryview(data)
        for start in range(0, len(data), PIECE):
            self._text(stream, view[start : start + PIECE])

    def _text(self, stream, data):
        if self._fd < 0:
            write_all(_FDS[stream], data)
            return
        with self._lock:
            if self._current != stream:
                data = b"".join((_MARKS[stream], data))
            self._current = None  # an interrupted write leaves it unknown
            self._write(data)
            self._current = stream

    def event(self, event):
        """Sends one event. It is whole or absent, also under an interrupt."""
        if self._fd < 0:
            return
        self.settle(event["type"] == "end")
        line = _encode_json(event).encode("ascii", "replace")
        if len(line) > LINE_LIMIT:
            raise ValueError("event of %d bytes is over the limit" % len(line))
        self._raw(b"".join((MARK, b"j", line, b"\n")))

    def flush(self):
        """Asks the supervisor to deliver the text so far as its own event."""
        if self._fd >= 0:
            self._raw(MARK + b"f")

    def sync(self):
        """Waits until the supervisor has everything that was sent so far.

        What a program says that is started now then comes after it, although
        it goes another way.
        """
        self.settle()
        if self._fd < 0:
            return
        self._raw(MARK + b"s")
        try:
            os.read(self._answers, 1)
        except OSError:
            os._exit(70)

    def _raw(self, data):
        with self.guard, self._lock:
            self._current = None
            self._write(data)

    def _write(self, data):
        try:
            write_all(self._fd, data)
        except OSError:
            # Without its channel a kernel is deaf and mute; its end is what
            # the supervisor can see and report.
            os._exit(70)


class _NoGuard:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


def write_all(fd, data):
    """Writes all of data to fd."""
    written = os.write(fd, data)
    if written < len(data):
        view = memoryview(data)
        while written < len(data):
            written += os.write(fd, view[written:])


def scrub(text):
    """Replaces what is no Unicode text (lone surrogates) by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class TextStream(io.TextIOBase):
    """What sys.stdout and sys.stderr are in a kernel."""

    encoding = "utf-8"
    errors = "replace"
    line_buffering = True
    write_through = True
    newlines = None
    mode = "w"

    def __init__(self, channel, name):
        self._channel = channel
        self._stream = name
        self.name = "<%s>" % name
        self.buffer = ByteStream(self)

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not %s" % type(text).__name__)
        if text:
            self._channel.text(self._stream, text)
        return len(text)

    def writelines(self, lines):
        self.write("".join(lines))

    def flush(self):
        self._channel.settle()

    def close(self):
        # Code that closes sys.stdout would silence every later cell.
        pass

    def fileno(self):
        return _FDS[self._stream]

    def isatty(self):
        return False

    def readable(self):
        return False

    def writable(self):
        return True

    def seekable(self):
        return False

    def reconfigure(self, **options):
        pass


class ByteStream(io.RawIOBase):
    """The bytes beneath a TextStream: sys.stdout.buffer."""

    mode = "wb"

    def __init__(self, text):
        self._text = text
        self._decoder = None
        self.name = text.name

    @property
    def raw(self):
        return self

    def write(self, data):
        data = bytes(data)
        if self._decoder is None:
            import codecs

            self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text.write(self._decoder.decode(data))
        return len(data)

    def flush(self):
        self._text.flush()

    def close(self):
        pass

    def fileno(self):
        return self._text.fileno()

    def isatty(self):
        return False

    def writable(self):
        return True
