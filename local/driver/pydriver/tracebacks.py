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

"""Tracebacks as a notebook prints them: the user's code, with its lines.

The format is IPython's without colours: frames under their ``Cell In[n]``
head with the statements around the current line. Frames of this program are
left out, those of installed libraries are kept to one line each.
"""

import linecache
import os
import sys

from . import ipython, sources

WIDTH = 75
BEFORE, AFTER = 2, 2  # statements shown around the current one
MAX_PIECE = 6  # lines of a statement that is not the current one
MAX_FRAMES = 50
MAX_CHAIN = 10
MAX_TEXT = 1 << 16
CAUSE = "\nThe above exception was the direct cause of the following exception:\n"
CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n"

_OWN = os.path.dirname((lambda: 0).__code__.co_filename) + os.sep
_NUMBERS = 7


def report(error, cells, current):
    """Returns name, value and traceback of an exception.

    current is the cell that ran, which decides whether a syntax error is its
    own; None when there is none.
    """
    name, value = _clip(type(error).__name__), text_of(error)
    try:
        if isinstance(error, SystemExit):
            note = "An exception has occurred, use %tb to see the full traceback.\n"
            return name, value, note + only(error) + "\n"
        if isinstance(error, ipython.UsageError):
            return name, value, only(error)
        if isinstance(error, SyntaxError) and current and error.filename == current.filename:
            if not _records(error.__traceback__):
                return name, value, syntax_error(error, cells)
        if not _records(error.__traceback__):
            return name, value, only(error)
        return name, value, _clip(_chain(error, cells))
    except Exception:
        # The user's objects take part in their own traceback.
        return name, value, only(error)


def printed(error, cells):
    """The traceback as text for a terminal's eyes."""
    try:
        return _clip(_chain(error, cells, "\n")) + "\n"
    except Exception:
        return only(error) + "\n"


def text_of(error):
    """str(error), whatever the exception's class does."""
    try:
        return _clip(str(error))
    except Exception:
        return "<unprintable %s object>" % type(error).__name__


def _clip(text):
    if len(text) <= MAX_TEXT:
        return text
    half = MAX_TEXT // 2
    return "%s\n[... %d characters ...]\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


def only(error):
    """The last lines of a traceback: the exception and its notes."""
    name, value = type(error).__name__, text_of(error)
    if isinstance(error, SystemExit) and not value:
        lines = [name]
    else:
        lines = ["%s: %s" % (name, value)]
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, (list, tuple)):
        lines.extend(str(note) for note in notes)
    return "\n".join(lines)


def syntax_error(error, cells, where=None):
    """The form of an error that was found while compiling."""
    filename, number = error.filename or "<unknown>", error.lineno or 0
    cell = cells.get(filename)
    if cell:
        where = "Cell In[%d], line %s" % (cell.count, number)
    elif where is None:
        where = "File %s:%s" % (filename, number)
    lines = ["  %s" % where]
    line = error.text
    if not line and number:
        line = linecache.getline(filename, number)
    if line:
        indent = len(line) - len(line.lstrip())
        lines.append("    %s" % line.strip())
        if error.offset is not None:
            before = line[indent : error.offset - 1]
            lines.append("    %s^" % "".join(c if c.isspace() else " " for c in before))
    lines.append("%s: %s" % (type(error).__name__, error.msg))
    return "\n".join(lines) + "\n"


def _chain(error, cells, separator=""):
    """The whole report: every exception of the chain, the first on top.

    The server joins IPython's parts without a separator.
    """
    parts, seen = [], set()
    before, after = BEFORE, AFTER
    while error is not None and len(parts) < 2 * MAX_CHAIN:
        seen.add(id(error))
        parts.append(_one(error, cells, before, after, separator))
        before = after = 1
        if error.__cause__ is not None:
            error, link = error.__cause__, CAUSE
        elif error.__context__ is not None and not error.__suppress_context__:
            error, link = error.__context__, CONTEXT
        else:
            break
        if id(error) in seen:
            break
        parts.append(link)
    if parts[-1] in (CAUSE, CONTEXT):
        parts.pop()
    return "-" * WIDTH + separator + "".join(reversed(parts))


def _one(error, cells, before, after, separator):
    """One exception: its head, its frames and its last line."""
    name = type(error).__name__
    head = name + "Traceback (most recent call last)".rjust(WIDTH - len(name))
    head += separator
    records = _from_user(_records(error.__traceback__), cells)
    frames = "".join(_frames(records, cells, before, after))
    if isinstance(error, SyntaxError) and error.filename:
        return "%s%s%s" % (head, frames, syntax_error(error, cells)[:-1])
    return "%s%s%s%s" % (head, frames, only(error), _group(error))


def _group(error):
    """What an exception group holds, one line each."""
    members = getattr(error, "exceptions", None)
    if not isinstance(members, (list, tuple)):
        return ""
    lines = []
    for member in members[:20]:
        if isinstance(member, BaseException):
            lines.extend("\n  | " + line for line in (only(member) + _group(member)).split("\n"))
    return "".join(lines)


def _records(traceback):
    """The frames that are not this program's, as [frame, line, times].

    What a recursion repeats is one record, and of very many the middle is
    left out, so that the deepest traceback takes no memory.
    """
    head, tail, last = [], [], None
    traceback = _beneath_magic(traceback)
    while traceback is not None:
        code = traceback.tb_frame.f_code
        filename = code.co_filename
        if not filename.startswith(_OWN) and not filename.startswith("<frozen "):
            key = (code, traceback.tb_lineno)
            if last is not None and key == last:
                (tail or head)[-1][2] += 1
            else:
                (head if len(head) < MAX_FRAMES else tail).append(
                    [traceback.tb_frame, traceback.tb_lineno, 1]
                )
                if len(tail) > 2 * MAX_FRAMES:
                    del tail[:MAX_FRAMES]
            last = key
        traceback = traceback.tb_next
    return head + tail


def _beneath_magic(traceback):
    """Leaves out the call of a cell magic, when the body that it ran failed."""
    outer = traceback
    while outer is not None and outer.tb_frame.f_code.co_filename.startswith(_OWN):
        outer = outer.tb_next
    if outer is None:
        return traceback
    inner = outer.tb_next
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_OWN):
        if inner.tb_frame.f_code.co_name == "run_cell_magic":
            beneath = inner
            while beneath is not None:
                if beneath.tb_frame.f_code.co_filename == outer.tb_frame.f_code.co_filename:
                    return beneath
                beneath = beneath.tb_next
        inner = inner.tb_next
    return traceback


def _from_user(records, cells):
    """Leaves out what lies between this program and the user's first frame."""
    for index, record in enumerate(records):
        filename = record[0].f_code.co_filename
        if filename in cells:
            return records[index:]
        if not _is_library(filename):
            break
    return records


def _frames(records, cells, before, after):
    """The text of each frame, with the repetitions of a recursion left out."""
    texts = []
    for frame, number, times in records:
        text = _frame(frame, number, cells, before, after)
        texts.append(text)
        if times > 4:
            texts.append(text)
            skipped = (_name(frame), number, times - 3)
            texts.append("    [... skipping similar frames: %s at line %d (%d times)]\n" % skipped)
            texts.append(text)
        else:
            texts.extend([text] * (times - 1))
    if len(texts) > MAX_FRAMES:
        half = MAX_FRAMES // 2
        texts[half:-half] = ["    [... skipping %d frames]\n" % (len(texts) - 2 * half)]
    return texts


def _name(frame):
    code = frame.f_code
    return getattr(code, "co_qualname", code.co_name)


def _frame(frame, number, cells, before, after):
    """The text of one frame."""
    filename = frame.f_code.co_filename
    cell = cells.get(filename)
    if cell:
        where = "Cell In[%d], line %d" % (cell.count, number)
    else:
        where = "File %s:%d" % (filename, number)
    name = _name(frame)
    if name != "<module>":
        where += ", in %s(%s)" % (name, _arguments(frame.f_code))
    if cell:
        lines = cell.source.splitlines()
    elif filename.startswith("<"):
        lines = []  # made up: what linecache may have under it is something else
    else:
        lines = linecache.getlines(filename, frame.f_globals)
    if not 0 < number <= len(lines):
        return where + "\n"
    if not cell and _is_library(filename):
        shown = [range(number, number + 1)]
    else:
        shown = sources.around(lines, number, before, after, cell or filename)
    return where + "\n" + "".join(_lines(lines, number, shown))


def _arguments(code):
    count = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames[: count + 2])
    positional, keyword = names[: code.co_argcount], names[code.co_argcount : count]
    extra = names[count:]
    for flag, stars in ((0x04, "*"), (0x08, "**")):
        if code.co_flags & flag and extra:
            keyword.append(stars + extra.pop(0))
    return ", ".join(positional + keyword)


def _is_library(filename):
    """Whether a file belongs to Python or to something installed."""
    if filename.startswith("<"):
        return True
    roots = {sys.prefix, sys.base_prefix, "/usr"}
    return "site-packages" in filename or any(filename.startswith(root + os.sep) for root in roots)


def _lines(lines, current, shown):
    """Renders pieces of the source, dedented, with an arrow at current."""
    numbers = [number for piece in shown for number in piece if number <= len(lines)]
    indents = [
        len(lines[n - 1]) - len(lines[n - 1].lstrip()) for n in numbers if lines[n - 1].strip()
    ]
    indent = min(indents, default=0)
    for piece in shown:
        piece = [number for number in piece if number <= len(lines)]
        gap = None
        if current not in piece and len(piece) > MAX_PIECE:
            right = (MAX_PIECE - 1) // 2
            left = MAX_PIECE - 1 - right
            piece = piece[:left] + [gap] + piece[-right:]
        for number in piece:
            if number is gap:
                yield "   (...)\n"
                continue
            label = str(number)
            pad = _NUMBERS - len(label)
            if number != current:
                label = " " * pad + label
            elif pad >= 2:
                label = "-" * (pad - 2) + "> " + label
            elif pad == 1:
                label = ">" + label
            yield "%s %s\n" % (label, lines[number - 1][indent:].rstrip("\r\n"))
