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

"""Laying out text in lines, after the algorithm of Derek Oppen.

Text comes in nested groups with separators between. A group that fits on the
line stays on it; of one that does not, every separator becomes a line end,
those of the outermost group first.
"""


class _Group:
    def __init__(self, depth):
        self.depth = depth
        self.broken = False
        self.breaks = 0  # breakables that are still undecided


class Layout:
    """Lays out text with groups that are broken, outer ones first, to fit."""

    def __init__(self, width, max_seq_length):
        self.max_width = width
        self.max_seq_length = max_seq_length
        self.verbose = False
        self.indentation = 0
        self.stack = []
        self._output = []
        self._column = 0
        self._pending = []  # (text, width, None | group, indentation), undecided
        self._start = 0  # index of the first pending item
        self._pending_width = 0
        self._groups = [_Group(0)]
        self._waiting = [[self._groups[0]]]  # by depth: groups that may break

    def getvalue(self):
        """Returns everything that was printed."""
        while self._start < len(self._pending):
            self._settle()
        return "".join(self._output)

    def text(self, text):
        """Adds text that is never broken."""
        width = len(text)
        if self._start < len(self._pending):
            self._pending.append((text, width, None, 0))
            self._pending_width += width
            self._fit()
        else:
            self._output.append(text)
            self._column += width

    def breakable(self, sep=" "):
        """Adds a separator at which the group may be broken."""
        group = self._groups[-1]
        if group.broken:
            self._flush()
            self._newline(self.indentation)
            return
        self._pending.append((sep, len(sep), group, self.indentation))
        group.breaks += 1
        self._pending_width += len(sep)
        self._fit()

    def break_(self):
        """Adds a line end, for which the outermost undecided group is broken, too."""
        self._break_outermost()
        self._flush()
        self._newline(self.indentation)

    def begin_group(self, indent=0, open=""):
        """Starts a group: its separators are all broken or none."""
        if open:
            self.text(open)
        group = _Group(self._groups[-1].depth + 1)
        self._groups.append(group)
        while len(self._waiting) <= group.depth:
            self._waiting.append([])
        self._waiting[group.depth].append(group)
        self.indentation += indent

    def end_group(self, dedent=0, close=""):
        """Ends the group."""
        self.indentation -= dedent
        group = self._groups.pop()
        if not group.breaks:
            self._forget(group)
        if close:
            self.text(close)

    def group(self, indent=0, open="", close=""):
        """A context manager for begin_group and end_group."""
        return _GroupScope(self, indent, open, close)

    def indent(self, indent):
        """A context manager that indents what is printed inside it."""
        return _IndentScope(self, indent)

    def items(self, values):
        """Numbers the values, and ends them with dots when there are many."""
        for index, value in enumerate(values):
            if self.max_seq_length and index >= self.max_seq_length:
                self.text(",")
                self.breakable()
                self.text("...")
                return
            yield index, value

    def _fit(self):
        while self.max_width < self._column + self._pending_width:
            if not self._break_outermost():
                return

    def _break_outermost(self):
        """Breaks the outermost undecided group. Returns whether there is one."""
        group = self._outermost()
        if group is None:
            return False
        group.broken = True
        while group.breaks:
            self._settle()
        while self._start < len(self._pending) and self._pending[self._start][2] is None:
            self._settle()
        return True

    def _outermost(self):
        for groups in self._waiting:
            for group in reversed(groups):
                if group.breaks:
                    groups.remove(group)
                    return group
            for group in groups:
                group.broken = True
            groups.clear()
        return None

    def _settle(self):
        """Moves the first pending item to the output."""
        text, width, group, indentation = self._pending[self._start]
        self._start += 1
        if self._start == len(self._pending):
            self._pending.clear()
            self._start = 0
        self._pending_width -= width
        if group is not None:
            group.breaks -= 1
            if group.broken:
                self._newline(indentation)
                return
            if not group.breaks:
                self._forget(group)
        self._output.append(text)
        self._column += width

    def _forget(self, group):
        try:
            self._waiting[group.depth].remove(group)
        except ValueError:
            pass

    def _flush(self):
        while self._start < len(self._pending):
            self._settle()

    def _newline(self, indentation):
        self._output.append("\n" + " " * indentation)
        self._column = indentation


class _GroupScope:
    def __init__(self, printer, indent, open, close):
        self._printer, self._indent, self._open, self._close = printer, indent, open, close

    def __enter__(self):
        self._printer.begin_group(self._indent, self._open)

    def __exit__(self, *exc):
        self._printer.end_group(self._indent, self._close)


class _IndentScope:
    def __init__(self, printer, indent):
        self._printer, self._indent = printer, indent

    def __enter__(self):
        self._printer.indentation += self._indent

    def __exit__(self, *exc):
        self._printer.indentation -= self._indent
