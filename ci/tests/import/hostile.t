#!/bin/bash
# Range queries to misbehaving servers: each ends in time, with one clear line. No root, no network except the loopback.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
ask=$PWD/${OUT:-out}/tests/import/prometheus_test
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$tmp"' EXIT

# serve WHAT: starts the server; $port is its port.
serve() {
	[ -z "$server" ] || { kill "$server"; wait "$server" 2>/dev/null; }
	: >"$tmp/port"
	python3 ci/tests/import/hostile.py "$@" >"$tmp/port" 2>"$tmp/server.err" &
	server=$!
	until_true 20 test -s "$tmp/port" || { cat "$tmp/server.err"; return 1; }
	port=$(cat "$tmp/port")
}
ask() { timeout 60 "$ask" ask "$@" >"$tmp/said" 2>&1; echo "exit $?" >>"$tmp/said"; }
# says NAME PATTERN: the answer to the last question matches.
says() { if grep -qE -- "$2" "$tmp/said"; then ok "$1"; else not_ok "$1" "$(head -c 2000 "$tmp/said")"; fi; }

serve html
ask "http://127.0.0.1:$port" up 0 60 15
says "a web page is not an answer" '^error EPROTO: http://127.0.0.1:[0-9]*: the answer is not Prometheus'
serve cut
ask "http://127.0.0.1:$port" up 0 60 15
says "an answer that ends too early" '^error EPROTO: '
serve redirect
echo secret-token >"$tmp/token"
ask "http://127.0.0.1:$port" up 0 60 15 "token=$tmp/token"
says "a redirect is not followed" '^error EPROTO: .*redirect \(HTTP 302\)'
serve broken
ask "http://127.0.0.1:$port" up 0 60 15
says "a server's failure, escaped" '^error EPROTO: .*\(HTTP 500\): oh.x1b\[1m no$'
serve refused
ask "http://127.0.0.1:$port" up 0 60 15
says "Prometheus's own sentence, escaped" '^error EINVAL: .*\(HTTP 400\): 1:3: parse .x1b\[1m error$'
serve silent
ask "http://127.0.0.1:$port" up 0 60 15 timeout=1
says "a server that does not answer" '^error ETIMEDOUT: .*in 1 s'
serve slow
ask "http://127.0.0.1:$port" up 0 60 15 timeout=1
says "a server that never ends its answer" '^error ETIMEDOUT: .*in 1 s'
serve endless
(ulimit -v 1000000; ask "http://127.0.0.1:$port" up 0 60 15 timeout=2)
says "an answer without end takes no memory" '^error (ETIMEDOUT|EPROTO): '
serve limited
ask "http://127.0.0.1:$port" up 0 9990 10
says "ranges that are too much for the server are halved" '^done 9990$'
check "... and every sample comes once" [ "$(grep -c '^up a ' "$tmp/said") $(grep '^up b ' "$tmp/said" | sort -u | wc -l)" = "1000 1000" ]
serve huge
(ulimit -v 400000; ask "http://127.0.0.1:$port" up 0 179985 15)
says "100 MB of samples in bounded memory" '^done 179985$'
check "... and all of them" [ "$(grep -c '^up d\|^value d' "$tmp/said")" = 4800000 ]
kill "$server"; wait "$server" 2>/dev/null; server=
ask "http://127.0.0.1:$port" up 0 60 15
says "no server listens" '^error ECONNREFUSED: .*[Cc]onnect'
ask "http://no-such-host.invalid" up 0 60 15
says "no such host" '^error EHOSTUNREACH: '
ask "http://127.0.0.1:$port" up 0 60 15 "token=$tmp/none"
says "no token file" "^error ENOENT: cannot open '.*/none'"
printf 'two\nlines\n' >"$tmp/two"
ask "http://127.0.0.1:$port" up 0 60 15 "token=$tmp/two"
says "a token is one line" "^error EINVAL: '.*/two' must hold one line"
done_testing
