#!/usr/bin/env bash
# Runs a Python that has the package openai, with the arguments: the system's, or
# else that of Debian 13, without the files of this system.
set -euo pipefail

python=/usr/bin/python3
if "$python" -c 'import openai' 2>/dev/null; then
	exec "$python" "$@"
fi
for needed in apt-get dpkg-deb bwrap; do
	if ! command -v "$needed" >/dev/null; then
		echo "python-openai: $python has no package openai, and without $needed none can be fetched from Debian;" \
			"set PYTHON_OPENAI to a Python that has it (python3 -m venv DIR && DIR/bin/pip install openai)" >&2
		exit 1
	fi
done
root=$("$(dirname "$0")/debian-root.sh" trixie python3-openai)
exec bwrap --ro-bind "$root" / --proc /proc --dev /dev --tmpfs /tmp --die-with-parent "$python" "$@"
