#!/bin/bash
# What is full at a step of a run: the disk that the run is kept on, every node's /var/lib/culprit, or the memory that the agent, guard,
# standby and tracers of every node may take. Whatever comes of the run: one complaint and exit code 3, or a whole run; the faults are
# undone while it is still full; with room again the run is resumed, and every cell is there once. In CI one step of each; CULPRIT_SOAK=N
# ('make soak-steps'): every step of each, with all the faults that act under this workload. full_disk.t has what needs no lab.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/nodes.sh
small=$tmp/small
run=$small/run
sql() { sqlite3 "$run/run.db" "$1"; }
files() { on_all 'cd /var/lib/culprit && find . -type f ! -name filler ! -path "./agent/*/*"; ls -d agent/.tmp* 2>/dev/null'; }
no_files() { [ -z "$(files)" ]; }
nothing_remains() { until_true 60 no_files || { files; false; }; } # an agent ends after the orchestrator
# An attempt that lacked processor time, or whose tracer was lost, is invalid: a cell has ten.
scenario() { # FAULT
	cat >full.lua <<L
return { name = "full", workloads = { { "ddw", records = 1 } }, faults = { "none", "$1" }, detectors = { "always-same" }, attempts = 10,
         phases = { before = "1s", fault = "2s", after = "1s" }, repeats = 1,
         gates = { onset = "300s", disk = "1MiB", wait = "3s" } }
L
}

# Each begins with a run's folder that has room, and says what is full by 'fill' and 'empty'. The run is stopped in the meantime.
fill() { # WHAT
	case $1 in
	disk) head -c 100M /dev/zero >"$small/filler" 2>/dev/null ;;
	state) on_all 'head -c 100M /dev/zero >/var/lib/culprit/filler 2>/dev/null' ;;
	memory)
		# No page more than they have: from now on allocations fail.
		on_all 'for p in $(pgrep "^culprit-"); do
			prlimit --pid $p --as=$(($(sed -n "s/^VmSize:[^0-9]*\([0-9]*\) kB/\1/p" /proc/$p/status) * 1024)):unlimited; done' >/dev/null
		;;
	esac
	true
}
empty() { # what had too little memory ends with its session
	case $1 in
	disk) rm -f "$small/filler" ;;
	state) on_all 'rm -f /var/lib/culprit/filler' ;;
	esac
}
# Those of a node tell of it in run.log: the run continues, and has no more than a cell that could not be measured.
because='No space left\|has .* left; .* must be\|annot allocate memory\|out of memory'
reason() { # WHAT
	[ "$1" != memory ] || return 0 # an agent may be lost without a word
	cat said "$run/run.log" 2>/dev/null | grep -q "$because" || { cat said "$run/run.log"; return 1; }
}
complaint() { # one line, and how to go on
	[ "$(wc -l <said)" = 1 ] && grep -q "^culprit run: .*'culprit resume $run'" said || { cat said; return 1; }
}
once() {
	[ "$(sql "SELECT count(*), count(DISTINCT cell), (SELECT count(*) FROM cell) FROM attempt WHERE outcome = 'confirmed'")" = "2|2|2" ] &&
		[ "$(sql "SELECT count(DISTINCT attempt) FROM verdict")" = 2 ] &&
		[ -z "$(comm -3 <(ls "$run/cells") <(sql "SELECT printf('%04d.%d', cell, number) FROM attempt" | sort))" ] &&
		[ -z "$(find "$run" -name '*.part*' -o -name '*.XXXXXX' -o -name '*-journal' -o -name '.status.json')" ] && return
	sql "SELECT cell, number, outcome, reason FROM attempt"
	ls "$run/cells"
	find "$run" -name '*.part*' -o -name '*-journal'
	return 1
}
resume() { "$culprit" resume "$run" --quiet; }
reached() { grep -q "step $1\$" "$run/run.log" 2>/dev/null || ! kill -0 "$pid" 2>/dev/null; }
fits_outcome() { [ "$1" = 0 ] || [ "$1" = 3 ] || { echo "exit code $1"; cat said; false; }; }

seed=0
try() { # WHAT FAULT STEP
	local what=$1 step=$3 name="$1 full at '$3' of $2" rc
	seed=$((seed + 1))
	scenario "$2"
	rm -rf "$run"
	"$culprit" run --quiet --inventory "$lab/inventory.lua" --seed $seed -o "$run" full.lua >table 2>said &
	pid=$!
	until_true 120 reached "$step"
	kill -STOP $pid
	fill "$what"
	kill -CONT $pid
	wait $pid
	rc=$?
	if ! grep -q "step $step\$" "$run/run.log"; then
		not_ok "$name: the step is reached" "$(cat said "$run/run.log")"
		empty "$what"
		return
	fi
	echo "# $name: $rc $(cut -c1-200 said)"
	if [ "$what" = disk ]; then
		check "$name: exit code 3" [ $rc = 3 ]
	else
		check "$name: exit code 0 or 3" fits_outcome $rc
	fi
	if [ $rc = 3 ]; then
		check "$name: one complaint" complaint
		check "$name: it says why" reason "$what"
	fi
	check "$name: what is in the store is whole" [ "$(sql "PRAGMA integrity_check")" = ok ]
	check "$name: nothing is left on any node" until_true 60 clean
	empty "$what"
	[ $rc = 0 ] || check "$name: with room again it is resumed" resume
	check "$name: every cell is complete, once" once
	check "$name: every node is as it was" diff <(echo "$before") <(fingerprints)
}

scenario receive-pktloss
mkdir "$small"
mount -t tmpfs -o size=24M none "$small"
lab_up
on_all 'mount -t tmpfs -o size=32M none /var/lib/culprit'

# ---- no room for the agent, and for its undo journal ----
for what in agent journal; do
	on_all 'head -c 100M /dev/zero >/var/lib/culprit/filler 2>/dev/null'
	rm -rf "$run"
	"$culprit" run --quiet --inventory "$inventory" --seed 1 -o "$run" full.lua >table 2>said
	is=$?
	check "no room for the $what: exit code 3" [ $is = 3 ]
	check "... one complaint" complaint
	check "... it says why" reason state
	check "... nothing is left of it" nothing_remains
	on_all 'rm -f /var/lib/culprit/filler'
	check "... with room again the nodes are reached" "$culprit" undo --inventory "$inventory"
done
check "... and the run is resumed" resume
check "... every cell is complete, once" once
before=$(fingerprints)
check "there is something to compare" [ "$(grep -c '"mounts"' <<<"$before")" = 5 ]

if [ -z "$CULPRIT_SOAK" ]; then
	try disk receive-pktloss verify
	try state disk-hog onset
	try memory receive-pktloss onset
else
	steps=(begin trace workload inject verify onset verify-again undo offset stop collect)
	faults=(disk-hog disk-busy write-network-hog read-network-hog receive-pktloss send-pktloss cpu-hog hang kill err-remount)
	for step in "${steps[@]}"; do try disk receive-pktloss "$step"; done
	# Ten faults and eleven steps: each fault at four or five of the steps.
	for what in state memory; do
		for ((i = 0; i < 4 * ${#steps[@]}; i++)); do
			try $what "${faults[i % ${#faults[@]}]}" "${steps[i % ${#steps[@]}]}"
		done
	done
fi
check "the lab goes down" "$culprit" lab down --dir "$lab"
done_testing
