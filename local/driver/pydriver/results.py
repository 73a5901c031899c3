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

from . import pretty

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


def event(bundle, main):
    """The result event of a bundle of representations by MIME type."""
    result = {"type": "result"}
    extra = {}
    for kind, value in bundle.items():
        field = _FIELDS.get(kind)
        if field:
            result[field] = value
        else:
            extra[kind] = value
    text = result.get("text")
    if isinstance(text, str) and text.startswith("'") and text.endswith("'"):
        result["text"] = text[1:-1]
    result["extra"] = extra
    result["is_main_result"] = main
    return result


def bundle(value):
    """All representations of a value by MIME type."""
    return {"text/plain": pretty.text(value)}
