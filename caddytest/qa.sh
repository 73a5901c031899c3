#!/usr/bin/env bash
# Five checks with curl against a running gateway, with any model that can call
# tools. Ends with the first failure.
#
#	BASE_URL  default http://127.0.0.1:4000/v1
#	API_KEY   sent as a bearer token; default none
#	MODEL     default scripted
set -euo pipefail

base=${BASE_URL:-http://127.0.0.1:4000/v1}
model=${MODEL:-scripted}
run=qa-$$-$RANDOM$RANDOM # new sessions in every run

auth=()
if [ -n "${API_KEY:-}" ]; then auth=(-H "Authorization: Bearer $API_KEY"); fi

# strings NAME prints the values of the JSON strings of that name, still escaped.
strings() {
	grep -oE "\"$1\"[[:space:]]*:[[:space:]]*\"([^\"\\\\]|\\\\.)*\"" | sed -E "s/^\"$1\"[[:space:]]*:[[:space:]]*//" || true
}

# ask CODE [SESSION] has the code run and sets $answer to what came back and
# $seen to what the code printed and the model said.
ask() {
	local metadata='' status
	if [ -n "${2:-}" ]; then metadata=",\"metadata\":{\"session_id\":\"$2\"}"; fi
	answer=$(curl -sS --max-time 300 -w '\n%{http_code}' "$base/chat/completions" \
		-H 'Content-Type: application/json' ${auth[@]+"${auth[@]}"} \
		-d "{\"model\":\"$model\",\"tools\":[{\"type\":\"code_interpreter\"}]$metadata,\"messages\":[{\"role\":\"user\",\"content\":\"Run exactly this Python once with your tool, do not change it or try again, and repeat the output word for word, errors too: $1\"}]}") ||
		fail "curl could not reach $base"
	status=${answer##*$'\n'}
	answer=${answer%$'\n'*}
	[ "$status" = 200 ] || fail "status $status"
	seen=$(printf '%s' "$answer" | strings output)
	# Without executed_tools ("show off") only the model's words are left.
	[ -n "$seen" ] || seen=$(printf '%s' "$answer" | strings content)
}

step=''
fail() {
	printf 'FAIL  %s\n      %s\n' "$step" "$1" >&2
	[ -z "${answer:-}" ] || printf '      %s\n' "$answer" >&2
	exit 1
}
check() { # check TEXT: $seen has it
	case $seen in
	*"$1"*) printf 'ok    %s\n' "$step" ;;
	*) fail "no $1 in the answer" ;;
	esac
}

echo "Checking $base with model $model"

step='1. a session runs x = 42; print(x)'
ask 'x = 42; print(x)' "$run-a"
check 42

step='2. the same session prints 42 without setting it'
ask 'print(x)' "$run-a"
check 42

step='3. another session gets a NameError'
ask 'print(x)' "$run-b"
check NameError

step='4. a call without session_id runs code'
ask 'n = 12345679 * 63; print(n)'
check 777777777

step='5. a second call without session_id does not see its variable'
ask 'print(n)'
check NameError

echo "All five checks passed"
