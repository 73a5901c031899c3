#!/usr/bin/env bash
# Runs all tests of all modules with the race detector. Ends with
# "N passed, N failed"; a test that was skipped counts as a failure of the run.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh test

# Caddy writes below these, and the tests must not see what an earlier run left.
XDG_DATA_HOME=$(mktemp -d)
XDG_CONFIG_HOME=$XDG_DATA_HOME
export XDG_DATA_HOME XDG_CONFIG_HOME
trap 'rm -rf "$XDG_DATA_HOME"' EXIT

go build -o bin/testsummary ./scripts/testsummary
scripts/modules.sh | while read -r module; do
	echo "test: module in $module" >&2
	# The other modules are worth their run also after a failure.
	(cd "$module" && go test -race -count=1 -timeout 20m -json ./...) ||
		echo "{\"Action\":\"module-fail\",\"Package\":\"module in $module\"}"
done | bin/testsummary
