# Runs outside the sandbox with the rights that the sandbox will have, and tells
# what the interpreter consists of. The code to compile comes on standard input:
# a sandbox then starts from bytecode instead of compiling it each time.
import base64
import json
import marshal
import os
import sys

wanted = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, os.path.dirname(sys.executable)]
found, unreadable = [], []
for path in wanted + sys.path:
    try:
        os.stat(path)
    except FileNotFoundError:
        continue
    except OSError:
        unreadable.append(path)
        continue
    if os.access(path, os.R_OK | (os.X_OK if os.path.isdir(path) else 0)):
        found.append(os.path.abspath(path))
    else:
        unreadable.append(path)

boot, *modules = json.loads(sys.stdin.buffer.read().decode())
try:
    code = marshal.dumps(compile(boot[1], boot[0], "exec")) + marshal.dumps(
        {name: compile(source, "/%s.py" % name.replace(".", "/"), "exec") for name, source in modules}
    )
except SyntaxError:
    code = b""  # its version tells why
json.dump(
    {
        "executable": sys.executable,
        "version": list(sys.version_info[:3]),
        "virtual": sys.prefix != sys.base_prefix,
        "paths": found,
        "unreadable": unreadable,
        "code": base64.b64encode(code).decode(),
    },
    sys.stdout,
)
