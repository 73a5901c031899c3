#!/usr/bin/env bash
# Runs each fuzz target of the module for FUZZTIME (default 1m), one after the
# other, and names at the end those that failed.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${FUZZTIME:-1m}
failed=()
count=0
while IFS=: read -r file _ declaration; do
	target=${declaration#func }
	target=${target%%(*}
	package=${file%/*}
	count=$((count + 1))
	echo "fuzz: $target in $package for $time"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package" </dev/null || failed+=("$package $target")
done < <(grep -rnE --include='*_test.go' --exclude-dir=node_modules '^func Fuzz[A-Za-z0-9_]+\(' . | sort)

echo "$((count - ${#failed[@]})) fuzz targets passed, ${#failed[@]} failed${failed[0]:+: ${failed[*]}}"
[ "$count" -gt 0 ] && [ ${#failed[@]} -eq 0 ]
