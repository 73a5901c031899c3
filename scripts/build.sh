#!/usr/bin/env bash
# Builds bin/caddy and bin/scriptedmodel.
set -euo pipefail
cd "$(dirname "$0")/.."

go build -o bin/caddy ./cmd/caddy
go build -o bin/scriptedmodel ./caddytest/scriptedmodel/cmd
