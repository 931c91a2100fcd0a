#!/bin/bash
# ci/bench/live_page.sh OUT [SEED|compare]: a live capture of a lab while a scenario runs there, examined and asked. Root.
#
#     culprit trace --inventory ... --live -o OUT/live
#     culprit run scenarios/quick.lua -o OUT/quick            (SCENARIO and ONLY choose others)
#     culprit serve OUT/live --beside OUT/quick
#
# In a headless Chromium the page is drawn before the first disk hog, while it acts, and after its cell's verdicts, as OUT/MOMENT-WIDTH.png
# (1280 and 390 pixels); what stands above its charts is printed, and how long a mark took to appear. Then capture and run are shipped
# to a ClickHouse on loopback, and each question below is asked of the logs and of the store: the answers are compared byte by byte.
# "compare" does that alone, with the folders that are there.
set -u
[ $# -ge 1 ] || { echo "usage: $0 OUT [SEED|compare]" >&2; exit 2; }
mkdir -p "$1" || exit 2
dir=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 2
. ci/tests/tap.sh
. ci/tests/web/browser.sh
. ci/tests/ship/clickhouse.sh
culprit=$PWD/${OUT:-out}/culprit
lab=${LAB:-/run/culprit/bench-live-page}
subnet=${SUBNET:-10.97.0.0/24}
scenario=${SCENARIO:-scenarios/quick.lua}
live=$dir/live run=$dir/${NAME:-quick}
for program in chromedriver curl perl python3; do
	command -v $program >/dev/null || { echo "no $program"; exit 1; }
done
capture="" runner="" server="" clickhouse_pid="" built=""
trap 'browser_stop; kill $runner $capture $server 2>/dev/null; [ -z "$clickhouse_pid" ] || clickhouse_kill; wait 2>/dev/null
	[ -z "$built" ] || "$culprit" lab down --dir "$lab" >/dev/null 2>&1; rm -rf "$dir/browser" "$dir/cache" "$dir/config" "$dir/store"' EXIT
export XDG_CACHE_HOME=$dir/cache XDG_CONFIG_HOME=$dir/config

size() { browser_cdp Emulation.setDeviceMetricsOverride "{\"width\":${1%x*},\"height\":${1#*x},\"deviceScaleFactor\":1,\"mobile\":false}" >/dev/null; }
# What the run says of itself: PYTHON over s (status.json) and c (its cell).
status() {
	python3 -c 'import json, sys
s = json.load(open(sys.argv[1])); print(eval(sys.argv[2], {"s": s, "c": s.get("cell") or {}}))' "$run/status.json" "$1" 2>/dev/null
}
# shellcheck disable=SC2317 # called by until_true
is_so() { [ "$(status "$1")" = True ]; }
look() { # MOMENT: what stands above the charts, and pictures
	local at
	printf -- '-- %s\n' "$1"
	browser_eval 'return [...byId("marks").children].map((line) => [...line.children].map((mark) => mark.textContent).join("; ")).join("\n")'
	echo
	for at in 1280x900 390x844; do
		size $at
		browser_wait 'panels.every((p) => !p.seen || p.chart && p.chart.canvas.width === p.chart.canvas.clientWidth || p.box.dataset.state === "empty")' >/dev/null
		browser_cdp Page.captureScreenshot '{"format":"png"}' data | base64 -d >"$dir/$1-${at%x*}.png"
	done
	size 1280x900
}
stands() { # TEXT ...: waits for a line above the charts with all of them
	local js='(text) => true' text
	for text in "$@"; do js="(text) => text.includes('$text') && ($js)(text)"; done
	browser_wait "[...document.querySelectorAll('#marks .cell')].some((line) => ($js)(line.textContent))"
}
# shellcheck disable=SC2317
judged() { [ "$("$culprit" query --csv "$run" "select count(*) from verdicts where attempt in (select id from attempts where cell = $number)" 2>/dev/null | tail -1)" -gt 0 ]; }

watch() { # OUT [SEED]
	built=yes
	"$culprit" lab up --dir "$lab" --subnet "$subnet" >/dev/null || exit 1
	"$culprit" trace --inventory "$lab/inventory.lua" --live -o "$live" >"$dir/trace.txt" 2>&1 &
	capture=$!
	until_true 60 test -S "$live/control" || { cat "$dir/trace.txt"; exit 1; }
	"$culprit" run "$scenario" -i "$lab/inventory.lua" ${ONLY:+--only "$ONLY"} --seed "${2:-1}" -o "$run" >"$dir/table.txt" 2>"$dir/run.txt" &
	runner=$!
	until_true 60 test -e "$run/status.json" || { cat "$dir/run.txt"; exit 1; }
	"$culprit" serve "$live" --beside "$run" >"$dir/address" 2>"$dir/serve.txt" &
	server=$!
	until_true 60 test -s "$dir/address" || { cat "$dir/serve.txt"; exit 1; }
	browser_start "$dir/browser" || exit 1
	browser_cdp Emulation.setEmulatedMedia '{"features":[{"name":"prefers-color-scheme","value":"light"}]}' >/dev/null
	size 1280x900
	browser_open "$(cat "$dir/address")#last=60"
	browser_wait 'document.documentElement.dataset.ready'
	hog='"disk-hog" in c.get("title", "")'
	until_true 1800 is_so "$hog and s['phase'] == 'before the fault'"
	sleep 4
	look before
	until_true 600 is_so "$hog and c['onset_ns'] > 0"
	number=$(status 'c["number"]')
	onset=$(status 'c["onset_ns"] / 1e9')
	stands "fault: cell $number:"
	echo "the mark of the fault stood on the page $(bc <<<"$EPOCHREALTIME - $onset") s after the fault was seen to act"
	sleep 8
	look during
	until_true 600 judged
	verdict=$EPOCHREALTIME
	stands "cell $number:" "verdict: peer-robust"
	echo "the verdict stood on the page $(bc <<<"$EPOCHREALTIME - $verdict") s after it could be asked of the run"
	look verdict
	wait "$runner"
	echo "the run ended with $?"
	# The last two minutes, until the capture has come to its end.
	browser_eval 'choose({last: "60"}); return 1' >/dev/null
	sleep 6
	look end
	"$culprit" trace --control "$live" stop >/dev/null
	wait "$capture"
	echo "the capture ended with $?"
	cat "$dir/trace.txt" "$dir/run.txt"
	"$culprit" query "$live" "select (select count(*) from events) calls, (select coalesce(sum(count), 0) from losses) lost"
}

if [ "${2-}" != compare ]; then
	if [ -e "$live" ] || [ -e "$run" ]; then echo "'$live' or '$run' exists"; exit 2; fi
	watch "$@"
fi

# The same questions, of the logs and of a store.
command -v clickhouse-server >/dev/null || { echo "no clickhouse-server: nothing is compared"; exit 0; }
mkdir "$dir/store"
port=$(free_port)
clickhouse_start "$dir/store" "$port" || exit 1
at=clickhouse://127.0.0.1:$port
"$culprit" ship "$live" --to "$at/live" 2>&1 | tail -1
"$culprit" ship "$run" --to "$at/run" 2>&1 | tail -1
n=0 differ=0
ask() { # DATABASE FOLDER SQL
	local here there
	"$culprit" query --json "$2" "$3" >"$dir/here.json" 2>"$dir/here.txt"
	here=$?
	"$culprit" query --json --on "$at/$1" "$3" >"$dir/there.json" 2>"$dir/there.txt"
	there=$?
	n=$((n + 1))
	if [ $here = 0 ] && [ $there = 0 ] && cmp -s "$dir/here.json" "$dir/there.json"; then
		printf 'same    %8d rows %10d bytes  %s: %s\n' "$(wc -l <"$dir/here.json")" "$(wc -c <"$dir/here.json")" "$1" "$3"
	else
		differ=$((differ + 1))
		printf 'DIFFER  exit codes %d and %d  %s: %s\n' $here $there "$1" "$3"
		head -c 600 "$dir/here.txt" "$dir/there.txt"
		diff "$dir/here.json" "$dir/there.json" | head -4
	fi
}
while IFS= read -r sql; do ask live "$live" "$sql"; done <<'END'
select count(*) n, min(time_ns) a, max(time_ns) b, sum(bytes) bytes from events
select node, owner, call, sum(calls) calls, sum(errors) errors, sum(bytes) bytes, sum(total_ns) ns, max(max_ns) most from totals group by 1, 2, 3
select second, node, sum(calls) calls, sum(total_ns) ns from totals where owner = 'server' and kind = 'file' and class = 'write' group by 1, 2
select node, percentile(service_ns, 50) p50, percentile(service_ns, 99) p99, max(service_ns) most from events where kind = 'file' and class in ('read', 'write') group by 1
select node, call, errno, sum(calls) n from totals where errno is not null group by 1, 2, 3
select path, sum(calls) calls, sum(bytes) bytes from totals where path is not null group by 1
select node, peer, class, sum(bytes) bytes from totals where peer is not null and class in ('read', 'write') group by 1, 2, 3
select number, node, t, thread, call, path, offset, bytes, service_ns from events where service_ns > 300000000 and kind = 'file'
select log, count(*) n from descriptors group by 1
select log, pid, tid, name, t from processes
END
while IFS= read -r sql; do ask run "$run" "$sql"; done <<'END'
select * from cells
select id, cell, number, outcome, start_ns, onset_ns, offset_ns, ended_ns, seconds from attempts
select key, value from facts
select fault, node, phase, fd_class, class, sum(calls) calls, sum(total_ns) ns, sum(bytes) bytes from sums join cells on cells.number = cell group by 1, 2, 3, 4, 5
select cell, node, floor(t) s, sum(calls) calls, sum(total_ns) ns from sums where fd_class = 'disk' group by 1, 2, 3
select fault, node, reading, count(*) n, max(max) most from readings join cells on cells.number = cell group by 1, 2, 3
select cell, node, max(t) t, max(sum) busy from readings where reading = 'disk_busy_s' and thing is null group by 1, 2
select cell, node, log, count(*) n, max(t) t from processes group by 1, 2, 3
END
echo "$n questions, $differ answered differently"
[ $differ = 0 ]
