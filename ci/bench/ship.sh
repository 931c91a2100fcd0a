#!/bin/bash
# What it takes to send a log to ClickHouse, and to ask it there: records a second and core of the shipper, processor time of
# the server, bytes a record that are stored, and questions to the store next to the same questions to the log. A database's
# log of SHIP_RECORDS (5 million) calls. Goals: 1 million records/s/core, 25 bytes a record.
set -eu
cd "$(dirname "$0")/../.."
. ci/tests/tap.sh
. ci/tests/ship/clickhouse.sh
command -v clickhouse-server >/dev/null || { echo "no clickhouse-server ('make check-all' installs it)"; exit 0; }
culprit=${OUT:-out}/culprit
dir=$(mktemp -d)
clickhouse_pid=
trap 'kill -KILL $clickhouse_pid 2>/dev/null || true; rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
records=${SHIP_RECORDS:-5000000}
"${OUT:-out}/bench/query_rate" "$dir/log" "$records" make
port=$(free_port)
clickhouse_start "$dir/server" "$port"
at=clickhouse://127.0.0.1:$port/bench
sql() { clickhouse_sql "$port" "$1"; }
ticks() { awk '{ sub(/^.*\) /, ""); print $12 + $13 }' "/proc/$clickhouse_pid/stat"; }
hz=$(getconf CLK_TCK)
TIMEFORMAT='%R %U %S'
before=$(ticks)
took=$({ time "$culprit" ship "$dir/log" --to "$at" >/dev/null; } 2>&1)
after=$(ticks)
rows=$(sql "select count() from bench.rows_events")
lines=$({ time "$culprit" ship "$dir/log" --to - >/dev/null 2>&1; } 2>&1)
sql "optimize table bench.rows_events final" >/dev/null || true
stored=$(sql "select sum(bytes) from system.parts where active and database = 'bench' and table = 'rows_events'")
log=$(stat -c %s "$dir/log")
awk -v t="$took" -v l="$lines" -v n="$records" -v rows="$rows" -v server=$(((after - before))) -v hz="$hz" -v stored="$stored" -v log_bytes="$log" 'BEGIN {
	split(t, a, " "); split(l, b, " ")
	printf "records                        %d, of them %d rows of events\n", n, rows
	printf "shipper: records/s/core        %.2f million (%.2f s of processor, %.1f s in all)\n", n / (a[2] + a[3]) / 1e6, a[2] + a[3], a[1]
	printf "server: records/s/core         %.2f million (%.2f s of processor, with merges until then)\n", n / (server / hz) / 1e6, server / hz
	printf "JSON lines: records/s/core     %.2f million\n", n / (b[2] + b[3]) / 1e6
	printf "stored                         %.1f bytes a record (the log: %.1f)\n", stored / rows, log_bytes / n }'
ask() { # QUESTION: seconds at the log, and at the store
	local here there a b
	a=$(date +%s%N); "$culprit" query --csv "$dir/log" "$1" >"$dir/here"; b=$(date +%s%N); here=$(((b - a) / 1000000))
	a=$(date +%s%N); "$culprit" query --csv --on "$at" "$1" >"$dir/there"; b=$(date +%s%N); there=$(((b - a) / 1000000))
	cmp -s "$dir/here" "$dir/there" || { echo "the answers differ: $1"; exit 1; }
	printf '%8d ms %8d ms  %s\n' "$here" "$there" "$1"
}
echo "        log       store"
ask "select call, sum(calls), sum(bytes), max(max_ns) from totals group by call"
ask "select thread, path, sum(calls) from totals group by 1, 2 order by 3 desc, 1, 2 limit 5"
ask "select count(*), max(service_ns) from events where call = 'fsync'"
ask "select count(*) from events where t between 3 and 3.1"
ask "select count(*), avg(service_ns) from events where class = 'read' and path like '%7.sst'"
