#!/bin/bash
# Readings for users: they are listed, printed, seen by detectors, and not treated as service times; and refusals of
# 'culprit rescore --remeasure'.
# shellcheck disable=SC2016
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
sampled=$PWD/ci/tests/data/sampled
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

is() { [ "$1" = "$2" ] || { printf 'got:      %s\nexpected: %s\n' "$1" "$2"; return 1; }; }
exits() { local want=$1; shift; "$@" >"$tmp/out" 2>"$tmp/said"; is $? "$want" || { cat "$tmp/said"; return 1; }; }
says() { grep -q -- "$1" "$tmp/said" || { cat "$tmp/said"; return 1; }; }

# List
names=$(sed -n 's/^\tX([A-Z_]*, "\([a-z_]*\)".*/\1/p' diag/record/reading.h)
tcp=$(grep -c '^tcp_' <<<"$names")
check "every reading is a metric; readings of sockets also exist for the client's end" \
	is "$("$culprit" list metrics --json | grep -c '"definition"')" $((6 + $(wc -l <<<"$names") + tcp))
check "... by name" is "$(for n in $names; do "$culprit" list metrics | grep -q "^  $n " || echo "$n"; done)" ""
check "... in 80 columns" is "$("$culprit" list metrics | awk 'length > 80')" ""
check "the list of all kinds leaves them out" is "$("$culprit" list | grep -c disk_queue_s)" 0

# Samples
"$culprit" query --samples "$sampled" >"$tmp/all.csv"
sqlite3 "$tmp/all.db" "CREATE TABLE sample (cell INTEGER, attempt INTEGER, metric TEXT, server TEXT, second INTEGER, count INTEGER, sum REAL, max REAL, bytes INTEGER)" \
	".import --csv --skip 1 $tmp/all.csv sample"
check "samples are printed, of every cell, metric and server" \
	is "$(sqlite3 "$tmp/all.db" "SELECT count(DISTINCT cell) || ' ' || count(DISTINCT server) || ' ' || (count(DISTINCT metric) >= 58) FROM sample")" "3 3 1"
check "a client reading counts two clients, and its largest value is at most its sum" \
	is "$(sqlite3 "$tmp/all.db" "SELECT min(max <= sum) || max(count) FROM sample WHERE metric = 'client_tcp_sent_bytes'")" 12
check "the hog is visible in the victim's disk queue" \
	is "$(sqlite3 "$tmp/all.db" "SELECT server FROM sample WHERE cell = 3 AND metric = 'disk_queue_s' GROUP BY 1 ORDER BY sum(sum) DESC LIMIT 1")" s2
check "one cell and metric" is "$("$culprit" query --samples "$sampled" --cell 3 --metric disk_queue_s | cut -d, -f1,3 | sort -u | tr '\n' ' ')" \
	"3,disk_queue_s cell,metric "
check "an unknown cell: 2" exits 2 "$culprit" query --samples "$sampled" --cell 99
check "... and says so" says "no confirmed cell 99"
check "an unknown metric: 2" exits 2 "$culprit" query --samples "$sampled" --metric dreads
check "--help" exits 0 "$culprit" query --samples --help
check "no run: 2" exits 2 "$culprit" query --samples

# Detectors
cat >"$tmp/queue.lua" <<'LUA'
return { name = "queue", summary = "the longest queue of a disk", diagnose = function(run)
	local worst, most = nil, 1.5
	for _, server in ipairs(run.servers) do
		local depth = run.series.disk_queue_s[server].mean:mean()
		if depth > most then worst, most = server, depth end
	end
	return { { metric = "disk_queue_s", indicted = { worst }, resource = "disk", evidence = { most = most, unit = run.units.disk_queue_s } } }
end }
LUA
"$culprit" diagnose "$sampled" --cell 3 --detector "$tmp/queue.lua" >"$tmp/said"
check "a detector that reads the queue names the victim" says '^    by disk_queue_s: s2, resource disk'
"$culprit" rescore "$sampled" --detector "$tmp/queue.lua" >"$tmp/said"
check "the table has a row for that metric, and none for metrics without verdicts" \
	is "$(grep -cE '^  (disk_queue_s|tcp_|client_|nic_|cpu_)' "$tmp/said")" "$(grep -c '^  disk_queue_s$' "$tmp/said")"
check "... in 80 columns" is "$(awk 'length > 80' "$tmp/said")" ""

# Time series of other tools
perl -e 'print "time,server,metric,value\n"; for my $t (0 .. 59) { for my $s (1 .. 4) {
	my $slow = $t >= 30 && $s == 2 ? 100 : 1;
	print "$t,s$s,$_,", ($slow + ($t * 7 + $s) % 3 / 10), "\n" for "latency", "disk_queue_s" } }' >"$tmp/other.csv"
"$culprit" diagnose --csv "$tmp/other.csv" --train-until 30 --json >"$tmp/said"
check "a metric with a reading's name is not a service time" is "$(grep -o '"metric": "[a-z_]*"' "$tmp/said" | sort -u | tr -d '\n')" \
	'"metric": "any""metric": "latency"'
check "... and another name is" says '"s2"'

# Measuring again, from traces that 'remeasure_test' makes, and refusals
"${culprit%/*}/tests/store/remeasure_test" make "$tmp"
"$culprit" rescore --remeasure "$tmp/run" --detector "$tmp/deepest.lua" >"$tmp/table" 2>"$tmp/said"
check "remeasure: it ends well" is $? 0
check "... says how many cells" is "$(cat "$tmp/said")" "culprit rescore: 3 cells measured again"
check "... saves the verdicts" is "$(sqlite3 "$tmp/run/run.db" "SELECT count(*) FROM verdict WHERE detector = 'deepest'")" 2
check "... and prints their table" cmp "$tmp/table" <("$culprit" table "$tmp/run")
check "... which has a row for the detector" grep -q deepest "$tmp/table"
check "with --json, standard output is JSON" bash -c "'$culprit' rescore --remeasure '$tmp/run' --detector '$tmp/deepest.lua' --json 2>/dev/null | python3 -m json.tool"
check "several runs: 2" exits 2 "$culprit" rescore --remeasure "$tmp/run" "$tmp/run"
check "remeasure --help" exits 0 "$culprit" rescore --remeasure --help
check "a corpus has no traces: 2" exits 2 "$culprit" rescore --remeasure "$sampled"
check "... with one sentence as the reason" says "is a corpus: the traces are not in it"
check "... and stays unchanged" is "$(ls "$sampled")" run.db.gz
cp -r results/runs/errors-20261121 "$tmp/old"
before=$(sha256sum <"$tmp/old/run.db")
check "a run without the inputs it needs: 2" exits 2 "$culprit" rescore --remeasure "$tmp/old"
check "... with one sentence as the reason" says "cell 1 is of an older version, which did not keep nodes' addresses and clocks"
check "... and it is unchanged" is "$(sha256sum <"$tmp/old/run.db")" "$before"
check "no run: 2" exits 2 "$culprit" rescore --remeasure "$tmp"
check "... with one sentence as the reason" says "is not a run"
done_testing
