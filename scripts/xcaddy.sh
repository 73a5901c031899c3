#!/usr/bin/env bash
# Proves that xcaddy builds Caddy with this module, and that the example
# configuration is valid and formatted.
set -euo pipefail
cd "$(dirname "$0")/.."

module=$(go list -m)
caddy_version=$(go list -m -f '{{.Version}}' github.com/caddyserver/caddy/v2)
xcaddy=github.com/caddyserver/xcaddy/cmd/xcaddy@v0.4.5

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_DATA_HOME=$work/data XDG_CONFIG_HOME=$work/config

# equivalent builds what xcaddy would: a main package of another module that
# imports Caddy and this module.
equivalent() {
	mkdir "$work/main"
	cp cmd/caddy/main.go go.mod go.sum "$work/main"
	(
		cd "$work/main"
		go mod edit -module caddy -require "$module@v0.0.0" -replace "$module=$1"
		go build -mod=mod -o "$work/caddy" .
	)
}

if go run "$xcaddy" version >/dev/null; then
	echo "xcaddy: building Caddy $caddy_version with $module"
	root=$PWD
	# With a version the go command does not ask for a published one.
	(cd "$work" && go run "$xcaddy" build "$caddy_version" --output "$work/caddy" --with "$module@v0.0.0=$root")
else
	echo "xcaddy: $xcaddy cannot be had here; checking the build it would do"
	equivalent "$PWD"
fi

"$work/caddy" list-modules | grep -x http.handlers.code_interpreter
for config in Caddyfile.example scripts/run.Caddyfile; do
	"$work/caddy" fmt --diff "$config" >"$work/diff" || { cat "$work/diff" && exit 1; }
	if grep -q '^[-+]' "$work/diff"; then
		echo "xcaddy: $config is not formatted as caddy fmt does:" >&2
		cat "$work/diff" >&2
		exit 1
	fi
done
E2B_API_KEY=e2b_example "$work/caddy" validate --config Caddyfile.example --adapter caddyfile
echo "xcaddy: the module is registered and Caddyfile.example is valid and formatted"
