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

"""Which lines of a source are shown around the one that failed.

Statements, not lines, are counted: the current one, some before and some
after it, within the function, class or module that it belongs to.
"""

ONLY_AST = 0x400
_SCOPES = ("FunctionDef", "AsyncFunctionDef", "ClassDef", "Module")
_MAX_CACHED = 64

_cache = {}


def around(lines, number, before, after, key):
    """Returns the pieces (ranges of lines) to show for the line number."""
    pieces, scopes = _outline(lines, key)
    if pieces is None:
        return [range(max(1, number - before), min(len(lines), number + after) + 1)]
    current = next((piece for piece in pieces if number in piece), None)
    if current is None:
        return [range(number, number + 1)]
    first, last = 1, len(lines)
    for scope in scopes:  # the innermost one comes last
        if scope[0] <= number <= scope[1]:
            first, last = scope
    inside = [piece for piece in pieces if first <= piece.start and piece.stop <= last + 1]
    if current not in inside:
        return [current]
    position = inside.index(current)
    return inside[max(0, position - before) : position + 1 + after]


def _outline(lines, key):
    """The pieces and scopes of a source; None, None when it does not parse."""
    found = _cache.get(key)
    if found is None:
        if len(_cache) >= _MAX_CACHED:
            _cache.clear()
        try:
            source = "\n".join(line.rstrip("\r\n") for line in lines) + "\n"
            tree = compile(source, "<source>", "exec", ONLY_AST | 0x2000, True)
            found = _pieces(tree, lines), _scopes(tree)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            found = None, None
        _cache[key] = found
    return found


def _scopes(node):
    """The line ranges of all functions and classes, outer ones first."""
    found = []
    for child in _children(node):
        if type(child).__name__ in _SCOPES:
            found.append(_span(child))
        found.extend(_scopes(child))
    return found


def _children(node):
    for _, body in _bodies(node):
        yield from body


def _bodies(node):
    """The lists of statements that a statement holds."""
    for name in node._fields:
        body = getattr(node, name, None)
        if isinstance(body, list) and body and _is_statement(body[0]):
            yield name, body


def _is_statement(node):
    import _ast

    kinds = [_ast.stmt, _ast.ExceptHandler]
    if hasattr(_ast, "match_case"):
        kinds.append(_ast.match_case)
    return isinstance(node, tuple(kinds))


def _span(node):
    """First and last line of a statement, decorators included."""
    if not hasattr(node, "lineno"):  # a case of a match statement
        return node.pattern.lineno, _span(node.body[-1])[1]
    decorators = getattr(node, "decorator_list", None) or ()
    return min([node.lineno, *(d.lineno for d in decorators)]), node.end_lineno


def _pieces(tree, lines):
    merged = []
    for start, end in _split(tree, 1, len(lines) + 1):
        if end <= start:
            continue
        if merged and start < merged[-1][1]:  # statements that share a line
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([start, end])
    pieces = []
    for start, end in merged:
        while start < end and not lines[start - 1].strip():
            start += 1
        while start < end and not lines[end - 2].strip():
            end -= 1
        if start < end:
            pieces.append(range(start, end))
    return pieces


def _split(node, start, end):
    """Cuts the lines of a statement where the statements inside it begin."""
    for _, body in _bodies(node):
        for child in body:
            first, last = _span(child)
            for inner_start, inner_end in _split(child, first, last + 1):
                if start < inner_start:
                    yield start, inner_start
                if inner_start < inner_end:
                    yield inner_start, inner_end
                start = inner_end
    yield start, end
