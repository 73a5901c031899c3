#!/usr/bin/env bash
# Checks formatting, runs go vet and golangci-lint over all modules.
set -euo pipefail
cd "$(dirname "$0")/.."

unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
	echo "lint: run gofmt -w on:" >&2
	echo "$unformatted" >&2
	exit 1
fi
for script in scripts/*.sh caddytest/*.sh .ci/run; do bash -n "$script"; done

echo "lint: building the linter; the first time takes some minutes" >&2
go build -C tools -o "$PWD/bin/golangci-lint" github.com/golangci/golangci-lint/v2/cmd/golangci-lint

root=$PWD
for module in $(scripts/modules.sh); do
	echo "lint: module in $module" >&2
	(cd "$module" && go vet ./... && "$root/bin/golangci-lint" run --config "$root/.golangci.yml" ./...)
done
