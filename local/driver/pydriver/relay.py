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

"""What the supervisor makes of a kernel's bytes: events in protocol order.

A Relay belongs to one kernel process. It takes the bytes of its channel and
of its captured descriptors, gathers text into events of a useful size, and
hands finished events on. It believes nothing: what does not parse is noise.
"""

import codecs
import json
import time

from . import channel

TEXT_LIMIT = 1 << 16  # characters of one text event; also of unread idle text
IDLE = 0.008  # seconds without more text after which it is delivered
MAX_WAIT = 0.05  # seconds after which text is delivered in any case
LINE_LIMIT = 2 * channel.LINE_LIMIT
DEPTH_LIMIT = 200  # of values in values; a kernel that is honest stays well below it

_RESULT_FIELDS = (
    "text",
    "html",
    "markdown",
    "svg",
    "png",
    "jpeg",
    "pdf",
    "latex",
    "json",
    "javascript",
    "data",
    "chart",
    "extra",
    "is_main_result",
)
_FIELDS = {
    "number_of_executions": ("execution_count",),
    "result": _RESULT_FIELDS,
    "error": ("name", "value", "traceback"),
}
# What the fields are made of; those of JSON may be anything.
_TYPES = dict.fromkeys(_RESULT_FIELDS + _FIELDS["error"], str)
_TYPES.update(dict.fromkeys(("json", "data", "chart"), object))
_TYPES.update(extra=dict, is_main_result=bool, execution_count=int)
_STREAMS = {b"o": "stdout", b"e": "stderr"}
_Decoder = codecs.getincrementaldecoder("utf-8")


class LineTooLong(Exception):
    """The kernel sent a line without an end; it must be ended itself."""


class Relay:
    """Turns one kernel's bytes into events."""

    def __init__(self, emit, ended, synced):
        self._emit = emit  # called with each event, a dict without context and run
        self._synced = synced  # called when the kernel waits for an answer
        self._ended = ended  # called with the serial number of a run that says it is over
        self._mode = None
        self._want_kind = False
        self._line = bytearray()
        self._decoders = {key: _Decoder("replace") for key in ("stdout", "stderr", 1, 2)}
        self._text = []
        self._size = 0
        self._stream = None
        self._first = self._last = 0.0

    def feed(self, data):
        """Takes bytes of the kernel's channel."""
        parts = data.split(channel.MARK)
        self._continue(parts[0])
        for part in parts[1:]:
            self._want_kind = True
            self._continue(part)

    def _continue(self, part):
        if self._want_kind:
            if not part:
                return
            self._want_kind = False
            kind, part = part[:1], part[1:]
            self._mode = kind
            self._line.clear()
            if kind == b"f":
                self.flush()
            elif kind == b"s":
                self._synced()
        if not part:
            return
        if self._mode in _STREAMS:
            stream = _STREAMS[self._mode]
            self.text(stream, self._decoders[stream].decode(part))
        elif self._mode == b"j":
            end = part.find(b"\n")
            self._line += part if end < 0 else part[:end]
            if len(self._line) > LINE_LIMIT:
                raise LineTooLong
            if end >= 0:
                self._mode = None
                self._parse()

    def _parse(self):
        try:
            event = json.loads(self._line)
            kind = event.pop("type")
            if kind == "end":
                self._ended(event["serial"])
                return
            event = {key: event[key] for key in _FIELDS[kind] if key in event}
            if not all(isinstance(event[key], _TYPES[key]) for key in event) or _is_deep(event):
                return
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError):
            return
        finally:
            self._line = bytearray()
        self.flush()
        self._emit({"type": kind, **event})

    def raw(self, fd, data):
        """Takes bytes that were written to the kernel's descriptor 1 or 2."""
        self.text("stdout" if fd == 1 else "stderr", self._decoders[fd].decode(data))

    def text(self, stream, text):
        """Gathers text; it becomes an event at the next flush."""
        if not text:
            return
        if stream != self._stream:
            self.flush()
            self._stream = stream
        now = time.monotonic()
        if not self._text:
            self._first = now
        self._last = now
        self._text.append(text)
        self._size += len(text)
        if self._size >= TEXT_LIMIT:
            self.flush()

    def deadline(self):
        """When the text gathered is due, on the monotonic clock; None: no text."""
        if not self._text:
            return None
        # print() writes the end of the line by itself: half a line waits for it.
        idle = IDLE if self._text[-1].endswith("\n") else MAX_WAIT
        return min(self._last + idle, self._first + MAX_WAIT)

    def flush(self):
        """Delivers the text gathered so far."""
        if not self._text:
            return
        text, stream = "".join(self._text), self._stream
        self._text, self._size = [], 0
        stamp = timestamp()
        for start in range(0, len(text), TEXT_LIMIT):
            piece = text[start : start + TEXT_LIMIT]
            self._emit({"type": stream, "text": piece, "timestamp": stamp})


def _is_deep(value):
    """Whether values lie deeper in others than readers of JSON bear."""
    level = [value]
    for _ in range(DEPTH_LIMIT):
        level = [item for value in level for item in _items(value)]
        if not level:
            return False
    return True


def _items(value):
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def timestamp():
    """The time in the form of the recorded events, in UTC."""
    now = time.time()
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    return "%s.%06d+00:00" % (seconds, int(now * 1e6) % 1000000)
