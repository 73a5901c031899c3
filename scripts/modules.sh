#!/usr/bin/env bash
# Prints the directories of the Go modules that hold code of the project, the
# main module first.
set -euo pipefail
cd "$(dirname "$0")/.."

find . -name go.mod -not -path '*/node_modules/*' -not -path './tools/*' -printf '%h\n' | sort
