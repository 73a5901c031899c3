#!/usr/bin/env bash
# Runs the black-box harness in WIRECHECK (default ../shared/wire) against
# bin/caddy. A case that fails is run again alone, as cases with time limits
# may fail on a busy machine; it counts when it fails alone too.
#
#	scripts/wire.sh plain   once with each Caddyfile template
#	scripts/wire.sh cuts    with upstream bytes in pieces of 1, 7 and 64, three rounds
set -euo pipefail
cd "$(dirname "$0")/.."

harness=${WIRECHECK:-../shared/wire}
if [ ! -e "$harness/wirecheck.py" ]; then
	echo "wire: there is no wirecheck.py in '$harness', so no black-box case was run: let WIRECHECK name its folder" >&2
	exit 2
fi
scripts/build.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_DATA_HOME=$work XDG_CONFIG_HOME=$work PYTHONDONTWRITEBYTECODE=1

check() { # check OPTIONS...
	python3 "$harness/wirecheck.py" --caddy bin/caddy --cases "$harness/cases_dev.jsonl" --json "$work/results" "$@"
}
failing() { # prints the ids of the failed cases, separated by commas
	python3 -c 'import json, sys
print(",".join(r["id"] for r in json.load(open(sys.argv[1])) if r["result"] == "fail"))' "$work/results"
}
bad=0
pass() { # pass NAME OPTIONS...
	local name=$1 again
	shift
	echo "wire: $name"
	rm -f "$work/results"
	if check --jobs 2 "$@"; then return; fi
	again=$([ ! -e "$work/results" ] || failing)
	if [ -n "$again" ]; then
		echo "wire: $name, once more and alone: $again"
		if check --only "$again" "$@"; then return; fi
	fi
	bad=$((bad + 1))
	echo "wire: $name failed"
}

case ${1:-plain} in
plain)
	pass "default template"
	pass "template with handle" --caddyfile "$harness/caddyfile_handle.txt"
	;;
cuts)
	for round in 1 2 3; do
		for size in 1 7 64; do
			pass "round $round, pieces of $size, default template" --split "$size"
			pass "round $round, pieces of $size, template with handle" --split "$size" --caddyfile "$harness/caddyfile_handle.txt"
		done
	done
	;;
*)
	echo "usage: scripts/wire.sh plain|cuts" >&2
	exit 1
	;;
esac
[ "$bad" -eq 0 ]
