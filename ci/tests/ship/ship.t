#!/bin/bash
# culprit ship and culprit query --on: JSON lines; and with a ClickHouse of the test's own: the same answers as the logs
# give, each record exactly once whoever is killed, and stores that are full, gone, slow, closed or another's. No root.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/schema.sh
. ci/tests/ship/clickhouse.sh
culprit=$PWD/${OUT:-out}/culprit
pages=$PWD
killing=$PWD/ci/tests/ship/killing.py
dir=$(mktemp -d)
pids=()
trap 'kill -KILL "${pids[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache XDG_CONFIG_HOME=$dir/config
unset CULPRIT_CLICKHOUSE_USER CULPRIT_CLICKHOUSE_PASSWORD
for log in lab-kill.s2.fs lab-none.s1.fs; do zcat ci/tests/data/$log.log.gz >"$dir/$log"; done
tar -xzf ci/tests/data/lab-flow.tar.gz -C "$dir"
cd "$dir" || exit 1
run=tiny

ends() { # CODE PATTERN COMMAND...: ends so, and says a line like that
	local code=$1 pattern=$2
	shift 2
	timeout 300 "$@" >said 2>&1
	local got=$?
	[ $got = "$code" ] && grep -Eq -- "$pattern" said || { echo "exit code $got"; head -c 2000 said; return 1; }
}

# JSON lines.
lines() {
	"$culprit" ship --to run.jsonl $run >said 2>&1 && python3 - "$culprit" $run <<'PY'
import json, subprocess, sys
rows = {}
for line in open("run.jsonl"):
    row = json.loads(line)
    rows.setdefault(row.pop("table"), []).append(row)
for table in ("events", "descriptors", "processes", "fuse", "requests"):
    out = subprocess.run([sys.argv[1], "query", "--json", sys.argv[2], f"select * from {table}"], capture_output=True, check=True).stdout
    want = [{k: v for k, v in json.loads(line).items() if v is not None} for line in out.splitlines()]
    assert len(want) > 100 and rows[table] == want, (table, len(want), len(rows[table]))
PY
}
check "JSON lines are the rows of culprit query" lines
check "'-' is standard output" bash -c "'$culprit' ship --to - $run 2>/dev/null | cmp - run.jsonl"
counts() { # what is told is what is there: rows, and records that are none
	"$culprit" ship --json --to again.jsonl lab-none.s1.fs 2>said && python3 - <<'PY'
import json
c = json.loads(open("said").readline())
assert c["sent"] == sum(1 for _ in open("again.jsonl")) > 1000 and c["records"] == c["sent"] + c["not_rows"], c
assert c["whole"] and c["lost_by_tracer"] == 0 == c["before"], c
PY
}
check "records are counted" counts
head -c 70000 lab-none.s1.fs >'cut'
check "a log cut short: what is whole is sent, and it is told" ends 2 "cut' is cut short at byte" "$culprit" ship --to cut.jsonl cut
# A log that is being written, which ends in the middle of a block most of the time.
size=$(stat -c %s lab-none.s1.fs)
sized() { [ "$(stat -c %s grows.log 2>/dev/null)" = "$1" ]; }
follow_lines() {
	coproc TRACER { python3 "$pages/ci/tests/ship/growing.py" lab-none.s1.fs grows.log; }
	local to=${TRACER[1]} tracer=$TRACER_PID part
	echo 100 >&"$to"
	until_true 60 sized 100 || return 1
	ends 2 'it is 100 bytes long' "$culprit" query grows.log "select 1" || return 1
	echo 50000 >&"$to"
	until_true 60 sized 50000 || return 1
	# What is whole can be asked, and nothing is wrong with it.
	ends 0 '"n": *[1-9]' "$culprit" query --json grows.log "select count(*) n from events" || return 1
	"$culprit" ship --follow --to - grows.log >followed 2>followed.said &
	local follower=$!
	for part in 50001 62000 75130 "$size"; do
		echo "$part" >&"$to"
		until_true 60 sized "$part" || return 1
		part=$("$culprit" ship --to - grows.log 2>/dev/null | wc -l)
		until_true 60 bash -c "[ \$(wc -l <followed) -ge $part ]" || { cat followed.said; return 1; }
	done
	exec {to}>&-
	wait "$tracer" "$follower" || { cat followed.said; return 1; }
	"$culprit" ship --to - grows.log >all 2>all.said && cmp all followed && diff all.said followed.said && grep -q '2937 sent' all.said
}
if follow_lines >said 2>&1; then ok "a log that grows is followed to its end"; else not_ok "a log that grows is followed to its end" "$(cat said)"; fi
check "a file that cannot be made" ends 2 "cannot write '/nowhere/x'" "$culprit" ship --to /nowhere/x lab-none.s1.fs
check "a log that is none leaves no file" ends 2 'is not a trace log' "$culprit" ship --to none.jsonl /proc/version
check "nor anything beside it" test -z "$(ls none.jsonl* ./*.part 2>/dev/null)"

# Bad input that needs no store.
check "no --to" ends 2 'needs --to clickhouse://' "$culprit" ship lab-none.s1.fs
check "an address without a database" ends 2 'names a host and a database' "$culprit" ship lab-none.s1.fs --to clickhouse://127.0.0.1:1
check "a password on the command line" ends 2 'must hold no user and password' \
	"$culprit" ship lab-none.s1.fs --to clickhouse://me:sesame@127.0.0.1:1/x
check "a name that would be SQL" ends 2 "the database's name has" "$culprit" ship lab-none.s1.fs --to 'clickhouse://127.0.0.1:1/a;b'
check "a store that is gone" ends 3 'http://127.0.0.1:1: Failed to connect' "$culprit" ship lab-none.s1.fs --to clickhouse://127.0.0.1:1/x
check "--on takes no logs" ends 2 'takes the query alone' "$culprit" query --on clickhouse://127.0.0.1:1/x lab-none.s1.fs "select 1"
python3 -c '
import socket, time
s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1], flush=True); time.sleep(3600)' >slow &
pids+=($!)
until_true 60 grep -q . slow
check "a store that does not answer: a limit" ends 3 'did not answer to the end in 0.3 s' \
	"$culprit" ship --timeout 300ms lab-none.s1.fs --to "clickhouse://127.0.0.1:$(cat slow)/x"
python3 -m http.server --bind 127.0.0.1 0 >other 2>&1 &
pids+=($!)
until_true 60 grep -q 'port [0-9]' other
check "what answers there is no ClickHouse" ends 3 'refuses \(HTTP 501\)' "$culprit" ship lab-none.s1.fs \
	--to "clickhouse://127.0.0.1:$(sed -n 's/.*port \([0-9]*\).*/\1/p' other)/x"

# Dashboards.
"$culprit" ship --dashboard dashboard.json 2>said
check "a dashboard; what is not shipped is no panel, and told" bash -c "[ -s dashboard.json ] && [ \"\$(cat said)\" = \"culprit ship: the view 'verdicts' is omitted: 'verdicts' is not shipped\" ]"
if [ "$schema_python" ]; then
	check "it is a dashboard" "$schema_python" -c 'import json, sys, jsonschema
jsonschema.Draft202012Validator(json.load(open(sys.argv[1]))).validate(json.load(open("dashboard.json")))' "$pages/ci/tests/ship/grafana.schema.json"
else
	ok "it is a dashboard # SKIP no python3-jsonschema"
fi
mkdir own
printf 'title: Mine\nchart: line\nquery:\nselect floor(t), count(*) n from events group by 1\n' >own/mine.view
printf 'title: Bad\nchart: line\nquery:\nselect nowhere from events\n' >own/bad.view
printf 'title: With\nchart: table\nquery:\nwith x as (select call from events) select * from x\n' >own/with.view
"$culprit" ship --dashboard - --views own >own.json 2>said
check "views of one's own are panels" grep -q '"title": "Mine"' own.json
check "a wrong one is told with its line" grep -q 'own/bad.view:4: .*no such column: nowhere' said
check "one that cannot be had, with the reason" grep -q "the view 'with' is omitted: its query does not begin with SELECT" said
check "a dashboard is of no run" ends 2 'takes no run and no logs' "$culprit" ship lab-none.s1.fs --dashboard no.json
check "... and goes nowhere" ends 2 'means nothing with --dashboard' "$culprit" ship --dashboard no.json --to no.jsonl
check "neither logs nor a dashboard" ends 2 'which logs, or run' "$culprit" ship --to no.jsonl
check "nowhere to" ends 2 'needs --to .*--pack' "$culprit" ship lab-none.s1.fs
check "--whole is of what is packed" ends 2 'whole needs --pack' "$culprit" ship lab-none.s1.fs --to no.jsonl --whole
check "a database that would be SQL" ends 2 'takes letters, digits and _' "$culprit" ship --dashboard - --database 'a;b'
check "no such folder of views" ends 2 nowhere "$culprit" ship --dashboard - --views nowhere

for program in clickhouse-server curl openssl python3; do
	command -v $program >/dev/null && continue
	ok "ClickHouse # SKIP no $program ('make check-all' installs it)"
	done_testing
done
server=$dir/server
mkdir "$server"
port=$(free_port)
secure=$(free_port)
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$server/key.pem" -out "$server/cert.pem" -days 2 -subj /CN=localhost \
	-addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' >/dev/null 2>&1
clickhouse_start "$server" "$port" "$secure" || { ok "ClickHouse # SKIP it does not start here"; tail -n 5 "$server/errors"; done_testing; }
pids+=("$clickhouse_pid")
at=clickhouse://127.0.0.1:$port

# The same questions, the same answers: each as JSON lines, with its exit code.
same() { # DATABASE QUESTION LOG...
	local there=$1 sql=$2 a b
	shift 2
	"$culprit" query --json "$@" "$sql" >here.json 2>here.err
	a=$?
	"$culprit" query --json --on "$at/$there" "$sql" >there.json 2>there.err
	b=$?
	[ $a = $b ] && cmp here.json there.json || { echo "$a $b: $sql"; diff here.json there.json | head -5; cat there.err; return 1; }
}
all_same() { # DATABASE FILE LOG...: each line of FILE
	local sql n=0
	while IFS= read -r sql; do
		same "$1" "$sql" "${@:3}" || return 1
		n=$((n + 1))
	done <"$2"
	[ $n -gt 5 ]
}
cat >of_logs <<'END'
select * from events
select * from descriptors
select * from processes
select * from totals
select * from threads
select log, second, phase, call, errno, calls, errors, bytes, total_ns, max_ns, p50_ns, p99_ns from totals
select second, sum(calls), max(p99_ns) from totals group by 1
select count(*), sum(calls) from totals where second between 1 and 2 and call in ('readv', 'futex')
select number, t from events where t > 0.5 and t < 0.9
select number, path from events where path like '/%' and result > 3.5 and errno is null
select count(*) from events where path = '/x'' or 1 = 1 --\' or kind = 'socket'
select count(*) from events where fd = '7' or fd > 5.5 and time_ns > 1e18
select a.call, count(*) from events a join processes p on a.tid = p.tid and a.log = p.log group by 1 order by 1
select call, round(percentile(service_ns, 99)) from events where tid in (7, 8, 9, 22) group by 1
select nowhere from events
select * from requests
END
cat >of_run <<'END'
select * from requests
select procedure, phase, count(*), sum(disk_ns), percentile(total_ns, 99) from requests where server = 's3' group by 1, 2
select number, t, path from requests where t > 5 and path is not null and disk_calls > 1
select * from cells
select * from attempts
select * from facts
select fault, node, phase, sum(calls), max(p99_ns), count(*) from totals join cells on cells.number = cell group by 1, 2, 3
select node, second, phase, owner, calls, max_ns from totals where phase = 'during'
select fault, node, phase, percentile(service_ns, 99) from events join cells on cells.number = cell where owner = 'server' group by 1, 2, 3
select * from events where t between 4 and 4.5 and node = 's3'
select * from fuse
select count(*), min(t), max(t) from events where phase = 'after'
select number, call, bytes, result from events where result is null or bytes > 100000 or call = 'openat'
select node, call, sum(calls) from totals where node = 's1' or errno = 'EAGAIN' group by 1, 2
select count(*) from requests where server = 's1' or procedure = 'READ' or cell = 2
select * from requests where cell = 1
END
check "two logs are sent" ends 0 'lab-none.s1.fs: 2938 records: 2937 sent, 0 there before' "$culprit" ship --blocks 2 lab-none.s1.fs lab-kill.s2.fs --to "$at/logs"
check "logs: the same questions, the same answers" all_same logs of_logs lab-none.s1.fs lab-kill.s2.fs
check "sent again: nothing is" ends 0 'lab-kill.s2.fs: 1370 records: 0 sent, 1370 there before' "$culprit" ship lab-none.s1.fs lab-kill.s2.fs --to "$at/logs"
check "a run is sent" ends 0 'cells/0002.1: 625 requests: 625 sent' "$culprit" ship $run --to "$at/run"
check "a run: the same questions, the same answers" all_same run of_run $run
views() { # other programs ask the tables as they are called here
	local columns="number, t, phase, node, owner, log, thread, call, path, bytes"
	clickhouse_sql "$port" "select $columns from run.events order by log, number format CSV" | tr -d '"' | sed 's/\\N//g' >there.csv
	"$culprit" query --csv $run "select $columns from events order by log, number" | tail -n +2 | tr -d '"' >here.csv
	[ -s here.csv ] && python3 - <<'PY'
for a, b in zip(open("here.csv"), open("there.csv"), strict=True):
    a, b = a.rstrip("\n").split(","), b.rstrip("\n").split(",")
    assert a[:1] + a[2:] == b[:1] + b[2:] and abs(float(a[1]) - float(b[1])) < 1e-9, (a, b)
PY
}
check "views are the same to other programs" views

# Each panel runs there, and answers what the view answers here.
panels() { python3 "$pages/ci/tests/ship/panels.py" "$culprit" dashboard.json "$pages/harness/web/serve/views" "$port" "$@"; }
check "panels of two logs" panels logs 0 lab-none.s1.fs lab-kill.s2.fs
check "panels of a run" panels run "$(sqlite3 $run/run.db 'select id from attempt')" $run
zcat "$pages/ci/tests/data/lab-ddw.s1.samples.gz" >samples
"$culprit" ship samples --to "$at/samples" 2>/dev/null
check "panels of a sampler's log" bash -c '"$@" | grep -q "^Disks busy, by node: [1-9]"' - python3 "$pages/ci/tests/ship/panels.py" "$culprit" dashboard.json "$pages/harness/web/serve/views" "$port" samples 0 samples

page() { # what diag/query/README.md asks of requests
	local sql=$(perl -0777 -ne 'print $1 if /^ {4}culprit query RUN "(select [^"]*from requests[^"]*)"/ms' "$page")
	[ -n "$sql" ] && same run "$sql" $run && [ "$(wc -l <here.json)" -ge 3 ]
}
page=$pages/diag/query/README.md
check "the page's question to requests" page

# A log that grows, and one that is cut short: sent as far as it is whole, then the rest.
grows() {
	cp cut growing
	ends 2 "growing' is cut short at byte" "$culprit" ship growing --to "$at/grows" || return 1
	ends 2 "growing' is cut short at byte" "$culprit" query --on "$at/grows" "select count(*) from events" || return 1
	cp lab-none.s1.fs growing && ends 0 'growing: 2938 records: [1-9][0-9]* sent, [1-9][0-9]* there before' "$culprit" ship growing --to "$at/grows" &&
		same grows "select * from events" growing
}
check "a log cut short, and the rest of it later" grows

# Followed while it is written, by shippers that are killed: each record once.
rows_there() { [ "$(clickhouse_sql "$port" "select count() from followed.events")" -ge "$1" ]; }
follow_killed() {
	rm -f grows.log
	coproc WRITER { python3 "$pages/ci/tests/ship/growing.py" lab-none.s1.fs grows.log; }
	local to=${WRITER[1]} writer=$WRITER_PID part n
	for part in 40000 60000 75130 "$size"; do
		echo "$part" >&"$to"
		until_true 60 sized "$part" || return 1
		n=$("$culprit" query --json grows.log "select count(*) n from events" | tr -dc 0-9)
		"$culprit" ship --follow --to "$at/followed" grows.log >followed.said 2>&1 &
		local follower=$!
		until_true 60 rows_there "$n" || { cat followed.said; return 1; }
		kill -KILL $follower
		wait $follower 2>/dev/null
	done
	exec {to}>&-
	wait "$writer"
	ends 0 'grows.log: 2938 records: [0-9]* sent, [1-9][0-9]* there before' "$culprit" ship --follow --to "$at/followed" grows.log &&
		same followed "select * from events" grows.log
}
if follow_killed >said.killed 2>&1; then ok "followed by shippers that are killed: each record once"
else not_ok "followed by shippers that are killed: each record once" "$(cat said.killed)"; fi

# Who may not.
check "another run" ends 2 "holds the run tiny" "$culprit" ship lab-none.s1.fs --to "$at/run"
check "logs, and then a run" ends 2 "holds logs outside of runs" "$culprit" ship $run --to "$at/logs"
check "a database without logs" ends 2 "there are no shipped logs in the database 'none'" "$culprit" query --on "$at/none" "select 1"
clickhouse_sql "$port" "create database old" && clickhouse_sql "$port" "create table old.culprit_schema (version Int64, digest String) engine = MergeTree order by version"
clickhouse_sql "$port" "insert into old.culprit_schema values (0, 'x')"
check "another schema: ship" ends 2 "'old' holds logs in schema 0" "$culprit" ship lab-none.s1.fs --to "$at/old"
check "another schema: query" ends 2 "'old' holds logs in schema 0" "$culprit" query --on "$at/old" "select 1"
tls=(--to "clickhouses://127.0.0.1:$secure/tls" lab-none.s1.fs)
check "TLS by an unknown certificate" ends 3 'TLS: SSL certificate problem' "$culprit" ship "${tls[@]}"
check "a wrong password" ends 3 'does not let this user in' env CULPRIT_CLICKHOUSE_USER=me CULPRIT_CLICKHOUSE_PASSWORD=wrongword "$culprit" ship "${tls[@]}" --ca "$server/cert.pem"
check "and it is not told" bash -c '! grep -q wrongword said'
check "user and password from the environment" ends 0 '2937 sent' env CULPRIT_CLICKHOUSE_USER=me CULPRIT_CLICKHOUSE_PASSWORD=sesame \
	"$culprit" ship "${tls[@]}" --ca "$server/cert.pem"
echo me:sesame >secret
check "and from a file" ends 0 ' 0 sent' "$culprit" ship "${tls[@]}" --ca "$server/cert.pem" --password-file secret

# Killed at a request, before and after the server has seen it: what is there at last is there once.
exact() { # DATABASE: all rows, none twice
	local table
	for table in events descriptors processes fuse requests; do
		same "$1" "select count(*), count(distinct attempt || ' ' || number || ' ' || time_ns), sum(time_ns % 1000003) from $table" $run || return 1
	done
	same "$1" "select * from totals" $run
}
ship_run=("$culprit" ship --blocks 2 "$run" --to)
killed() { # at requests around the first batches, in all four ways, and so on with what is left
	local n=0 k when whens=(before half whole after) code
	for k in 3 20 33 43 ${CULPRIT_SOAK:+$(seq 14 43)} 17 19 20 21 22 23 24 25 26 28 30 33; do
		when=${whens[n++ % 4]}
		python3 "$killing" "$port" "$k" "$when" "${ship_run[@]}" clickhouse://127.0.0.1:@/killed >killed.said 2>&1
		code=$?
		[ $code = 137 ] || [ $code = 0 ] || { cat killed.said; return 1; }
		echo "$k $when $code" >>kills
	done
	[ "$(grep -c '137$' kills)" -ge 12 ] && "${ship_run[@]}" "$at/killed" >last && grep -q '[1-9][0-9]* there before' last && exact killed
}
check "a shipper that is killed again and again: each record once" killed
check "though the store has rows of killed ones, which nobody sees" [ "$(clickhouse_sql "$port" 'select count() from killed.rows_events')" -gt \
	"$(clickhouse_sql "$port" 'select count() from killed.events')" ]

# The server killed in the middle. The first batches are awaited, so it is in the middle.
some_parts() { [ "$(clickhouse_sql "$port" "select count() from crashed.culprit_parts")" -ge "$1" ]; }
crashed() {
	local round code
	for round in 1 4 7; do
		"${ship_run[@]}" "$at/crashed" >said 2>&1 &
		local pid=$!
		until_true 120 some_parts $round || { cat said; return 1; }
		clickhouse_kill
		wait $pid
		code=$?
		[ $code = 0 ] || { [ $code = 3 ] && grep -Eq "culprit ship: .*(http://127.0.0.1|store at)" said; } || { echo "exit code $code"; cat said; return 1; }
		clickhouse_start "$server" "$port" || return 1
		pids+=("$clickhouse_pid")
	done
	"${ship_run[@]}" "$at/crashed" >said 2>&1 && exact crashed
}
# Not by check: it runs in its own shell, and the server is this one's.
if crashed >crashed.said 2>&1; then ok "a server that is killed again and again: each record once"
else not_ok "a server that is killed again and again: each record once" "$(cat crashed.said)"; fi

# Two shippers of the same run at once: one takes over, or both find all there.
both() {
	"${ship_run[@]}" "$at/both" >one 2>&1 &
	local pid=$! codes
	"${ship_run[@]}" "$at/both" >two 2>&1
	codes=$?
	wait $pid
	codes="$codes $?"
	case $codes in "0 0" | "0 3" | "3 0" | "3 3") ;; *) echo "$codes"; cat one two; return 1 ;; esac
	"${ship_run[@]}" "$at/both" >last && exact both
}
check "two shippers at once: each record once" both

# Full: a small file system, where one may be mounted.
fill() {
	local p=$(free_port) i
	clickhouse_start "$dir/full/s" "$p" || return 1
	pids+=("$clickhouse_pid")
	for i in $(seq 40); do
		"$culprit" ship $run --to "clickhouse://127.0.0.1:$p/full$i" >said 2>&1 || break
	done
	grep -q 'the store at http://127.0.0.1:[0-9]* is full: ' said || { cat said; return 1; }
}
mkdir full
if unshare -m true 2>/dev/null && mount -t tmpfs -o size=4m none full 2>/dev/null; then
	if fill >filled 2>&1; then ok "a store that is full"; else not_ok "a store that is full" "$(cat filled)"; fi
	clickhouse_kill
	umount full || umount -l full
else
	ok "a store that is full # SKIP no right to mount a small file system"
fi
done_testing
