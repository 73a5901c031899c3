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

"""From the text of a cell to code objects."""

import __future__
import binascii
import os
import sys
import types

ONLY_AST = 0x400
TOP_LEVEL_AWAIT = 0x2000
COROUTINE = 0x80
ASYNCHRONOUS = COROUTINE | 0x200  # or an asynchronous generator
FUTURE_MASK = 0
for _name in __future__.all_feature_names:
    FUTURE_MASK |= getattr(__future__, _name).compiler_flag

# Names that only work inside a running loop: a cell that uses one at its top
# level or in a function, and does not start a loop itself, is run inside the
# kernel's loop.
_NEED_LOOP = {
    "as_completed",
    "create_task",
    "current_task",
    "ensure_future",
    "gather",
    "get_running_loop",
    "shield",
}
_START_LOOP = {"run_until_complete", "run_forever", "Runner"}  # and asyncio.run


class Cell:
    """One cell: where its code lives, and what to run."""

    def __init__(self, source, count):
        self.source = source
        self.count = count
        digest = binascii.crc32(source.encode("utf-8", "replace"), count)
        # The form of ipykernel's names, which appear in warnings. No such
        # file exists: linecache is given the source.
        self.filename = "/tmp/ipykernel_%d/%d.py" % (os.getpid(), digest)
        self.body = None
        self.last = None
        self.flags = 0

    def compile(self, flags, interactivity="last_expr"):
        """Compiles the source, with the future features of earlier cells.

        interactivity is what IPython calls ast_node_interactivity: which of
        the cell's expressions are shown.
        """
        flags |= TOP_LEVEL_AWAIT
        tree = compile(self.source, self.filename, "exec", flags | ONLY_AST, True)
        last = None
        if interactivity == "last_expr_or_assign":
            tree.body += filter(None, map(_assigned, tree.body[-1:]))
        if tree.body and type(tree.body[-1]).__name__ == "Expr" and interactivity != "none":
            if not self._silenced(tree.body[-1]):
                last = tree.body.pop()
        if interactivity == "all":
            tree.body = [_shown(node) for node in tree.body]
        if tree.body or last is None:
            self.body = compile(tree, self.filename, "exec", flags, True)
            flags |= self.body.co_flags & FUTURE_MASK
        if last is not None:
            import _ast

            expression = _ast.Expression(last.value)
            self.last = compile(expression, self.filename, "eval", flags, True)
        self.flags = flags & ~TOP_LEVEL_AWAIT

    def _silenced(self, node):
        """Whether a semicolon after the last expression hides its value."""
        lines = self.source.split("\n")
        if node.end_lineno > len(lines):  # other line ends than the parser's
            lines = self.source.splitlines()
        rest = lines[node.end_lineno - 1 : node.end_lineno][0].encode("utf-8", "replace")
        return rest[node.end_col_offset :].strip().startswith(b";")

    def run(self, namespace, loop):
        """Runs the cell. Returns (whether there is a value, the value)."""
        codes = [code for code in (self.body, self.last) if code is not None]
        if any(code.co_flags & COROUTINE for code in codes):
            return loop.run(self._run_async, namespace)
        if "asyncio" in sys.modules or any("asyncio" in code.co_names for code in codes):
            _add_functions(codes, namespace)
            if _need_loop(codes, namespace):
                return loop.run(self._run_async, namespace)
            loop.offer()
        if self.body is not None:
            exec(self.body, namespace)
        if self.last is None:
            return False, None
        return True, eval(self.last, namespace)

    async def _run_async(self, namespace):
        value = None
        for code in (self.body, self.last):
            if code is None:
                continue
            value = eval(code, namespace)
            if code.co_flags & COROUTINE:
                value = await value
        return self.last is not None, value


def _add_functions(codes, namespace):
    """Adds to code that of the functions and methods that it names, of this cell or earlier ones."""
    classes = [value for value in list(namespace.values()) if issubclass(type(value), type) and value.__module__ == "__main__"]
    for code in codes:  # grows meanwhile
        found = [const for const in code.co_consts if isinstance(const, types.CodeType)]
        for name in code.co_names:
            for value in (namespace.get(name), *(vars(cls).get(name) for cls in classes)):
                if type(value) is types.FunctionType and value.__globals__ is namespace:
                    found.append(value.__code__)
        for inner in found:
            if not inner.co_flags & ASYNCHRONOUS and inner not in codes:
                codes.append(inner)


def _need_loop(codes, namespace):
    """Whether the code only works inside a running loop, and starts none."""
    names = {name for code in codes for name in code.co_names}
    if not names & _NEED_LOOP or names & _START_LOOP:
        return False
    return not any(_calls_run(code, namespace) for code in codes)


def _calls_run(code, namespace):
    """Whether code uses asyncio.run, and not merely another function of that name."""
    if "run" not in code.co_names:
        return False
    import dis

    asyncio = sys.modules.get("asyncio", code)
    before = None
    for step in dis.get_instructions(code):
        if step.argval == "run":
            if step.opname in ("LOAD_NAME", "LOAD_GLOBAL"):
                value = namespace.get("run")
                if value is None or value is getattr(asyncio, "run", None):
                    return True
            elif before == "asyncio" or namespace.get(before) is asyncio:
                return True
        if step.opname not in ("CACHE", "PUSH_NULL"):
            before = step.argval
    return False


def _shown(node):
    """A statement that also shows its value, if it is an expression."""
    if type(node).__name__ != "Expr":
        return node
    import _ast

    place = {name: getattr(node, name) for name in node._attributes}
    function = _ast.Name("__show__", _ast.Load(), **place)
    call = _ast.Call(function, [node.value], [], **place)
    return _ast.Expr(call, **place)


def _assigned(node):
    """An expression of the one name that a statement assigns a value to, or None."""
    if type(node).__name__ not in ("Assign", "AugAssign", "AnnAssign") or node.value is None:
        return None
    targets = node.targets if hasattr(node, "targets") else [node.target]
    if len(targets) > 1 or type(targets[0]).__name__ != "Name":
        return None
    import _ast

    place = {name: getattr(node, name) for name in node._attributes}
    return _ast.Expr(_ast.Name(targets[0].id, _ast.Load(), **place), **place)


def is_blank(source):
    """Whether a cell is one that is not run and not counted."""
    return not source or source.isspace()
