#!/usr/bin/env bash
# Prints the path of a Python that has the package openai, for the tests of
# that client: the system's, or else one of Debian 13, which is fetched with its
# libraries into the cache of the user. Needs no root.
set -euo pipefail

system=/usr/bin/python3
if "$system" -c 'import openai' 2>/dev/null; then
	echo "$system"
	exit 0
fi

release=trixie
cache=${XDG_CACHE_HOME:-$HOME/.cache}/caddy-code-interpreter/python-openai-$release
if [ -x "$cache/python" ]; then
	echo "$cache/python"
	exit 0
fi

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
for needed in apt-get dpkg-deb bwrap; do
	if ! command -v "$needed" >/dev/null || [ ! -e "$keyring" ]; then
		echo "python-openai: $system has no package openai, and without $needed and $keyring none can be fetched from Debian;" \
			"set PYTHON_OPENAI to a Python that has it (python3 -m venv DIR && DIR/bin/pip install openai)" >&2
		exit 1
	fi
done

mkdir -p "$(dirname "$cache")"
work=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/apt/{state/lists/partial,cache/archives/partial,etc/preferences.d} "$work"/root/{proc,dev,tmp}
: >"$work/apt/status"
echo "deb [signed-by=$keyring] https://deb.debian.org/debian $release main" >"$work/apt/sources.list"
# An apt that knows nothing of the packages and the configuration of the system.
apt() {
	apt-get -qq -o "Dir=$work/apt" -o "Dir::State=$work/apt/state" -o "Dir::State::status=$work/apt/status" \
		-o "Dir::Cache=$work/apt/cache" -o "Dir::Etc=$work/apt/etc" -o "Dir::Etc::sourcelist=$work/apt/sources.list" \
		-o "Dir::Etc::sourceparts=-" -o "APT::Architecture=$(dpkg --print-architecture)" -o "APT::Sandbox::User=" "$@" </dev/null >&2
}
apt update
apt install --download-only --no-install-recommends -y python3-openai
for alias in bin sbin lib lib64; do
	mkdir -p "$work/root/usr/$alias"
	ln -s "usr/$alias" "$work/root/$alias"
done
for package in "$work"/apt/cache/archives/*.deb; do
	dpkg-deb -x "$package" "$work/root"
done
# What the package's installation would do.
cat "$work"/root/usr/share/ca-certificates/mozilla/*.crt >"$work/root/etc/ssl/certs/ca-certificates.crt"
rm -rf "$work/apt"
cat >"$work/python" <<'END'
#!/bin/sh
exec bwrap --ro-bind "$(dirname "$0")/root" / --proc /proc --dev /dev --tmpfs /tmp --die-with-parent /usr/bin/python3 "$@"
END
chmod +x "$work/python"
"$work/python" -c 'import openai'
chmod 755 "$work"
mv -T "$work" "$cache" 2>/dev/null || [ -x "$cache/python" ] # somebody else was faster
echo "$cache/python"
