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

"""IPython's syntax (%magic, !command, name?) as Python.

A cell that Python parses is never touched. In others, each special line
becomes one line of Python, so that line numbers stay what they are.
"""

import re

from .cell import ONLY_AST

_INDENT = re.compile(r"[ \t]*")
_ASSIGN = re.compile(r"(?<![-+*/%@&|^<>=!:])=[ \t]*([%!])(?=[^=])")
_HELP_AFTER = re.compile(r"([A-Za-z_][\w.]*)(\?\??)[ \t]*$")
_HELP_BEFORE = re.compile(r"(\?\??)[ \t]*([A-Za-z_][\w.]*)[ \t]*$")
_BARE = re.compile(
    r"(pip|conda|cd|ls|ll|cat|mkdir|rmdir|rm|cp|mv|man|time|timeit|run|env|load_ext|matplotlib)"
    r"[ \t]+(?=[-\w./~'\"])(?!(?:in|is|and|or|not|if|else)\b)"
)
_PROMPT = re.compile(r"^(>>>|\.\.\.)( |$)")
_ALONE = re.compile("cd|ls|ll|pwd|who|whos")  # as the whole cell


def transform(source):
    """Returns the cell with its special lines replaced."""
    source = _unprompted(_dedent(source))
    stripped = source.lstrip()
    if stripped.startswith("%%"):
        return _cell_magic(source, stripped)
    if _ALONE.fullmatch(stripped.rstrip()):
        return "\n" * (len(source) - len(stripped)) + _magic(stripped.rstrip())
    out, scanner = [], _Scanner()
    single = "\n" not in source.strip()
    lines = source.split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if not scanner.at_start:
            scanner.feed(line)
            out.append(line)
            continue
        joined, extra = line, 0
        while joined.endswith("\\") and index + extra < len(lines):
            joined = joined[:-1] + lines[index + extra]
            extra += 1
        replaced = _line(joined, single)
        if replaced is None:
            scanner.feed(line)
            out.append(line)
        else:
            out.append(replaced)
            out.extend([""] * extra)
            index += extra
    return "\n".join(out)


def is_command(source):
    """Whether a cell of one line is a command without a mark, or might be one.

    What looks like a name and an operator is one when no space parts the operator
    from what follows: ``ls -l``, but not ``ls - l``.
    """
    line = source.strip()
    if _ALONE.fullmatch(line):
        return True
    return "\n" not in line and bool(_BARE.match(line)) and not line.split(None, 2)[1] in ("-", "/", ".")


def _dedent(source):
    """Takes away the indentation that the first line has."""
    lines = source.split("\n")
    indent = _INDENT.match(_first(lines)).group()
    if not indent:
        return source
    return "\n".join(line[len(indent) :] if line.startswith(indent) else line for line in lines)


def _unprompted(source):
    """Takes away the prompts of a session that was pasted."""
    lines = source.split("\n")
    if not _first(lines).startswith(">>>"):
        return source
    return "\n".join(_PROMPT.sub("", line) for line in lines)


def _first(lines):
    """The first line that is not blank, "" when there is none."""
    return next((line for line in lines if line.strip()), "")


def _cell_magic(source, stripped):
    before = source[: len(source) - len(stripped)]
    head, _, body = stripped.partition("\n")
    name, _, line = head[2:].partition(" ")
    if body and not body.endswith("\n"):
        body += "\n"
    call = "get_ipython().run_cell_magic(%r, %r, %r)" % (name.strip(), line.strip(), body)
    return "\n" * before.count("\n") + call


def _line(line, single):
    """The Python for one line, or None when it is no special one.

    In a cell of several lines, what Python understands is no bare command.
    """
    indent = _INDENT.match(line).group()
    rest = line[len(indent) :].rstrip()
    call = None
    if rest.startswith("!!"):
        call = "get_ipython().getoutput(%r)" % rest[2:].strip()
    elif rest.startswith("!"):
        call = "get_ipython().system(%r)" % rest[1:].strip()
    elif rest.startswith("%") and rest[1:2].isidentifier():
        call = _magic(rest[1:])
    elif "?" in rest:
        found = _HELP_BEFORE.fullmatch(rest)
        mark, name = found.groups() if found else (None, None)
        if not found:
            found = _HELP_AFTER.fullmatch(rest)
            name, mark = found.groups() if found else (None, None)
        if found:
            call = _magic("%s %s" % ("pinfo2" if mark == "??" else "pinfo", name))
    elif _BARE.match(rest) and (single or not _begins(rest)):
        call = _magic(rest)
    if call is not None:
        return indent + call
    assign = _ASSIGN.search(rest) and _Scanner().feed(rest)
    if not assign:
        return None
    target, text = rest[: assign.start()].rstrip(), rest[assign.end() :].strip()
    if not _parses(target + "=0"):
        return None
    if assign.group(1) == "%":
        return "%s%s = %s" % (indent, target, _magic(text))
    return "%s%s = get_ipython().getoutput(%r)" % (indent, target, text)


def _begins(line):
    """Whether a line is a statement of Python, or the first line of one."""
    scanner = _Scanner()
    scanner.feed(line)
    return not scanner.at_start or _parses(line)


def _parses(line):
    try:
        compile(line, "<line>", "exec", ONLY_AST, True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _magic(text):
    name, _, line = text.partition(" ")
    return "get_ipython().run_line_magic(%r, %r)" % (name, line.strip())


class _Scanner:
    """Knows whether the next line begins a statement."""

    def __init__(self):
        self._quote = None
        self._depth = 0
        self._continued = False

    @property
    def at_start(self):
        return self._quote is None and self._depth == 0 and not self._continued

    def feed(self, line):
        """Takes in a line. Returns where something is assigned a command, or None."""
        assign = None
        position, length = 0, len(line)
        self._continued = False
        while position < length:
            char = line[position]
            if self._quote:
                if char == "\\":
                    position += 1
                    self._continued = position >= length
                elif line.startswith(self._quote, position):
                    position += len(self._quote) - 1
                    self._quote = None
            elif char == "#":
                break
            elif char in "'\"":
                self._quote = char * 3 if line.startswith(char * 3, position) else char
                position += len(self._quote) - 1
            elif char in "([{":
                self._depth += 1
            elif char in ")]}":
                self._depth = max(0, self._depth - 1)
            elif char == "=" and self._depth == 0:
                assign = assign or _ASSIGN.match(line, position)
            elif char == "\\" and position == length - 1:
                self._continued = True
            position += 1
        if self._quote and len(self._quote) == 1 and not self._continued:
            self._quote = None  # a string that was not closed: a syntax error
        return assign
