#!/bin/bash
# 'culprit table --by strength' of recorded runs: what detectors find of each strength, and what it costs the application. No root, no
# cluster.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
is() { [ "$1" = "$2" ] || { printf 'got:      %s\nexpected: %s\n' "$1" "$2"; return 1; }; }

# The run's disk hogs of the first two repeats become those of a weak one.
mkdir "$tmp/run"
zcat results/corpora/ci/run.db.gz >"$tmp/run/run.db"
sqlite3 "$tmp/run/run.db" "
	UPDATE cell SET fault = 'disk-hog(share=25%)' WHERE fault = 'disk-hog' AND repeat <= 2;
	INSERT OR REPLACE INTO fact VALUES ('inputs', '{\"fault disk-hog\": {\"params\": {\"block\": 268435456, \"share\": 100}},
		\"fault disk-hog: file\": \"sha256:0\", \"fault disk-hog(share=25%)\": {\"params\": {\"block\": 268435456, \"share\": 25}}}')"
"$culprit" rescore "$tmp/run" --detector peer-threshold --by strength >"$tmp/text" 2>"$tmp/err"
check "it is printed" [ $? = 0 ]
check "the fault by its parameter" grep -qx 'disk-hog, share' "$tmp/text"
check "one row per strength, weak to strong" diff <(grep -o '^  [0-9]*%' "$tmp/text" | head -n 2) <(printf '  25%%\n  100%%\n')
check "faults with one strength have no sweep" lacks '^receive-pktloss' "$tmp/text"
check "the counts are the run's" [ "$("$culprit" rescore "$tmp/run" --detector peer-threshold --by strength --json |
	perl -MJSON::PP -0777 -ne 'my @s = grep { $_->{detector} eq "peer-threshold" } @{decode_json($_)->{sweeps}};
		print scalar @s, map { " $_->{scores}{all}{n}" } @{$s[0]{strengths}}')" = "1 4 4" ]

# The application of a recorded run, counted again from its samples. That corpus has no samples of what arrived.
table_json() { "$culprit" rescore "$1" --detector always-healthy --by strength --json; }
# cells_of RUN: number, label, workload, seconds, start, onset, offset of its confirmed, scored cells
cells_of() {
	sqlite3 "$1/run.db" "SELECT c.number, c.fault, c.workload, a.seconds, a.start_ns, a.onset_ns, a.offset_ns
		FROM cell c JOIN attempt a ON a.cell = c.number WHERE a.outcome = 'confirmed' AND NOT c.training"
}
check "what is unknown of the application is said" grep -q '^throughput of the application: unknown: no cell has readings' "$tmp/text"
check "... and has no column" lacks 'n throughput' "$tmp/text"
mkdir "$tmp/sweep" "$tmp/sweep/run"
zcat results/runs/dose-20261121/run.db.gz >"$tmp/sweep/run/run.db"
cells_of "$tmp/sweep/run" >"$tmp/sweep/cells"
received() { "$culprit" query --samples "$1" --metric tcp_received_bytes --metric client_tcp_received_bytes; }
received "$tmp/sweep/run" >"$tmp/sweep/samples"
table_json "$tmp/sweep/run" >"$tmp/sweep/json"
check "its throughput and intervals are as counted from the samples" is "$(python3 ci/tests/table/impact.py "$tmp/sweep" 2>&1)" "throughput 96 latency 0"
"$culprit" table "$tmp/sweep/run" --by strength >"$tmp/sweep/text"
check "a column at the side of each detector's" [ "$(grep -c 'n wrong server       n throughput$' "$tmp/sweep/text")" = 2 ]
check "... its figures" grep -qx '  100%           3 1.00 \[.29,1\]       3 0.00 \[0,.71\]       3 0.25 \[0.16,0.39\]' "$tmp/sweep/text"
check "... and from where on it suffers" grep -qx '  found from       100% (-)                                  100%' "$tmp/sweep/text"
check "a table of it by workload" [ "$(grep -A 1 '^application: throughput$' "$tmp/sweep/text" | tail -n 1)" = \
	"                 n ddw                n ddr                n postmark" ]
check "no requests, no latency: said" bash -c "tr -s '\n ' ' ' <'$tmp/sweep/text' | grep -q 'latency of the application: unknown: no requests were recorded (tracers: mode = \"flow\").'"
check "CSV has both measures" is "$("$culprit" table "$tmp/sweep/run" --by strength --format csv | sed -n 2p | rev | cut -d , -f 1-8 | rev)" "1,0.8157,0.3365,1.9771,0,,,"
victim=$(sqlite3 "$tmp/sweep/run/run.db" "SELECT number FROM cell WHERE fault = 'disk-hog' AND workload LIKE 'ddr%' AND repeat = 1")
check "each cell's own, in words" bash -c "'$culprit' table '$tmp/sweep/run' --words | tr -s '\n ' ' ' | grep -q 'cell $victim: [^:]* under disk-hog from [^(]*(ddr([^)]*); throughput 0.37 \[0.32,0.42\] of the controls)'"
sqlite3 "$tmp/sweep/run/run.db" "UPDATE cell SET training = 1 WHERE fault = 'none'"
"$culprit" table "$tmp/sweep/run" --by strength >"$tmp/sweep/text"
check "a run without controls says so" grep -q '^throughput of the application: unknown: the run has no controls' "$tmp/sweep/text"
check "... and compares nothing" lacks 'n throughput' "$tmp/sweep/text"

# Latency: of a recorded attempt with requests, taken for several, whose spans differ.
flow=$tmp/tiny logs=cells/0002.1
tar -xzf ci/tests/data/lab-flow.tar.gz -C "$tmp"
sql() { sqlite3 "$flow/run.db" "$1"; }
(cd "$flow" && for f in $logs/*; do echo "INSERT INTO file VALUES (2, '$f', $(stat -c %s "$f"), '$(sha256sum <"$f" | cut -d ' ' -f 1)');"; done | sqlite3 run.db)
sql "UPDATE attempt SET detail = replace(detail, '\"sampled\":true', '\"sampled\":false')"
"$culprit" rescore --remeasure "$flow" >/dev/null
for i in 3 4 5 6; do
	sql "INSERT INTO cell SELECT $i, 0, workload, workload_params, CASE WHEN $i = 3 THEN 'disk-hog(share=25%)' ELSE 'none' END, '{}', '-', $i,
			CASE WHEN $i = 3 THEN victims END, NULL, tracer FROM cell WHERE number = 2;
		INSERT INTO attempt SELECT $i, $i, 1, outcome, reason, started_ns, start_ns + ($i - 3) * 150000000, CASE WHEN $i = 3 THEN onset_ns - 1200000000 END,
			CASE WHEN $i = 3 THEN offset_ns - 2500000000 END, ended_ns, seconds, detail, key FROM attempt WHERE id = 2;
		INSERT INTO request SELECT $i, recording, block, data FROM request WHERE attempt = 2"
done
sql "DELETE FROM cell WHERE number = 1;
	UPDATE fact SET value = json_set(value, '\$.\"fault disk-hog\"', json('{\"params\": {\"share\": 100}}'),
		'\$.\"fault disk-hog(share=25%)\"', json('{\"params\": {\"share\": 25}}')) WHERE key = 'inputs'"
mkdir "$tmp/latency"
cells_of "$flow" >"$tmp/latency/cells"
received "$flow" >"$tmp/latency/samples"
"$culprit" query --csv "$flow" "SELECT cell, t, total_ns FROM requests" >"$tmp/latency/requests"
table_json "$flow" >"$tmp/latency/json"
check "latency and its intervals are as counted from the requests" is "$(python3 ci/tests/table/impact.py "$tmp/latency" 2>&1)" "throughput 0 latency 4"

check "a run without strengths says so" bash -c "'$culprit' table results/corpora/ci --by strength 2>&1 | grep -q 'several strengths'"
"$culprit" table results/corpora/ci --by strength >"$tmp/none" 2>/dev/null
check "and ends with 2, nothing printed" [ "$? $(stat -c %s "$tmp/none")" = "2 0" ]
"$culprit" table results/corpora/ci --by day 2>/dev/null
check "--by accepts nothing else" [ $? = 2 ]
for level in 0 1.5 x; do
	"$culprit" table results/corpora/ci --by strength --level $level 2>/dev/null
	check "no level is $level" [ $? = 2 ]
done
done_testing
