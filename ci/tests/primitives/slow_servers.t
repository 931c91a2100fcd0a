#!/bin/bash
# server-pause, server-cpu and net-partition act, which is measured, and leave every node as it was; what they cannot do is refused
# before an attempt, with the reason. Has its own lab.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/nodes.sh
command -v sqlite3 >/dev/null || skip_all "there is no sqlite3"

scenario() { # NAME FAULTS [RECORDS]
	echo "return { name = '$1', workloads = { { 'ddw', records = ${3:-1} } }, detectors = { 'always-healthy' }, faults = { $2 },
		phases = { before = '1s', fault = '6s', after = '1s' }, attempts = 3 }" >"$1.lua"
}
run() { # NAME [OPTION ...]
	local name=$1
	shift
	timeout 500 "$culprit" run --quiet --seed 1 --inventory "$inventory" -o "run-$name" "$@" "$name.lua" >said 2>&1
}
of() { # NAME FIGURES CONDITION: of a parameter
	sqlite3 "run-$1/run.db" "SELECT $2 FROM attempt a JOIN cell c ON a.cell = c.number, json_each(a.detail->'verified_still_on') e
	WHERE a.outcome = 'confirmed' AND c.fault_params->>$3"; }
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "$(printf '%s\n' "'$2', not '$3'" && cat said)"; fi; }
refused() { # NAME FAULT REASON: skipped with this reason
	scenario "$1" "$2"
	run "$1"
	check "$1 is skipped with a reason" grep -qE "$3" said "run-$1/run.log"
}

lab_up --cpus 1 --memory 512MiB
check "every node has the agent" "$culprit" undo --inventory "$inventory"
before=$(fingerprints)
check "there is something to compare" [ "$(grep -c '"mounts"' <<<"$before")" = 5 ]

scenario pause "{ 'server-pause', pause = '200ms', every = '500ms' }, { 'server-pause', pause = '2s', every = '0s' }"
run pause
is "a server was paused for two fifths of the time, about" \
	"$(of pause "e.value->>'stopped_s' / (e.value->>'of_s') BETWEEN 0.28 AND 0.6, e.value->>'stops' > 5" "'every' = 0.5")" "1|1"
is "another one once, for two seconds" \
	"$(of pause "e.value->>'stops', e.value->>'stopped_s' BETWEEN 1.4 AND 3" "'every' = 0")" "1|1"
check "nothing is left" clean
check "every node is as it was" diff <(echo "$before") <(fingerprints)

scenario part "{ 'net-partition', peers = 'clients' }, { 'net-partition', direction = 'in' }, { 'net-partition', direction = 'out' }"
run part
is "no packet passed between a server and the client" "$(of part "e.value->>'rules', e.value->>'dropped' > 0" "'peers' = 'clients'")" "2|1"
is "nor to a server" "$(of part "e.value->>'rules', e.value->>'dropped' > 0" "'direction' = 'in'")" "1|1"
is "nor from one to its three peers" "$(of part "e.value->>'rules', e.value->>'dropped' > 0" "'direction' = 'out'")" "3|1"
check "no rule is left" clean
check "every node is as it was again" diff <(echo "$before") <(fingerprints)

scenario cpu "{ 'server-cpu', cpus = 0.05 }" 4
run cpu
# How often, depends on what else the machine does: a server that gets no processor does not use its quota up.
is "a server waited for its quota" "$(of cpu "e.value->>'throttled_s' > 0.001, e.value->>'throttled' > 0" "'cpus' = 0.05")" "1|1"
check "no control group is left" [ -z "$(find /sys/fs/cgroup -maxdepth 4 -name 'culprit_*')" ]
check "every node is still as it was" diff <(echo "$before") <(fingerprints)

refused much "{ 'server-cpu', cpus = 8 }" "a limit of 8 processors limits nothing: the server has 1"
refused pauses "{ 'server-pause', pause = '1s' }" "'every' \(1 s\) must be 50 ms above 'pause' \(1 s\)"
[ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ] &&
	refused memory "'server-memory'" "memory.high needs control groups of version 2"
scenario word "{ 'net-partition', peers = 'some' }"
"$culprit" run --dry-run --inventory "$inventory" word.lua >said 2>&1
is "a value that is no choice is an error of the scenario" $? 2
check "with file, line and the choices" grep -q "word.lua:1: .*'peers' must be one of all|servers|clients, not 'some'" said
check "the lab goes down" "$culprit" lab down --dir "$lab"
done_testing
