#!/bin/bash
# Captured applications are replayed on a real file system, by hand and as a workload that is traced and judged. The rest of
# what replays do is in ci/tests/replay.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/lab_lib.sh
tmp=$(mktemp -d)
trap '"$culprit" lab down --dir "$dir" >/dev/null 2>&1; rm -rf "$tmp"' EXIT
command -v sqlite3 >/dev/null || skip_all "there is no sqlite3"
traces=$PWD/workloads/traces
check "a lab" up
for trace in pseudo psync fitness; do
	exits "$trace is replayed, and no call fails" 0 'run time  *[0-9.]* m*s  *[0-9.]* m*s' "$culprit" replay --inventory "$dir/inventory.lua" "$traces/$trace.app"
done
said=$("$culprit" replay --inventory "$dir/inventory.lua" --mode think "$traces/fitness.app" 2>&1)
is "with its think time, too" "$?" 0
printf '%s\n' "$said" | sed 's/^/# /'
is "nothing is left" "$(inside c1 ls -A /mnt/fs)" ""

cat >"$tmp/run.lua" <<L
return { name = "replay", workloads = { { "replay", trace = "psync" } }, faults = { "none" }, detectors = { "always-healthy", "peer-robust" },
         phases = { before = "2s", fault = "4s", after = "2s" } }
L
check "a run with one as its workload" "$culprit" run --quiet --inventory "$dir/inventory.lua" -o "$tmp/run" "$tmp/run.lua"
# Not how many: on a busy machine one of the two may not have come to its first call.
is "on both clients, without errors" "$(sqlite3 "$tmp/run/run.db" "SELECT count(*), sum(json_extract(r.value, '\$.ops')) > 0,
	sum(json_extract(r.value, '\$.errors')) FROM attempt, json_each(attempt.detail, '\$.results') AS r WHERE outcome = 'confirmed'")" "2|1|0"
is "both detectors judged it" "$(sqlite3 "$tmp/run/run.db" "SELECT count(DISTINCT detector) FROM verdict
	WHERE detector IN ('always-healthy', 'peer-robust')")" 2
is "nothing is left" "$(inside c1 ls -A /mnt/fs)" ""
done_testing
