#!/bin/bash
# The quick scenario end to end on its own lab, recorded by two tracers at once: the plan, the steps of the faults and their
# effect, who is named, and the same readings and verdicts from both recordings.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
[ "$(id -u)" -eq 0 ] || skip_all "the lab needs root"
culprit=$PWD/${OUT:-out}/culprit
scenarios=$PWD/scenarios
tmp=$(mktemp -d)
lab=$tmp/lab
trap '"$culprit" lab down --dir "$lab" >/dev/null; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
sql() { sqlite3 "$1/run.db" "$2"; }
is() { [ "$1" = "$2" ] || { printf 'got:      %s\nexpected: %s\n' "$1" "$2"; return 1; }; }
nothing() { is "$1" ""; }

# A run packs its samples; as a table they can be queried.
unpack() {
	"$culprit" query --samples "$1" >"$1/samples.csv" && [ "$(wc -l <"$1/samples.csv")" -gt 100 ] &&
		sqlite3 "$1/samples.db" "CREATE TABLE sample (cell INTEGER, attempt INTEGER, metric TEXT, server TEXT, second INTEGER,
			count INTEGER, sum_s REAL, max_s REAL, bytes INTEGER)" ".import --csv --skip 1 $1/samples.csv sample"
}

# The disks are slow: a hog then adds far more to a read than a busy processor does.
check "the lab comes up" "$culprit" lab up --dir "$lab" --subnet 10.75.0.0/24 --disk-rate 4MB/s
inventory=$lab/inventory.lua

# The scenario with short cells, and files for slow disks, which no client reads to the end before the fault: what it reads again comes from
# the page cache. The plan is the scenario's own. A file has 16 shards, so that every server
# has some; a client reads them one after the other, so that a server is not asked in every second.
sed -e 's/{ before = "8s", fault = "20s", after = "2s" }/{ before = "4s", fault = "7s", after = "1s" }/' -e 's/"peer-threshold"/{ "peer-threshold", window = 4, least = "25%" }/' \
	-e 's/"ddw"/{ "ddw", per_server = "1MiB", records = 16 }/' -e 's/"ddr"/{ "ddr", per_server = "1MiB", records = 32 }/' "$scenarios/quick.lua" >short.lua
plan() { "$culprit" run --inventory "$inventory" --seed 1 --dry-run "$1" | sed -e 's/([^)]*)//' -e 's/^ *//; s/  */ /g' | grep '^[0-9]'; }
check "quick.lua has 8 cells: each workload trained, and scored with each fault and without" is "$(plan "$scenarios/quick.lua" | awk '{ print $2, $(NF - 2), $(NF - 1) }' | sort | xargs)" \
	"1 ddr disk-hog 1 ddr none 1 ddr receive-pktloss 1 ddw disk-hog 1 ddw none 1 ddw receive-pktloss train ddr none train ddw none"
check "the shortened scenario has the plan of quick.lua" bash -c "$(declare -f plan); culprit='$culprit' inventory='$inventory'
	grep -q 'before = \"4s\"' short.lua && plan short.lua >short.plan && [ -s short.plan ] && diff <(plan '$scenarios/quick.lua') short.plan"

# Traced by two tracers at once: the default one, and ptrace as the second.
"$culprit" run --inventory "$inventory" --seed 1 --second-tracer ptrace -o quick short.lua >table 2>log
code=$?
sed 's/^/# /' log table
check "the quick scenario ends with 0" [ $code -eq 0 ]
check "all 8 cells are confirmed" [ "$(sql quick "SELECT count(DISTINCT cell) FROM attempt WHERE outcome = 'confirmed'")" = 8 ]
check "every faulty cell has onset before offset, inside the attempt" \
	[ "$(sql quick "SELECT count(*) FROM attempt JOIN cell ON cell.number = cell WHERE victims IS NOT NULL AND
		outcome = 'confirmed' AND start_ns < onset_ns AND onset_ns < offset_ns AND offset_ns < ended_ns")" = 4 ]
check "attempts keep the steps of their faults, in the order of their times" \
	[ "$(sql quick "SELECT DISTINCT (SELECT group_concat(step) FROM (SELECT value->>'step' AS step FROM json_each(detail->'steps') ORDER BY value->>'at_ns', key))
		FROM attempt JOIN cell ON cell.number = cell WHERE victims IS NOT NULL AND outcome = 'confirmed'")" = \
		"begin,trace,workload,inject,verify,onset,verify-again,undo,offset,stop,collect" ]
acted() { # FAULT FIELD LEAST: in how many of its cells more than that was counted just before the undo
	sql quick "SELECT count(*) FROM attempt JOIN cell ON cell.number = cell WHERE outcome = 'confirmed' AND fault = '$1' AND
		(SELECT max(value->>'$2') FROM json_each(detail->'verified_still_on')) > $3"
}
check "receive-pktloss dropped packets in both of its cells" is "$(acted receive-pktloss dropped 0)" 2
check "disk-hog read from the disk in both of its cells" is "$(acted disk-hog read_bytes 1000000)" 2
# The effect itself, as a ratio in one cell: reads of the victim's storage while the hog runs, over those before.
check "samples are exported as CSV" unpack quick
ratio=$(sql quick "ATTACH 'quick/samples.db' AS samples;
	WITH a AS (SELECT cell AS c, attempt.number AS n, victims->>0 AS victim, (onset_ns - start_ns) / 1000000000 AS onset, (offset_ns - start_ns) / 1000000000 AS offset
		FROM attempt JOIN cell ON cell.number = cell WHERE fault = 'disk-hog' AND workload LIKE 'ddr%' AND outcome = 'confirmed'),
	s AS (SELECT second, sum_s, count, onset, offset FROM sample JOIN a ON cell = c AND attempt = n AND server = victim WHERE metric = 'dread')
	SELECT (SELECT sum(sum_s) / sum(count) FROM s WHERE second > onset AND second < offset) /
	       (SELECT sum(sum_s) / sum(count) FROM s WHERE second < onset)")
check "the hog makes the victim's reads at least half as slow again (measured: $ratio times)" awk -v r="$ratio" 'BEGIN { exit !(r > 1.5) }'
# What peer-threshold says of each cell, metric and server: its deviation as a share of its limit.
severity="SELECT attempt, cell, metric, each.value s, each.key server FROM verdict JOIN attempt ON attempt.id = attempt, json_each(verdict->'evidence'->'severity') each
	WHERE detector LIKE 'peer-threshold%'"
# One short training cell makes a limit of little worth: whether the victim is above it is left to the tests of the detector itself, on
# recorded and made series. What a cell of this length does show is the order.
hogged="SELECT verdict, victims FROM verdict JOIN attempt ON attempt.id = attempt JOIN cell ON cell.number = cell
	WHERE detector LIKE 'peer-threshold%' AND metric = 'dread' AND fault = 'disk-hog' AND workload LIKE 'ddr%' AND outcome = 'confirmed'"
worst="SELECT json_array((SELECT key FROM json_each(verdict->'evidence'->'severity') ORDER BY value DESC LIMIT 1)) = victims FROM ($hogged)"
check "for peer-threshold the hog's victim is the worst of all servers by the reads of its disk" is "$(sql quick "$worst")" 1
check "it names no other server" is "$(sql quick "SELECT verdict->>'indicted' IN (victims, '[]') FROM ($hogged)")" 1
check "the samples of the second tracer are exported as CSV" unpack quick/second
both() { sqlite3 quick/run.db "ATTACH 'quick/second/run.db' AS second; ATTACH 'quick/samples.db' AS samples;
	ATTACH 'quick/second/samples.db' AS samples_second; $1"; }
check "the tracer is ebpf, and the second one ptrace" [ "$(both "SELECT a.value || ' ' || b.value FROM fact a, second.fact b
	WHERE a.key = 'tracer' AND b.key = 'tracer'")" = "ebpf ptrace" ]
check "peer-threshold judged all 6 scored cells on both traces" [ "$(both "SELECT count(DISTINCT a.attempt) FROM verdict a
	JOIN second.verdict b USING (attempt, detector, metric) WHERE detector LIKE 'peer-threshold%'")" = 6 ]
# A limit is the largest deviation in training, of a window that one call at its edge may decide: the limits of the two traces differ at
# times, and with them who is above. Who is the worst does not depend on it. A server that is hardly asked has no score of a metric.
scores=$(both "WITH a AS ($severity), b AS ($(sed 's/FROM verdict JOIN attempt/FROM second.verdict verdict JOIN second.attempt attempt/' <<<"$severity"))
	SELECT coalesce(a.metric, b.metric), coalesce(a.server, b.server), coalesce(a.cell, b.cell), a.s, b.s
	FROM a FULL JOIN b USING (attempt, cell, metric, server)")
check "both traces give scores of 4 servers, in 16 of 24 places at least ($(awk -F'|' '$4 != "" && $5 != ""' <<<"$scores" | cut -d'|' -f2,3 | sort -u | wc -l))" \
	[ "$(awk -F'|' '$4 != "" && $5 != ""' <<<"$scores" | cut -d'|' -f2,3 | sort -u | awk -F'|' '{ s[$1]; n++ } END { for (k in s) servers++; print servers, (n >= 16 ? "enough" : "few") }')" = "4 enough" ]
check "by the second trace, too, the hog's victim is the worst of all servers by the reads of its disk" is "$(sql quick/second "$worst")" 1
# Both tracers count the same, except calls that end at the edge of the measured seconds.
differ=$(both "SELECT cell, metric, server, n, m, x, y FROM
	(SELECT cell, metric, server, sum(count) n, sum(bytes) x FROM samples.sample GROUP BY 1, 2, 3) JOIN
	(SELECT cell, metric, server, sum(count) m, sum(bytes) y FROM samples_second.sample GROUP BY 1, 2, 3) USING (cell, metric, server)
	WHERE abs(n - m) > 3 + n / 200 OR abs(x - y) > 400000 + x / 200")
check "both tracers recorded the same calls, messages and bytes" nothing "$differ"
timed=$(both "SELECT cell, server, mean, mean_second FROM
	(SELECT cell, server, sum(sum_s) / sum(count) mean, sum(count) n FROM samples.sample WHERE metric = 'dread' GROUP BY 1, 2) JOIN
	(SELECT cell, server, sum(sum_s) / sum(count) mean_second FROM samples_second.sample WHERE metric = 'dread' GROUP BY 1, 2) USING (cell, server)
	WHERE n > 20")
check "both tracers timed the reads of a disk in 9 places at least" [ "$(grep -c . <<<"$timed")" -ge 9 ]
check "and their means are within a tenth of each other" nothing "$(awk -F'|' '$3 < 0.9 * $4 || $3 > 1.1 * $4' <<<"$timed")"
check "both tracers recorded the same cells, metrics and servers" nothing "$(both "
	SELECT DISTINCT cell, metric, server FROM samples.sample EXCEPT SELECT cell, metric, server FROM samples_second.sample;
	SELECT DISTINCT cell, metric, server FROM samples_second.sample EXCEPT SELECT cell, metric, server FROM samples.sample")"
check "the table fits 80 columns" awk 'length > 80 { bad = 1 } END { exit bad }' table
check "the table names its run" grep -q 'run quick: 8 of 8 cells confirmed' table
check "the store, judged again, gives the same table" diff table <("$culprit" rescore quick)
sql quick "SELECT sha256 || '  quick/' || path FROM file" >sums
check "the store lists the traces of 6 nodes in 8 cells" [ "$(grep -c '\.trace$' sums)" -ge 48 ]
check "every trace listed has its checksum" sha256sum --quiet -c sums
check "the lab goes down" "$culprit" lab down --dir "$lab"
done_testing
