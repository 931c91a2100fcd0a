#!/bin/bash
# Resuming: the orchestrator of scenarios/matrix.lua is killed and resumed until the matrix is done; a trace is damaged after its
# attempt. In CI three kills at chosen moments, one workload, two faults, one repeat. CULPRIT_SOAK=N: 50 kills at random moments, all
# workloads and faults, two repeats; CULPRIT_SEED=N: these moments; printed.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/experiment/resume.sh
matrix=$root/scenarios/matrix.lua
# In CI kills at moments of each kind: before the first cell, while a fault acts, while traces come.
kills=3 cut=(--repeats 1 --only workload=ddw) cells=$((2 + 3))
moments=("preparing" "step verify-again" "step collect") before=0
if [ -n "$CULPRIT_SOAK" ]; then
	kills=50 cut=(--repeats 2) cells=$((2 + 2 * 3 * 7))
	RANDOM=${CULPRIT_SEED:=$((RANDOM % 10000))}
	echo "# CULPRIT_SEED=$CULPRIT_SEED"
fi
random_moment() { # three of four fall into cells, the others into what comes before
	until_true 60 test -e torn/status.json
	[ $((RANDOM % 4)) -eq 0 ] || until_true 60 grep -q '"cell": {' torn/status.json
	sleep "$((RANDOM % 7)).$(printf '%03d' $((RANDOM % 1000)))"
}
come() { [ "$(grep -c "$1" torn/run.log)" -gt "$before" ] || ! kill -0 $pid; }
logged_again() { until_true 300 come "$1"; } # since the last kill
structure() { # what is in a table, but for the scores; and what was run in which order on whom
	"$culprit" table "$1" --format csv | cut -d, -f1-6
	sql "$1" "SELECT number, training, workload, fault, repeat, victims FROM cell"
	sql "$1" "SELECT cell, detector, metric FROM verdict JOIN attempt ON attempt.id = attempt ORDER BY 1, 2, 3"
}

# The matrix itself, with phases and files for cells of seconds: what is killed and resumed is its plan. An attempt that had too
# little processor time is invalid, so a cell has ten. Without data on a server a packet loss of 5 % takes long to show.
sed -E 's/phases *= \{[^}]*\}/phases = { before = "1s", fault = "2s", after = "0" }/; s/"(ddw|ddr)"/{ "\1", records = 1 }/g
	s/"send-pktloss"/{ "send-pktloss", loss = "50%" }/
	s/(training *=.*)repeats = [0-9]+/\1repeats = 1/; s/^return \{/return { attempts = 10, gates = { onset = "300s" },/' "$matrix" >matrix.lua
[ -n "$CULPRIT_SOAK" ] || sed -i '/^\t*"none", "disk-hog".*pktloss/s/.*/"none", "disk-hog", "receive-pktloss",/' matrix.lua

lab_up
check "the matrix is cut to cells of seconds" [ "$(grep -c 'before = "1s"\|records = 1 }, .*records = 1 }\|repeats = 1 }' matrix.lua)" = 3 ]
"${run[@]}" -o whole "${cut[@]}" matrix.lua >table 2>log || sed 's/^/# /' log
check "an undisturbed matrix is complete" once whole $cells

# Killed, and resumed at once, while the nodes still undo what the killed one left.
"${run[@]}" -o torn "${cut[@]}" matrix.lua >/dev/null 2>log &
pid=$!
killed=0
for ((k = 0; k < kills; k++)); do
	if [ -n "$CULPRIT_SOAK" ]; then random_moment; else logged_again "${moments[k]}"; fi
	if kill -KILL $pid 2>/dev/null; then
		killed=$((killed + 1))
		echo "# kill $killed: $(sql torn "SELECT count(*) FROM attempt WHERE outcome = 'confirmed'") of $cells cells, $(tail -n 1 torn/run.log)"
	fi
	wait $pid 2>/dev/null
	rm -f torn/status.json
	before=$(grep -c "${moments[k + 1]:-}" torn/run.log)
	"$culprit" resume torn --quiet >table 2>>log &
	pid=$!
done 2>/dev/null
wait $pid
rc=$?
check "killed and resumed, it ends with 0" eval "[ $rc -eq 0 ] || { echo 'exit code $rc'; cat log table; tail -40 torn/run.log; false; }"
check "it was killed $kills times before it was done" test $killed -eq $kills
check "every cell is complete, once" once torn $cells
check "the table and the plan are those of the undisturbed run" diff <(structure whole) <(structure torn)
check "nothing is left on any node" clean
sed 's/^/# /' log

"$culprit" resume torn --json >resumed.json 2>said # ended before its status is asked for
check "a run that is complete says so" eval "grep -q 'nothing is left to run' said || { cat said; false; }"
fits resume resumed.json
check "and 'culprit status' too" grep -q '^torn: complete' <("$culprit" status torn)

# A trace damaged after its attempt was recorded: the checksum tells, the cell is run again, the attempt is kept and counted.
printf X | dd of=torn/cells/"$(ls torn/cells | tail -1)"/s2.fs.trace bs=1 seek=64 conv=notrunc status=none
"$culprit" resume torn >table 2>log
check "a trace damaged afterwards has its cell run again" test $? -eq 0
check "and the trace is named" grep -q "s2.fs.trace' has changed" log
check "every cell is complete, once" once torn $cells
check "the table counts the attempt" grep -Eq 'not scored: [1-9][0-9]* attempts? *$|not scored: [1-9][0-9]* attempts? invalid' table

check "the lab goes down" "$culprit" lab down --dir "$lab"
done_testing
