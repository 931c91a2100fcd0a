#!/bin/bash
# Run times under tracers on a lab: cells run their workload once, pairs are formed, no record is lost. The in-kernel tracer
# resolves descriptors of a real server and client, most of which were open before it attached.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/lab_lib.sh
tmp=$(mktemp -d)
trap '"$culprit" lab down --dir "$dir" >/dev/null 2>&1; rm -rf "$tmp"' EXIT
check "the lab comes up" up
inventory=$dir/inventory.lua
sql() { sqlite3 "$1/run.db" "$2"; }

cat >"$tmp/overhead.lua" <<'L'
return { name = "overhead", measure = "runtime", repeats = 3, limit = "1min",
         tracers = { "none", "ebpf", { "ebpf", mode = "events" }, { "ptrace", nodes = "one-server", workloads = { "ddr" } } },
         workloads = { { "ddr", records = 1, per_server = "1MiB" }, { "postmark", transactions = 20, files = 10 } } }
L
"$culprit" run --inventory "$inventory" --seed 5 --quiet -o "$tmp/run" "$tmp/overhead.lua" >"$tmp/table" 2>"$tmp/log"
code=$?
sed 's/^/# /' "$tmp/log" "$tmp/table"
is "it ends with 0" $code 0
is "every cell is confirmed: three tracers under two workloads, one under one, three times" \
	"$(sql "$tmp/run" "SELECT count(DISTINCT cell) FROM attempt WHERE outcome = 'confirmed'")" 21
is "each ran its program once on each client" "$(sql "$tmp/run" "SELECT count(*) FROM attempt WHERE outcome = 'confirmed' AND
	(SELECT count(*) FROM json_each(detail->'times')) <> 2")" 0
is "each block has all its cells before the next begins" "$(sql "$tmp/run" "SELECT count(*) FROM (SELECT repeat, number,
	lag(repeat) OVER (ORDER BY number) p FROM cell) WHERE repeat < p")" 0
is "three pairs a cell, five cells" "$("$culprit" table "$tmp/run" --format csv | grep -c ',3,[0-9.]*,[0-9.]*,[-0-9.]*,')" 5
is "traced, calls were recorded and none was lost" "$(sql "$tmp/run" "SELECT count(*) FROM attempt JOIN cell ON cell.number = cell
	WHERE outcome = 'confirmed' AND tracer LIKE 'ebpf%' AND (detail->>'records' < 100 OR detail->>'lost' <> 0)")" 0
is "every pass took processor time, of the file system and of its program; tracers' only where there is one" \
	"$(sql "$tmp/run" "SELECT count(*) FROM attempt JOIN cell ON cell.number = cell WHERE outcome = 'confirmed' AND NOT (
	detail->>'$.cpu.file_system_s' > 0 AND detail->>'$.cpu.applications_s' > 0 AND
	(detail->>'$.cpu.tracers_s' > 0) = (tracer <> 'none') AND abs(detail->>'$.cpu.all_s' - detail->>'$.cpu.file_system_s' -
	detail->>'$.cpu.applications_s' - detail->>'$.cpu.tracers_s') < 1e-6)")" 0
# More than two processors' worth of a pass would be the time of something else; the programs' own time is the kernel's.
is "no more than the machine has; the applications' share is what their runs took" \
	"$(sql "$tmp/run" "SELECT count(*) FROM attempt WHERE outcome = 'confirmed' AND (
	detail->>'$.cpu.all_s' > $(nproc) * (ended_ns - started_ns) / 1e9 OR abs(detail->>'$.cpu.applications_s' -
	(SELECT sum(value->>'cpu_s') FROM json_each(detail->'times'))) > 1e-6)")" 0
is "traced, calls were counted, in sums as in events" "$(sql "$tmp/run" "SELECT count(*) FROM attempt JOIN cell ON cell.number = cell
	WHERE outcome = 'confirmed' AND tracer LIKE 'ebpf%' AND detail->>'calls' < 100")" 0
is "the table has processor time and microseconds per call of every cell" \
	"$("$culprit" table "$tmp/run" --format json | python3 -c '
import json, sys
cells = json.load(sys.stdin)["cells"]
print(sum(c["cpu_pairs"] == 3 and c["cpu_low_pct"] < c["cpu_pct"] < c["cpu_high_pct"] and c["call_low_us"] < c["call_us"] < c["call_high_us"]
          and c["pairs_for_1_pct"] >= 3 and c["cpu_pairs_for_1_pct"] >= 3 for c in cells))')" 5
is "untraced, no call was recorded" "$(sql "$tmp/run" "SELECT count(*) FROM attempt JOIN cell ON cell.number = cell
	WHERE tracer = 'none' AND (detail->>'records' IS NOT NULL OR detail->>'traces' IS NOT NULL)")" 0
check "the table fits 80 columns" awk 'length > 80 { bad = 1 } END { exit bad }' "$tmp/table"
check "the figures of Kasick et al. 2009 stand beside ours" grep -q '^syscap  *+0.2  *+64.4$' "$tmp/table"

# Each kind of scenario refuses the keys of the other.
complains() { # NAME PATTERN TEXT
	echo "return { name = 'x', workloads = { 'ddr' }, $3 }" >"$tmp/bad.lua"
	exits "$1" 2 "$2" "$culprit" run --inventory "$inventory" --dry-run "$tmp/bad.lua"
}
complains "run times need an untraced run" "bad.lua:1: 'tracers' needs \"none\"" "measure = 'runtime', tracers = { 'ebpf' }"
complains "an unknown tracer gets the nearest name" "did you mean 'ebpf'" "measure = 'runtime', tracers = { 'none', 'epbf' }"
complains "run times have no faults" "bad.lua:1: a scenario that measures run times has no 'faults'" \
	"measure = 'runtime', tracers = { 'none' }, faults = { 'none' }"
complains "verdicts have one tracer" "'tracers' is for measure" "faults = { 'none' }, detectors = { 'always-same' }, tracers = { 'ebpf' }"
complains "strace produces no verdicts" "gives detectors nothing to look at" \
	"faults = { 'none' }, detectors = { 'always-same' }, tracer = 'strace'"

cat >"$tmp/events.lua" <<'L'
return { name = "events", tracer = { "ebpf", mode = "events" }, workloads = { { "postmark", transactions = 50, files = 20 } },
         faults = { "none" }, detectors = { "always-healthy" }, phases = { before = "1s", fault = "3s", after = "0" } }
L
"$culprit" run --inventory "$inventory" --seed 5 --quiet -o "$tmp/events" "$tmp/events.lua" >/dev/null
for trace in "$tmp"/events/cells/0001.*/*.fs.trace; do
	# Counts calls on descriptors, and those whose file or peer the log has.
	known=$("$culprit" log --json "$trace" | python3 -c '
import json, sys
n = k = 0
for line in sys.stdin:
    r = json.loads(line)
    if r["type"] == "call" and r.get("fd", -1) >= 0 and r["result"] != -9:
        n += 1
        k += "path" in r or "local" in r or "remote" in r
print("%d of %d" % (k, n), 1 if n > 200 and k >= 0.995 * n else 0)')
	check "$(basename "$trace"): file or peer known of ${known% *} calls on descriptors" [ "${known##* }" = 1 ]
done
done_testing
