#!/usr/bin/env bash
# Prints the directory of a Debian system with some packages, which is fetched
# into the cache of the user once. It is unpacked, not installed: to be run in
# bubblewrap. Needs no root.
#
#	scripts/debian-root.sh RELEASE PACKAGE...
set -euo pipefail

release=${1:?"usage: scripts/debian-root.sh RELEASE PACKAGE..."}
shift
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
arch=$(dpkg --print-architecture)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/caddy-code-interpreter/$release-$arch-$(printf '%s\n' "$@" | cksum | cut -d ' ' -f 1)
if [ -d "$cache" ]; then
	echo "$cache"
	exit 0
fi
if [ ! -e "$keyring" ]; then
	echo "debian-root: $keyring is missing: apt install debian-archive-keyring" >&2
	exit 1
fi

mkdir -p "$(dirname "$cache")"
work=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/apt/{state/lists/partial,cache/archives/partial,etc/preferences.d} "$work"/root/{dev,etc,proc,run,src,sys,tmp,usr}
: >"$work/apt/status"
echo "deb [signed-by=$keyring] https://deb.debian.org/debian $release main" >"$work/apt/sources.list"
# An apt that knows nothing of the packages and the configuration of the system.
apt() {
	apt-get -qq -o "Dir=$work/apt" -o "Dir::State=$work/apt/state" -o "Dir::State::status=$work/apt/status" \
		-o "Dir::Cache=$work/apt/cache" -o "Dir::Etc=$work/apt/etc" -o "Dir::Etc::sourcelist=$work/apt/sources.list" \
		-o "Dir::Etc::sourceparts=-" -o "APT::Architecture=$arch" -o "APT::Sandbox::User=" "$@" </dev/null >&2
}
apt update
apt install --download-only --no-install-recommends -y "$@"

root=$work/root
for alias in bin sbin lib lib64; do
	mkdir -p "$root/usr/$alias"
	ln -s "usr/$alias" "$root/$alias"
done
for package in "$work"/apt/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink --no-same-owner -C "$root"
done
# What the installation of the packages would do, as far as it is missed.
for lib in blas lapack; do
	if cd "$root"/usr/lib/*-linux-gnu/"$lib" 2>/dev/null; then
		ln -sf "$lib/lib$lib.so.3" ..
	fi
done
for file in passwd group; do
	[ ! -e "$root/usr/share/base-passwd/$file.master" ] || cp "$root/usr/share/base-passwd/$file.master" "$root/etc/$file"
done
echo debian >"$root/etc/hostname"
if [ -d "$root/usr/share/ca-certificates" ]; then
	cat "$root"/usr/share/ca-certificates/mozilla/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
fi

chmod 755 "$root"
mv -T "$root" "$cache" 2>/dev/null || [ -d "$cache" ] # somebody else was faster
echo "$cache"
