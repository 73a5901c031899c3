#!/usr/bin/env bash
# Starts the gateway with the embedded sandbox in front of an OpenAI-compatible
# upstream. Ctrl-C ends everything it started. With a command as arguments it
# runs that against the gateway (BASE_URL is set) and ends with its status.
#
#	LISTEN    address of the gateway; default 127.0.0.1:4000, for a command a free port
#	UPSTREAM  base URL such as https://openrouter.ai/api/v1; default: the scripted model
#	MODEL     model named in the printed commands
#	SANDBOX   local (default) or e2b: with E2B_API_KEY E2B's own, without it the
#	          embedded sandboxes served with E2B's protocol
#	LOG_LEVEL default WARN
#
#	scripts/run.sh [COMMAND...]
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh run
echo "run: building" >&2
scripts/build.sh

state=$(mktemp -d)
processes=()
finish() {
	trap - EXIT INT TERM
	local i
	for ((i = ${#processes[@]} - 1; i >= 0; i--)); do # the gateway ends before what it needs
		kill "${processes[i]}" 2>/dev/null || true
		wait "${processes[i]}" 2>/dev/null || true
	done
	rm -rf "$state"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

listens() { (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; } # listens HOST PORT
free_port() {
	local port
	for _ in {1..100}; do
		port=$((20000 + RANDOM % 10000))
		listens 127.0.0.1 "$port" || { echo "$port" && return; }
	done
	return 1
}
if [ $# -gt 0 ]; then LISTEN=${LISTEN:-127.0.0.1:$(free_port)}; fi
LISTEN=${LISTEN:-127.0.0.1:4000}
case $LISTEN in :*) LISTEN=0.0.0.0$LISTEN ;; esac
export LISTEN_HOST=${LISTEN%:*} LISTEN_PORT=${LISTEN##*:}
export BASE_URL=http://$LISTEN/v1
probe=$LISTEN_HOST
case $probe in '' | 0.0.0.0) probe=127.0.0.1 ;; '[::]') probe=::1 ;; esac
probe=${probe//[\[\]]/}
# Caddy shares a port with another one: each would get some of the requests.
if listens "$probe" "$LISTEN_PORT"; then
	echo "run: something listens on $LISTEN already: end it, or choose another address with LISTEN" >&2
	exit 1
fi

# Sandboxes of E2B, or those of this machine served as E2B serves its own.
export SANDBOX=${SANDBOX:-local}
if [ "$SANDBOX" = e2b ] && [ -z "${E2B_API_KEY:-}" ]; then
	port=$(free_port)
	E2B_API_KEY=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
	export E2B_API_KEY E2B_API_URL=http://127.0.0.1:$port E2B_SANDBOX_URL=http://127.0.0.1:$port
	bin/caddy code-interpreter serve-local --listen "127.0.0.1:$port" >"$state/sandboxes" 2>&1 &
	server=$!
	processes+=("$server")
	until listens 127.0.0.1 "$port"; do
		kill -0 "$server" 2>/dev/null || { cat "$state/sandboxes" >&2 && exit 1; }
		sleep 0.1
	done
	echo "run: sandboxes are served with E2B's protocol on $E2B_API_URL" >&2
fi

# The upstream: its origin goes to reverse_proxy, its path in front of the request's.
key=''
if [ -z "${UPSTREAM:-}" ]; then
	bin/scriptedmodel >"$state/upstream" &
	model=$!
	processes+=("$model")
	until [ -s "$state/upstream" ]; do
		kill -0 "$model" 2>/dev/null || { echo "run: the scripted model did not start" >&2 && exit 1; }
		sleep 0.05
	done
	UPSTREAM=$(head -n 1 "$state/upstream")
	MODEL=${MODEL:-scripted}
	echo "run: no UPSTREAM given, using the scripted model on $UPSTREAM" >&2
else
	key=" -H \"Authorization: Bearer \$API_KEY\""
	MODEL=${MODEL:-MODEL}
fi
if ! [[ $UPSTREAM =~ ^(https?://[^/]+)(/.*)?$ ]]; then
	echo "run: UPSTREAM '$UPSTREAM' is no URL: give a base URL such as http://127.0.0.1:11434/v1" >&2
	exit 1
fi
export UPSTREAM_ORIGIN=${BASH_REMATCH[1]} UPSTREAM_PATH=${BASH_REMATCH[2]:-/v1}
UPSTREAM_PATH=${UPSTREAM_PATH%/}
UPSTREAM_PATH=${UPSTREAM_PATH%/chat/completions}
export API_KEY=${API_KEY:-} MODEL

XDG_DATA_HOME=$state/data XDG_CONFIG_HOME=$state/config \
	bin/caddy run --config scripts/run.Caddyfile --adapter caddyfile &
gateway=$!
processes+=("$gateway")
for _ in {1..600}; do
	if ! kill -0 "$gateway" 2>/dev/null; then
		echo "run: the gateway did not start, its log is above" >&2
		exit 1
	fi
	if listens "$probe" "$LISTEN_PORT"; then break; fi
	sleep 0.1
done

if [ $# -gt 0 ]; then
	"$@"
	exit
fi

call() { # call MESSAGE [MORE FIELDS]
	printf "  curl -sN %s/chat/completions -H 'Content-Type: application/json'%s -d '%s'\n" "$BASE_URL" "$key" \
		"{\"model\":\"$MODEL\",\"messages\":[{\"role\":\"user\",\"content\":\"$1\"}],\"tools\":[{\"type\":\"code_interpreter\"}]$2}"
}
cat <<-EOF

	The gateway listens on $BASE_URL and forwards to $UPSTREAM_ORIGIN$UPSTREAM_PATH

	A call that runs code:
	$(call 'Run this Python: print(6*7)' '')

	The same, streamed:
	$(call 'Run this Python: print(6*7)' ',"stream":true')

	Two calls of one session; the second finds the variable of the first:
	$(call 'Run this Python: x = 42; print(x)' ',"metadata":{"session_id":"demo"}')
	$(call 'Run this Python: print(x)' ',"metadata":{"session_id":"demo"}')

	Ctrl-C ends it.

EOF
wait -n "${processes[@]}" || exit
