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

"""Adds bytecode to the archive on standard input, for the running Python."""

import importlib.util
import io
import marshal
import sys
import zipfile

UNCHECKED = (1).to_bytes(4, "little")  # valid without a look at the source


def main():
    source = zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read()))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as target:
        for name in source.namelist():
            text = source.read(name)
            code = compile(text, "<driver>/" + name, "exec", dont_inherit=True, optimize=2)
            head = importlib.util.MAGIC_NUMBER + UNCHECKED + importlib.util.source_hash(text)
            target.writestr(zipfile.ZipInfo(name + "c"), head + marshal.dumps(code))
            target.writestr(zipfile.ZipInfo(name), text)
    sys.stdout.buffer.write(out.getvalue())


main()
