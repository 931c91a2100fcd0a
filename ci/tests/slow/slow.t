#!/bin/bash
# 'culprit slow' on a small recorded run (ci/tests/data/lab-flow.tar.gz): what it prints, and what it says of input that
# lacks something. No root, no cluster.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/schema.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tar -xzf ci/tests/data/lab-flow.tar.gz -C "$tmp" || exit 1
run=$tmp/tiny logs=$tmp/tiny/cells/0002.1
sql() { sqlite3 "$run/run.db" "$1"; }

slow() { timeout 60 "$culprit" slow "$run" "$@" >"$tmp/out" 2>"$tmp/err"; }

# refuses CODE SENTENCE OPTION ...: one complaint, with the sentence, and the exit code.
refuses() {
	local code=$1 sentence=$2 got
	shift 2
	slow "$@"
	got=$?
	[ $got -eq "$code" ] && [ "$(grep -c '^culprit slow: ' "$tmp/err")" = 1 ] && [ "$(wc -l <"$tmp/err")" = 1 ] &&
		grep -qF -- "$sentence" "$tmp/err" || { echo "ended with $got:"; cat "$tmp/err"; return 1; }
}

# Reads the JSON with a sentence of Python about the first cell, c.
holds() { slow --cell 2 --json && python3 -c "import json; d = json.load(open('$tmp/out')); c = d['cells'][0]; assert ($1), c"; }

check "a cell is printed" slow --cell 2
check "with phases, layers, the slowest and coverage" bash -c "grep -q '^phase .*server .*queue' $tmp/out &&
	grep -q '^phase .*in flight .*posix' $tmp/out && grep -q 'c1>s3 .*READ.* dd read ' $tmp/out &&
	grep -q '^receives bound' $tmp/out && grep -q '^clock of c1 against s1' $tmp/out" || cat "$tmp/out"
check "no line is wider than 100 columns" awk 'length > 100 { bad = 1 } END { exit bad }' "$tmp/out"
check "all receives are bound, all requests whole" holds "c['coverage']['receives'] == c['coverage']['receives_bound'] > 1000 and
	c['coverage']['requests'] == c['coverage']['requests_whole'] > 100"
check "the victim served nothing, so no server is named" holds "c['found'] == [] and c['victims'] == ['s1'] and c['verdict'] == 'nothing'"
check "a request's parts add up to its time" holds "all(abs(sum(r['parts_s'].values()) - r['total_s']) < 1e-3 for r in c['slowest'])"
check "the slowest come first, ten of them" holds "[r['total_s'] for r in c['slowest']] == sorted((r['total_s'] for r in c['slowest']), reverse=True) and len(c['slowest']) == 10"
check "clocks have an interval" holds "len(c['clocks']) == 3 and all(k['lowest_s'] <= k['highest_s'] for k in c['clocks'])"
slow --cell 2 --json --server s3 --procedure read --from 1s --to 2s --top 2
fits slow "$tmp/out"
check "filters: server, procedure, time, how many" python3 -c "
import json
c = json.load(open('$tmp/out'))['cells'][0]
assert [s['server'] for s in c['servers']] == ['s3'] and len(c['slowest']) == 2
assert all(r['procedure'] == 'READ' and 1 <= r['at_s'] < 2 for r in c['slowest'])"

check "what was named is counted" bash -c "ci/bench/slow_score.pl $run >$tmp/score.json && ci/bench/flow_table.pl named $tmp/score.json |
	grep -qxF 'Victims named, and nobody else: 0 of 1. Healthy servers named: in 0 of 1 cells with a fault, in 0 of 0 without.'"
# The same cell without a fault is compared with itself.
cp -r "$run" "$tmp/healthy"
own=$run run=$tmp/healthy
sql "UPDATE attempt SET onset_ns = NULL, offset_ns = NULL WHERE cell = 2; UPDATE cell SET fault = 'none', victims = '[]' WHERE number = 2"
check "a cell without a fault: servers with each other, second half with first" holds "c['verdict'] == 'no fault' and c['found'] == [] and
	all(c['comparisons'][k]['verdict'] in ('nothing', 'found', 'too short') and c['comparisons'][k]['sentence'] in c['sentence'] for k in ('servers', 'halves'))"
fits slow "$tmp/out"
check "... as the sentence says" bash -c "'$culprit' slow '$run' | tr -s ' \n' ' ' | grep -q 'no fault, so the cell was compared with itself; server with server: .*; second half with first: '"
run=$own
# The same logs as what a flight recorder wrote, twice; the tracer's own are sums.
cp -r "$run" "$tmp/recorded"
own=$run run=$tmp/recorded
mkdir "$run"/cells/0002.1/recorder.{1,2}
cp "$run"/cells/0002.1/*.trace "$run/cells/0002.1/recorder.1"
mv "$run"/cells/0002.1/*.trace "$run/cells/0002.1/recorder.2"
written() { # WHY FROM_S TO_S: of a ring of 3 s
	echo "json_object('why', '$1', 'at_ns', start_ns + $2)"
}
detail() { sql "UPDATE attempt SET detail = json_set(detail, '\$.recorder', json_object('ring_s', $1, 'written', json_array($2))) WHERE cell = 2"; }
detail 1.5 "$(written '1 s after the onset' 2000000000), $(written "a trigger$(printf '\33')[31m" 4000000000)"
check "a flight recorder's writings are printed one after the other" bash -c "'$culprit' slow $run --cell 2 >$tmp/out &&
	[ \$(grep -c '^cell 2' $tmp/out) = 2 ] && grep -qF 'recording 1 of 2, which holds 0.5 s to 2.0 s at most: 1 s after the onset' $tmp/out &&
	grep -qF 'recording 2 of 2, which holds 2.5 s to 4.0 s at most: a trigger\\x1b[31m' $tmp/out" || cat "$tmp/out"
slow --cell 2 --json
fits slow "$tmp/out"
check "each with the requests of its seconds" python3 -c "
import json
first, second = json.load(open('$tmp/out'))['cells']
assert first['recording']['number'] == 1 and second['recording']['number'] == 2
assert all(0.5 <= r['at_s'] < 2 for r in first['slowest']) and all(2.5 <= r['at_s'] < 4 for r in second['slowest'])
assert first['slowest'] and second['slowest'] and not first['troubles']"
check "or one of them" bash -c "'$culprit' slow $run --cell 2 --recording 2 --json | grep -c '\"recording\"' | grep -qx 1"
check "and no other" refuses 2 "cell 2 has 2 recordings" --cell 2 --recording 3
check "queries find its calls by log" bash -c "[ \"\$('$culprit' query --csv $run \"select count(distinct log) from events where log like '%/recorder.2/%'\" | tail -1)\" -ge 4 ]"
check "or of one writing" bash -c "[ \"\$('$culprit' query --csv --recording 1 $run \"select count(distinct log) from events where log not like '%/recorder.1/%'\" | tail -1)\" = 0 ]"
asks() { # EXPECTED ARGUMENTS...: CSV without its head
	local want=$1
	shift
	[ "$("$culprit" query --csv "$@" 2>&1 | tail -n +2)" = "$want" ]
}
total=$("$culprit" query --csv "$own" "select count(*) from requests" | tail -1)
check "requests are followed through each writing" asks "cells/0002.1/recorder.1,$total
cells/0002.1/recorder.2,$total" "$run" "select logs, count(*) from requests group by 1 order by 1"
check "... or one of them" asks "cells/0002.1/recorder.2,$total" --recording 2 "$run" "select logs, count(*) from requests group by 1"
failed=$("$culprit" query --csv "$own" "select count(*) from failures where request = 'LOOKUP' or by is not null" | tail -1)
check "failures, too" asks "cells/0002.1/recorder.1,$failed" --recording 1 "$run" \
	"select logs, count(*) from failures where request = 'LOOKUP' or by is not null group by 1"
check "... and there are some" [ "$failed" -gt 0 ]
check "findings take one writing, too" bash -c "'$culprit' findings --recording 1 $run >$tmp/out 2>&1; [ \$? -le 1 ]"
"$culprit" timeline "$run" --cell 2 --recording 1 -o "$tmp/t.html" --perfetto "$tmp/t.pftrace" >"$tmp/out" 2>&1
check "a timeline is drawn of it" grep -q "recorder.1: 1 s after the onset" "$tmp/t.html"
check "and no other recording" bash -c "'$culprit' timeline $run --cell 2 --recording 9 -o $tmp/t9.html 2>&1 | grep -q 'wrote 2 times, so there is no recording 9'"
detail 1.5 ""
check "a recorder that was never written is said" refuses 2 "cell 2: its flight recorder never wrote" --cell 2
run=$own

check "an unknown cell" refuses 2 "the run has no cell 7" --cell 7
check "an unknown server" refuses 2 "the run has no server 's9'" --cell 2 --server s9
check "a time that ends before it begins" refuses 2 "--to must be after --from" --from 5s --to 3s
check "an end before the beginning" refuses 2 "--offset must be after --onset" --onset 3s --offset 2s
check "an end without a beginning" refuses 2 "--offset needs --onset" --offset 2s
check "a beginning as told" bash -c "'$culprit' slow $run --cell 2 --onset 1s --offset 2s | grep -q ', as if from 1.0 s to 2.0 s of '"
check "a file system without a description" refuses 2 "describes no messages" --cell 2 --file-system moosefs
check "what can be shown of it is" grep -q '^receives bound .* 100.00 %' "$tmp/out"
check "no such file system" refuses 2 "nofs" --cell 2 --file-system nofs

cp "$logs/s3.fs.trace" "$tmp/whole"
head -c $(($(stat -c %s "$tmp/whole") / 2)) "$tmp/whole" >"$logs/s3.fs.trace"
check "a log that is cut short: which and where" refuses 2 "s3.fs.trace' is" --cell 2
check "and the rest is shown" grep -q '^requests with all four legs' "$tmp/out"
head -c 100000 /dev/urandom >"$logs/s3.fs.trace"
check "a log that is none" refuses 2 "s3.fs.trace' is not a trace log" --cell 2
rm "$logs/s3.fs.trace"
check "a log that is missing" refuses 2 "s3.fs.trace'" --cell 2
check "and the rest is shown, too" grep -q 'the other end is in no log' "$tmp/out"
mkdir "$tmp/away" && mv "$logs"/*.trace "$tmp/away"
check "no log at all" refuses 2 "cannot open" --cell 2
for node in s1 s2 s3 c1; do # logs of calls without positions: another tracer's
	gunzip -c ci/tests/data/glusterfs-brick.log.gz >"$logs/$node.fs.trace"
done
cp "$logs/s1.fs.trace" "$logs/c1.app.trace"
check "a run without flow records" refuses 2 'mode = "flow", heads = true' --cell 2
rm "$logs"/*.trace && mv "$tmp/away"/*.trace "$logs" && mv "$tmp/whole" "$logs/s3.fs.trace"

sql "DELETE FROM fact WHERE key = 'file_system_type'"
check "a run that does not say which file system it was on" refuses 2 "name it with --file-system" --cell 2
check "can be told" slow --cell 2 --file-system glusterfs
sql "INSERT INTO fact VALUES ('file_system_type', 'glusterfs'); UPDATE cell SET workload = 'dd' || char(27) || '[31m' WHERE number = 2"
check "names are escaped" bash -c "'$culprit' slow $run --cell 2 | grep -qF 'dd\\x1b[31m'"
check "a cell that is not confirmed" refuses 2 "cell 1 has no confirmed attempt" --cell 1
check "a corpus" bash -c "'$culprit' slow results/corpora/ci 2>&1 | grep -q 'is a corpus: the traces are not in it'"
done_testing
