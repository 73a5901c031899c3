#!/usr/bin/env bash
# Makes sure that what "make run" or "make test" needs is there: installs
# missing Debian packages as root or with a sudo that asks no password, else
# says what to install and fails.
#
#	scripts/setup.sh run|test
set -euo pipefail

missing=()
need() { # need PACKAGES COMMAND...: the packages are missing unless the command succeeds
	local packages=$1
	shift
	"$@" >/dev/null 2>&1 || read -ra missing <<<"${missing[*]-} $packages"
}
look() { # look COMMAND...: run the checks of the wanted target
	missing=()
	need bubblewrap command -v bwrap
	need python3 test -x /usr/bin/python3
	[ "$1" = test ] || return 0
	need "gcc libc6-dev" command -v "$(go env CC)" # the race detector needs C
	need curl command -v curl
	need python3-matplotlib /usr/bin/python3 -c 'import matplotlib'
	need python3-pandas /usr/bin/python3 -c 'import pandas'
	need python3-pil /usr/bin/python3 -c 'import PIL'
	need "nodejs npm" command -v npm
	if [ -z "${PYTHON_OPENAI:-}" ] && ! /usr/bin/python3 -c 'import openai' 2>/dev/null; then # it is fetched from Debian
		need debian-archive-keyring test -e /usr/share/keyrings/debian-archive-keyring.gpg
	fi
	need redis-server command -v redis-server
	need prometheus command -v promtool # checks the alerts and the dashboard
}

target=${1:?"usage: scripts/setup.sh run|test"}
if ! command -v go >/dev/null; then
	echo "setup: Go 1.26 or newer is needed: https://go.dev/doc/install" >&2
	exit 1
fi
look "$target"
[ ${#missing[@]} -gt 0 ] || exit 0

give_up() {
	echo "setup: $1" >&2
	echo "setup: install these, then try again (names of Debian and Ubuntu): ${missing[*]}" >&2
	exit 1
}
command -v apt-get >/dev/null || give_up "this system has no apt-get"
as_root=()
if [ "$(id -u)" != 0 ]; then
	sudo -n true 2>/dev/null || give_up "neither root nor allowed to use sudo without a password"
	as_root=(sudo -n)
fi
echo "setup: installing ${missing[*]}"
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null; }
apt update || echo "setup: apt-get update failed, trying with the lists that are there" >&2
apt install -y --no-install-recommends "${missing[@]}" >/dev/null || give_up "apt-get could not install them"
look "$target"
[ ${#missing[@]} -eq 0 ] || give_up "still not usable after apt-get install"
