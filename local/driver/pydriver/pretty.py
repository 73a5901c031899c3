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

"""The plain text of a value, laid out as IPython does.

Containers that fit on a line stay on it; others get one element a line, at
most a thousand. Classes with a _repr_pretty_ method draw themselves.
"""

import sys

from . import layout

WIDTH = 79
MAX_ITEMS = 1000
MAX_TEXT = 1 << 20  # characters of one value's text

_PLAIN = (int, float, complex, bool, type(None), str, bytes)


def text(value):
    """Returns the text that a notebook shows for the value."""
    if type(value) in (str, bytes) and len(value) > MAX_TEXT:
        half = MAX_TEXT // 2  # clipped first: the whole repr might not fit in memory
        dropped = len(value) - 2 * half
        return "%r\n[... %d more ...]\n%r" % (value[:half], dropped, value[-half:])
    if type(value) in _PLAIN:
        return _clip(repr(value))
    printer = Printer()
    try:
        printer.pretty(value)
    except RecursionError:
        return _clip(repr(value))
    return _clip(printer.getvalue())


def _clip(text):
    if len(text) <= MAX_TEXT:
        return text
    half = MAX_TEXT // 2
    return "%s\n[... %d characters ...]\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


class Printer(layout.Layout):
    """Prints values; what _repr_pretty_ methods are given."""

    def __init__(self, width=WIDTH, max_seq_length=MAX_ITEMS):
        super().__init__(width, max_seq_length)

    def pretty(self, value):
        """Prints a value."""
        identity = id(value)
        cycle = identity in self.stack
        self.stack.append(identity)
        self.begin_group()
        try:
            _find(value)(value, self, cycle)
        finally:
            self.end_group()
            self.stack.pop()


def _find(value):
    """The function that prints values of this kind."""
    for cls in type(value).__mro__:
        printer = _BY_TYPE.get(cls) or _BY_NAME.get((cls.__module__, cls.__qualname__))
        if printer is not None:
            return printer
        if cls is object:
            break
        own = cls.__dict__
        if callable(own.get("_repr_pretty_")) and not isinstance(value, type):
            return lambda value, printer, cycle: value._repr_pretty_(printer, cycle)
        if callable(own.get("__repr__")):
            return _print_repr
    return _print_object


def _print_repr(value, printer, cycle):
    lines = repr(value).splitlines()
    with printer.group():
        for index, line in enumerate(lines):
            if index:
                printer.break_()
            printer.text(line)


def _print_object(value, printer, cycle):
    cls = getattr(value, "__class__", None) or type(value)
    if getattr(cls, "__repr__", None) is not object.__repr__:
        _print_repr(value, printer, cycle)
        return
    with printer.group(1, "<", ">"):
        printer.pretty(cls)
        printer.text(" at 0x%x" % id(value))


def _sequence(start, end):
    def print_sequence(value, printer, cycle):
        if cycle:
            printer.text(start + "..." + end)
            return
        with printer.group(len(start), start, end):
            for index, item in printer.items(value):
                if index:
                    printer.text(",")
                    printer.breakable()
                printer.pretty(item)
            if len(value) == 1 and isinstance(value, tuple):
                printer.text(",")

    return print_sequence


def _set(start, end, empty):
    def print_set(value, printer, cycle):
        if not value:
            printer.text(empty)
            return
        if cycle:
            printer.text(start + "..." + end)
            return
        items = value
        if len(value) < MAX_ITEMS:
            try:
                items = sorted(value)
            except Exception:
                pass
        with printer.group(len(start), start, end):
            for index, item in printer.items(items):
                if index:
                    printer.text(",")
                    printer.breakable()
                printer.pretty(item)

    return print_set


def _mapping(start, end):
    def print_mapping(value, printer, cycle):
        if cycle:
            printer.text("{...}")
            return
        with printer.group(len(start), start, end):
            for index, key in printer.items(value.keys()):
                if index:
                    printer.text(",")
                    printer.breakable()
                printer.pretty(key)
                printer.text(": ")
                printer.pretty(value[key])

    return print_mapping


def _call(arguments):
    """Prints a value as a call of its class."""

    def print_call(value, printer, cycle):
        head = type(value).__name__ + "("
        if cycle:
            printer.text(head + "...)")
            return
        with printer.group(len(head), head, ")"):
            for index, argument in enumerate(arguments(value)):
                if index:
                    printer.text(",")
                    printer.breakable()
                if isinstance(argument, _Keyword):
                    printer.text(argument.name + "=")
                    argument = argument.value
                printer.pretty(argument)

    return print_call


class _Keyword:
    def __init__(self, name, value):
        self.name, self.value = name, value


def _deque(value):
    yield list(value)
    if value.maxlen is not None:
        yield _Keyword("maxlen", value.maxlen)


def _print_type(value, printer, cycle):
    if type(value).__repr__ is not type.__repr__:
        _print_repr(value, printer, cycle)
        return
    module = getattr(value, "__module__", None)
    name = value.__qualname__
    printer.text(name if module in (None, "builtins") else "%s.%s" % (module, name))


def _print_function(value, printer, cycle):
    import inspect

    name = getattr(value, "__qualname__", value.__name__)
    module = getattr(value, "__module__", None)
    if module and module != "builtins":
        name = "%s.%s" % (module, name)
    try:
        name += str(inspect.signature(value))
    except (ValueError, TypeError):
        pass
    printer.text("<function %s>" % name)


def _print_exception(value, printer, cycle):
    cls = type(value)
    name = cls.__qualname__
    if cls.__module__ not in ("builtins", "exceptions"):
        name = "%s.%s" % (cls.__module__, name)
    with printer.group(len(name) + 1, name + "(", ")"):
        for index, argument in enumerate(getattr(value, "args", ())):
            if index:
                printer.text(",")
                printer.breakable()
            printer.pretty(argument)


def _print_pattern(value, printer, cycle):
    import re

    names = ("IGNORECASE", "LOCALE", "MULTILINE", "DOTALL", "UNICODE", "VERBOSE", "DEBUG")
    flags = "|".join("re." + name for name in names if value.flags & getattr(re, name))
    printer.text("re.compile(r%s" % repr(value.pattern).replace("\\\\", "\\"))
    if flags:
        printer.text(",")
        printer.breakable()
        printer.text(flags)
    printer.text(")")


_BY_TYPE = {
    int: _print_repr,
    float: _print_repr,
    str: _print_repr,
    list: _sequence("[", "]"),
    tuple: _sequence("(", ")"),
    dict: _mapping("{", "}"),
    set: _set("{", "}", "set()"),
    frozenset: _set("frozenset({", "})", "frozenset()"),
    type: _print_type,
    type(sys.exit): _print_function,
    type(text): _print_function,
    BaseException: _print_exception,
}
_BY_NAME = {
    ("re", "Pattern"): _print_pattern,
    ("collections", "Counter"): _call(lambda value: (dict(value.most_common()),)),
    ("collections", "OrderedDict"): _call(lambda value: (list(value.items()),) if value else ()),
    ("collections", "UserList"): _call(lambda value: (value.data,)),
    ("collections", "defaultdict"): _call(lambda value: (value.default_factory, dict(value))),
    ("collections", "deque"): _call(_deque),
}
