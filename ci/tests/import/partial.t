#!/bin/bash
# Servers that report missing series: findings are marked, and so is a result without findings. No root, no network except the
# loopback.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/schema.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
server="" watch=""
trap 'for p in $server $watch; do kill "$p" 2>/dev/null; done; wait; rm -rf "$tmp"' EXIT

# serve WHAT: starts the server; $url is its address.
serve() {
	[ -z "$server" ] || { kill "$server"; wait "$server" 2>/dev/null; }
	: >"$tmp/port"
	python3 ci/tests/import/hostile.py "$@" >"$tmp/port" 2>"$tmp/server.err" &
	server=$!
	until_true 20 test -s "$tmp/port" || { cat "$tmp/server.err"; return 1; }
	url=http://127.0.0.1:$(cat "$tmp/port")
}
diagnose() { timeout 60 "$culprit" diagnose --prometheus "$url" --query read_ms=x --from 2026-11-20 --to 2026-11-20T06:00:00Z --step 60s "$@" >"$tmp/said" 2>&1; }
# says NAME PATTERN [FILE]
says() { if grep -qE -- "$2" "$tmp/${3:-said}"; then ok "$1"; else not_ok "$1" "$(head -c 2000 "$tmp/${3:-said}")"; fi; }
silent() { if grep -qE -- "$2" "$tmp/${3:-said}"; then not_ok "$1" "$(head -c 2000 "$tmp/${3:-said}")"; else ok "$1"; fi; }

serve whole
diagnose
says "a complete answer: a finding" '^1 finding: 1 lasting$'
silent "... without a word of partial data" partial
diagnose --json
says "the JSON of a complete answer is not partial" '"partial": false'
for what in 'is_partial (isPartial)' 'status_206 (HTTP 206)' 'warns store s1: not ready'; do
	serve "${what%% *}"
	diagnose
	says "${what%% *}: the result is marked" '^1 finding in partial data: 1 lasting$'
	says "${what%% *}: with the reason" "^partial data: the server .*${what#* }"
	says "${what%% *}: each finding is marked" 'h0/sdb .* lasting  partial$'
	diagnose --least 9
	says "${what%% *}: a result without findings is marked" '^0 findings in partial data$'
	diagnose --json
	fits diagnose "$tmp/said"
	check "${what%% *}: the JSON is marked" [ "$(grep -c '"partial": true' "$tmp/said")" = 2 ]
	diagnose --report "$tmp/report.html"
	says "${what%% *}: the report's data is marked" '"partial": ?true' report.html
done
diagnose
says "an info is a note" '^  the server says: metric might not be a counter$'
serve whole
diagnose --query read_ms=y
says "two queries with the same series: refused" "the queries 'x' and 'y' give the same series"
serve none_but_warns
diagnose
says "no series: the error has the warning" 'the queries give no series; the server warns: no store$'

serve is_partial
watch_args=(watch --prometheus "$url" --query read_ms=x --step 1s --horizon 10min)
timeout 60 "$culprit" "${watch_args[@]}" --once >"$tmp/out" 2>"$tmp/err"
says "watch: the line of a finding is marked" ' begin h0/sdb: .*; the data is partial$' out
says "watch: with the reason" 'the server says that its answer is partial' err
timeout 60 "$culprit" "${watch_args[@]}" --once --json >"$tmp/out" 2>"$tmp/err"
says "watch: JSON" '"partial":true' out
fits watch "$tmp/out"
timeout 60 "$culprit" "${watch_args[@]}" --once --least 9 >"$tmp/out" 2>"$tmp/err"
says "watch: without a finding" 'the server says that its answer is partial' err
serve recovers
"$culprit" watch --prometheus "$url" --query read_ms=x --step 1s --horizon 10min --interval 500ms >"$tmp/out" 2>"$tmp/err" &
watch=$!
check "watch: complete answers are reported again" until_true 60 grep -q "the server's answers are complete again" "$tmp/err"
check "watch: partial answers are reported once" [ "$(grep -c 'answer is partial' "$tmp/err")" = 1 ]
done_testing
