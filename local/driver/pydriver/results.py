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

"""From a value to the fields of a result event."""

import sys

from . import ipython, pretty

MAX_NODES = 100_000  # values of a JSON or data representation; larger ones are left out
MAX_DEPTH = 100  # of values in values there; what JSON readers bear
INT_LIMIT = 1 << 63

_FIELDS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    "e2b/data": "data",
    "e2b/chart": "chart",
}
_METHODS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_pdf_", "application/pdf"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
    ("_repr_javascript_", "application/javascript"),
)
_PLAIN = (int, float, complex, bool, str, bytes, tuple, set, frozenset, type(None))
_BINARY = ("image/png", "image/jpeg", "application/pdf")
_JSON = ("application/json", "e2b/data", "e2b/chart")


def event(bundle, main):
    """The result event of a bundle of representations by MIME type."""
    result, extra = {"type": "result"}, {}
    for kind, value in bundle.items():
        field = _FIELDS.get(kind)
        if field:
            result[field] = value
        else:
            extra[str(kind)] = value
    text = result.get("text")
    if isinstance(text, str) and text.startswith("'") and text.endswith("'"):
        result["text"] = text[1:-1]
    result["extra"] = extra
    result["is_main_result"] = main
    return result


def bundle(value, complain, include=None, exclude=None):
    """All representations of a value by MIME type.

    What goes wrong in the value's own methods is given to complain, but for
    the plain text, whose exception is the caller's.
    """
    found = _registered(value, complain) if ipython.Formatter.used else {}
    if type(value) not in _PLAIN:
        found = {**_own(value, complain, include, exclude), **found}
    if "text/plain" not in found:
        found["text/plain"] = pretty.text(value)
    if include is not None:
        found = {kind: found[kind] for kind in found if kind in include}
    if exclude is not None:
        found = {kind: found[kind] for kind in found if kind not in exclude}
    return {kind: _transportable(kind, data) for kind, data in found.items() if data is not None}


def method(value, name):
    """A method of the display protocol, when the value really has it."""
    if isinstance(value, type):
        return None
    try:
        # An object that has every attribute (a mock, a proxy) has none of these.
        if getattr(value, "_ipython_canary_method_should_not_exist_", None) is not None:
            return None
        found = getattr(value, name, None)
    except Exception:
        return None
    return found if callable(found) else None


def _own(value, complain, include, exclude):
    found = {}
    for special in (_figure, _frame, _container):
        try:
            found.update(special(value))
        except Exception as error:
            complain(error)
    whole = method(value, "_repr_mimebundle_")
    if whole is not None:
        data = _attempt(lambda: whole(include=include, exclude=exclude), complain)
        if isinstance(data, dict):
            found.update(data)
    for name, kind in _METHODS:
        if kind not in found:
            draw = method(value, name)
            if draw is not None:
                found[kind] = _attempt(draw, complain)
    return found


def _registered(value, complain):
    """What functions draw that code has registered for the value's class."""
    found = {}
    for kind, formatter in ipython.instance.display_formatter.formatters.items():
        function = formatter.lookup(type(value))
        if function is None:
            continue
        if kind == "text/plain":
            printer = pretty.Printer()
            function(value, printer, False)
            found[kind] = printer.getvalue()
        else:
            found[kind] = _attempt(lambda: function(value), complain)  # noqa: B023
    return found


def _attempt(draw, complain):
    try:
        data = draw()
    except NotImplementedError:
        return None
    except Exception as error:
        complain(error)
        return None
    return data[0] if isinstance(data, tuple) and len(data) == 2 else data


def _figure(value):
    """The picture and the chart of a matplotlib figure."""
    module = sys.modules.get("matplotlib.figure")
    figure = getattr(module, "Figure", None)
    if figure is None or not isinstance(value, figure):
        return {}
    from . import figures

    return figures.bundle(value)


def _frame(value):
    """The columns of a DataFrame."""
    module = sys.modules.get("pandas")
    frame = getattr(module, "DataFrame", None)
    if frame is None or not isinstance(value, frame) or value.size > MAX_NODES:
        return {}
    data = {}
    for index, name in enumerate(value.columns):
        column = value.iloc[:, index].tolist()
        data[str(name)] = [_cell(item, module) for item in column]
    return {"e2b/data": data}


def _cell(item, pandas):
    if isinstance(item, (bool, int, str)) or item is None:
        return item
    if isinstance(item, float):
        return item if item == item and abs(item) != float("inf") else None
    if item is pandas.NaT or item is getattr(pandas, "NA", None):
        return None
    if hasattr(item, "isoformat"):
        return item.isoformat()
    try:
        return plain(item)
    except (TypeError, ValueError):
        return str(item)


def _container(value):
    """The JSON of a dict or list that is made of JSON's types."""
    if not isinstance(value, (dict, list)):
        return {}
    try:
        return {"application/json": plain(value)}
    except (TypeError, ValueError, RecursionError):
        return {}


def plain(value):
    """A copy of value in JSON's types. Raises when it has others."""
    return _copy(value, [MAX_NODES], MAX_DEPTH)


def _copy(value, budget, depth):
    budget[0] -= 1
    if budget[0] < 0 or depth < 0:
        raise ValueError("too many values")
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        if not -INT_LIMIT <= value < 2 * INT_LIMIT:
            raise ValueError("integer of more than 64 bits")
        return int(value)
    if isinstance(value, float):
        return float(value) if value == value and abs(value) != float("inf") else None
    if isinstance(value, dict):
        if any(not isinstance(key, str) for key in value):
            raise TypeError("keys must be strings")
        return {key: _copy(item, budget, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy(item, budget, depth - 1) for item in value]
    if type(value).__module__ == "datetime" and hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError("no JSON type: %s" % type(value).__name__)


def _transportable(kind, data):
    if isinstance(data, (bytes, bytearray, memoryview)):
        if kind in _BINARY or not kind.startswith("text/"):
            import binascii

            return binascii.b2a_base64(data, newline=False).decode("ascii")
        return bytes(data).decode("utf-8", "replace")
    if kind in _FIELDS and kind not in _JSON and not isinstance(data, str):
        return str(data)
    if isinstance(data, str):
        return data
    try:
        return plain(data)
    except (TypeError, ValueError, RecursionError):
        return str(data)
