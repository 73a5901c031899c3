#!/usr/bin/env bash
# Runs the tests of the embedded sandbox with Python, its libraries and the
# bubblewrap of another release of Debian, such as trixie (13) or sid.
#
#	scripts/test-debian.sh RELEASE [FLAG...]	flags as of go test, with -test. before them
set -euo pipefail
cd "$(dirname "$0")/.."

release=${1:?"usage: scripts/test-debian.sh RELEASE [FLAG...]"}
shift
root=$(scripts/debian-root.sh "$release" '?essential' python3 bubblewrap python3-matplotlib python3-pandas python3-pil procps)
tests=$(mktemp -d)
trap 'rm -rf "$tests"' EXIT
for package in local local/driver; do
	CGO_ENABLED=0 go test -c -o "$tests/$(basename "$package").test" "./$package"
done
rights=()
[ "$(id -u)" != 0 ] || rights=(--cap-add ALL)
inside() { # inside DIRECTORY COMMAND...
	local dir=$1
	shift
	bwrap --bind "$root" / --dev-bind /dev /dev --bind /proc /proc --ro-bind /sys /sys --tmpfs /tmp --tmpfs /run --tmpfs /root \
		--ro-bind "$PWD" /src --ro-bind "$tests" /run/tests "${rights[@]}" --die-with-parent --chdir "/src/$dir" \
		--setenv HOME /root --setenv PATH /usr/bin:/usr/sbin "$@"
}
echo "test-debian: $release, $(inside . python3 --version), $(inside . bwrap --version)"
for package in local local/driver; do
	inside "$package" "/run/tests/$(basename "$package").test" -test.timeout 20m "$@"
done
