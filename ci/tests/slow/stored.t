#!/bin/bash
# Requests that were stored when the run was measured: what reads them says what it says of the logs, byte for byte, and needs no log.
# On a small recorded run (ci/tests/data/lab-flow.tar.gz), which is measured again. No root, no cluster.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
command -v sqlite3 >/dev/null || skip_all "no sqlite3"
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/cache
tar -xzf ci/tests/data/lab-flow.tar.gz -C "$tmp" || exit 1
run=$tmp/tiny logs=cells/0002.1
sql() { sqlite3 "${2:-$run}/run.db" "$1"; }

exits() { local want=$1; shift; "$@" >"$tmp/said" 2>&1; [ $? = "$want" ] || { cat "$tmp/said"; return 1; }; }

# all RUN OUT: everything that is made of requests alone.
all() {
	"$culprit" slow "$1" --cell 2 --top 50
	"$culprit" slow "$1"
	"$culprit" slow "$1" --json --top 1000 --server s3
	"$culprit" slow "$1" --cell 2 --procedure READ --from 1s --to 3s --onset 2s
	"$culprit" query --csv "$1" "select * from requests"
	"$culprit" query --csv "$1" "select * from failures"
	"$culprit" query --csv "$1" "select server, count(*), sum(total_ns), min(missing) from requests where t > 2 group by 1 order by 1"
} >"$2" 2>&1
# with_logs RUN OUT: what reads other records as well.
with_logs() {
	"$culprit" findings --json "$1"
	"$culprit" query --csv "$1" "select e.call, count(*) from requests r join events e on e.node = r.client and e.tid = r.tid and abs(e.t - r.t) < 1e-7 group by 1"
} >"$2" 2>&1

# The recording lists no files and lacks the readings.
(cd "$run" && for f in $logs/*; do echo "INSERT INTO file VALUES (2, '$f', $(stat -c %s "$f"), '$(sha256sum <"$f" | cut -d ' ' -f 1)');"; done | sqlite3 run.db)
sql "UPDATE attempt SET detail = replace(detail, '\"sampled\":true', '\"sampled\":false') WHERE id = 2"
all "$run" "$tmp/before"
with_logs "$run" "$tmp/before_logs"
check "the run has requests" [ "$(grep -c ',READ,' "$tmp/before")" -gt 400 ]
check "... and no table of them" [ "$(sql "SELECT count(*) FROM sqlite_schema WHERE name = 'request'")" = 0 ]
check "it is measured again" "$culprit" rescore --remeasure "$run"
check "now its requests are stored" [ "$(sql "SELECT count(*) > 1, min(attempt), max(recording) FROM request")" = "1|2|0" ]
check "... in an eighth of the room that the logs take" [ $(($(sql "SELECT sum(length(data)) FROM request") * 8)) -lt "$(du -bs "$run/$logs" | cut -f 1)" ]
all "$run" "$tmp/after"
with_logs "$run" "$tmp/after_logs"
check "slow, requests and failures say the same" cmp "$tmp/before" "$tmp/after"
check "findings and joins with events, too" cmp "$tmp/before_logs" "$tmp/after_logs"
sql ".dump request" >"$tmp/first"
check "measuring once more" "$culprit" rescore --remeasure "$run"
check "... stores the same" cmp "$tmp/first" <(sql ".dump request")

# The same logs as what a flight recorder wrote, twice: each has a table.
own=$run run=$tmp/recorded
cp -r "$own" "$run"
sql "DROP TABLE request; UPDATE file SET path = replace(path, '$logs/', '$logs/recorder.1/')
	WHERE path LIKE '%.fs.trace'; UPDATE attempt SET detail = json_set(detail, '\$.recorder', json_object('ring_s', 1.5, 'written',
	json_array(json_object('why', 'one', 'at_ns', start_ns + 2000000000), json_object('why', 'two', 'at_ns', start_ns + 4000000000))))"
mkdir "$run/$logs"/recorder.{1,2}
cp "$run/$logs"/*.trace "$run/$logs/recorder.1" && cp "$run/$logs"/*.trace "$run/$logs/recorder.2"
all "$run" "$tmp/recorder_before"
check "a flight recorder's writings are measured" "$culprit" rescore --remeasure "$run"
check "... each has its requests" [ "$(sql "SELECT group_concat(DISTINCT recording) FROM request")" = 1,2 ]
all "$run" "$tmp/recorder_after"
check "... which say the same" cmp "$tmp/recorder_before" "$tmp/recorder_after"
run=$own

cp -r "$run" "$tmp/bare" && rm -r "$tmp/bare/cells"
mv "$run" "$tmp/whole" && mv "$tmp/bare" "$run"
all "$run" "$tmp/without"
check "no log is needed" cmp "$tmp/before" "$tmp/without"
check "... but to follow them as another file system's" exits 2 "$culprit" slow "$run" --cell 2 --file-system glusterfs
check "... or to draw them" exits 2 "$culprit" timeline "$run" --cell 2 -o "$tmp/t.html"
check "a whole corpus keeps them" "$culprit" ship --whole "$run" --pack "$tmp/packed/tiny"
all "$tmp/packed/tiny" "$tmp/corpus"
check "... and says the same" cmp "$tmp/before" "$tmp/corpus"
check "one for judging" "$culprit" ship "$run" --pack "$tmp/small"
check "... has none" bash -c "'$culprit' slow '$tmp/small' 2>&1 | grep -q 'is a corpus: the traces are not in it'"

damage() { # WHAT SQL: one sentence and exit code 2
	cp -r "$run" "$tmp/$1" && sql "$2" "$tmp/$1"
	"$culprit" slow "$tmp/$1" --cell 2 >"$tmp/said" 2>&1
	[ $? = 2 ] && grep -q "^culprit slow: '.*/$1', attempt 2: the stored requests are damaged; measure the run again from its traces" "$tmp/said" &&
		[ "$(wc -l <"$tmp/said")" = 1 ] || { cat "$tmp/said"; return 1; }
}
check "a damaged row is refused" damage row "UPDATE request SET data = zeroblob(length(data)) WHERE block = 1"
check "a row that is missing, too" damage gone "DELETE FROM request WHERE block = 1"
check "and a damaged head" damage head "UPDATE request SET data = x'00ff' WHERE block = 0"

# A log that is cut short: what the logs say is said as before, with its complaint.
run=$tmp/whole
head -c $(($(stat -c %s "$run/$logs/s3.fs.trace") / 2)) "$run/$logs/s3.fs.trace" >"$tmp/cut" && mv "$tmp/cut" "$run/$logs/s3.fs.trace"
check "a changed log is not measured" bash -c "'$culprit' rescore --remeasure '$run' 2>&1 | grep -q 's3.fs.trace'"
check "... and what was stored stays" cmp "$tmp/first" <(sql ".dump request")
done_testing
