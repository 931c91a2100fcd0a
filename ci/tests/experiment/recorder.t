#!/bin/bash
# A scenario's flight recorder on its own lab: two ebpf tracers on each node, written at moments of the cell and
# by a trigger; read by slow, query and timeline; and nothing stays when the orchestrator is killed at any moment.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/subnet.sh
[ "$(id -u)" -eq 0 ] || skip_all "the lab needs root"
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
lab=$tmp/lab
run_pid=
trap '[ -z "$run_pid" ] || kill -KILL $run_pid 2>/dev/null; "$culprit" lab down --dir "$lab" >/dev/null; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
node() { "$culprit" lab exec --dir "$lab" "$@"; }
sql() { sqlite3 "$1/run.db" "$2"; }

take_subnet || exit 1
check "the lab comes up" "$culprit" lab up --dir "$lab" --subnet "$subnet" --servers 3 --clients 1
inventory=$lab/inventory.lua

cat >now.lua <<'L'
-- Holds once, when the recorder has run for 3 s.
return { pause = "1000s", when = function(now) if now.seconds > 3 and now.nodes.s1.role == "server" then return "3 s are over" end end }
L
echo 'return { when = function(now) end }' >never.lua
scenario() { # FILE FAULTS RECORDER
	cat >"$1" <<L
return { name = "rec", workloads = { { "ddw", per_server = "1MiB", records = 8 } }, faults = { $2 }, detectors = { "always-healthy" },
         phases = { before = "5s", fault = "6s", after = "2s" },
         recorder = { "ebpf", heads = true, ring = "20s", $3 } }
L
}

scenario all.lua '"none", "disk-hog"' 'write = { after_onset = "2s", at_offset = true, at_end = true }, trigger = "now.lua"'
"$culprit" run --inventory "$inventory" --seed 1 -o all all.lua >said 2>&1
code=$?
sed 's/^/# /' said
check "a run with a recorder ends with 0" [ $code -eq 0 ]
check "both cells are confirmed" [ "$(sql all "SELECT count(DISTINCT cell) FROM attempt WHERE outcome = 'confirmed'")" = 2 ]
check "each was written four times: the trigger, after the onset, at the offset, at the end" \
	[ "$(sql all "SELECT group_concat(n) FROM (SELECT json_array_length(detail, '\$.recorder.written') n FROM attempt WHERE outcome = 'confirmed')")" = 4,4 ]
check "by the trigger once, for its reason" \
	[ "$(sql all "SELECT count(*) FROM attempt, json_each(detail, '\$.recorder.written') WHERE outcome = 'confirmed' AND value->>'why' = '3 s are over'")" = 2 ]
check "nothing was lost" [ "$(sql all "SELECT sum(json_array_length(detail, '\$.recorder.troubles')) FROM attempt WHERE outcome = 'confirmed'")" = 0 ]
check "every file listed has its checksum, those of the recorder, too" \
	bash -c "sqlite3 all/run.db \"SELECT sha256 || '  all/' || path FROM file\" | tee sums | sha256sum --quiet -c && [ \$(grep -c 'recorder\\.[1-4]/' sums) = 32 ]"
check "the tracer's own logs are sums" [ "$("$culprit" query --csv all \
	"SELECT count(*) FROM events WHERE log LIKE '%.fs.trace' AND log NOT LIKE '%/recorder.%'" | tail -1)" = 0 ]
faulty=$(sql all "SELECT number FROM cell WHERE victims IS NOT NULL")
"$culprit" slow all --cell "$faulty" --json >slow.json 2>slow.said
code=$?
sed 's/^/# /' slow.said
check "culprit slow reads each writing" python3 -c "
import json
cells = json.load(open('slow.json'))['cells']
assert $code == 0 and [c['recording']['number'] for c in cells] == [1, 2, 3, 4], cells
last = cells[-1]['coverage']
assert last['requests'] > 50 and last['requests_whole'] >= 0.9 * last['requests'], last"
check "culprit query, too" [ "$("$culprit" query --csv all "SELECT count(DISTINCT log) FROM events WHERE log LIKE '%/recorder.4/%' AND cell = $faulty" | tail -1)" = 4 ]
"$culprit" timeline all --cell "$faulty" --recording 3 -o t.html >t.said 2>&1
check "culprit timeline, too" grep -q "recorder.3: the end of the fault" t.html
check "a run with a recorder can be judged again" "$culprit" rescore all

scenario mute.lua '"disk-hog"' 'trigger = "never.lua"'
"$culprit" run --inventory "$inventory" --seed 1 -o never mute.lua >said 2>&1
code=$?
check "a trigger that never held is told, and the cell counts" \
	bash -c "[ $code -eq 0 ] && grep -q 'flight recorder: it was never written; its trigger was asked [0-9]* times and held 0 times' said || { cat said; false; }"
check "and said to who asks for it" bash -c "'$culprit' slow never 2>&1 | grep -q 'its flight recorder never wrote'"

# Killed at any moment: nothing stays on the nodes.
left() {
	for n in s1 s2 s3 c1; do
		node $n -- sh -c 'pgrep culprit-agent; ls /var/lib/culprit/undo; ls -d /var/lib/culprit/*/recorder.trace* 2>/dev/null'
	done
}
clean() { [ -z "$(left)" ]; }
scenario kill.lua '"disk-hog"' 'write = { after_onset = "0s", at_offset = true }, trigger = "now.lua"'
for step in trace workload inject onset undo stop; do
	"$culprit" run --inventory "$inventory" --seed 1 -o "kill.$step" kill.lua >said 2>&1 &
	run_pid=$!
	check "the run comes to the step $step" until_true 120 grep -q "step $step" "kill.$step/run.log"
	kill -KILL $run_pid
	wait $run_pid 2>/dev/null
	run_pid=
	check "killed there, it leaves nothing on any node" until_true 60 clean || left | sed 's/^/# /'
done
check "the lab goes down" "$culprit" lab down --dir "$lab"
done_testing
