#!/bin/bash
# Resuming, on a lab of its own: the orchestrator of scenarios/matrix.lua is killed at random moments and resumed until the matrix
# is done; the disk is full; a trace is damaged before it is read and after; a host is busy with other work. In CI three kills, one
# workload, one repeat; CULPRIT_SOAK=N: 50 kills, all workloads, two repeats. CULPRIT_SEED=N: the moments of the kills; printed.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/schema.sh
[ "$(id -u)" -eq 0 ] || skip_all "the lab needs root"
culprit=$PWD/${OUT:-out}/culprit
matrix=$PWD/scenarios/matrix.lua
kills=3 cut=(--repeats 1 --only workload=ddw) cells=$((2 + 7))
[ "${CULPRIT_SOAK:-0}" -eq 0 ] || { kills=50 cut=(--repeats 2) cells=$((2 + 2 * 3 * 7)); }
RANDOM=${CULPRIT_SEED:=$((RANDOM % 10000))}
echo "# CULPRIT_SEED=$CULPRIT_SEED"
tmp=$(mktemp -d)
lab=$tmp/lab
inventory=$lab/inventory.lua
trap '"$culprit" lab down --dir "$lab" >/dev/null 2>&1; mountpoint -q "$tmp/small" && umount "$tmp/small"; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
node() { "$culprit" lab exec --dir "$lab" "$@"; }
sql() { sqlite3 "$1/run.db" "$2"; }
run=("$culprit" run --inventory "$inventory" --seed 5 --lease 6s --quiet) # at a load of 20 on two cores 4 s ran out
left() { # anything of ours on any node
	for n in s1 s2 s3 c1 o1; do
		node $n -- sh -c 'nft list tables 2>/dev/null | grep culprit_; pgrep -xl "dd|postmark|sg_.*|culprit-.*"; ls /var/lib/culprit/undo'
	done
}
clean() { [ -z "$(left)" ]; }
logged() { cat log "$2/run.log" | grep -q "$1" || { cat log "$2/run.log"; false; }; }
begins() { # RUN LOG: its files come first, which may take long beside another lab's; what ended before it began says why
	until_true 300 eval "test -e '$1/cells/0001.1' || ! kill -0 $pid 2>/dev/null" && [ -e "$1/cells/0001.1" ] && return
	cat "$2" "$1/run.log"
	return 1
}
once() { # RUN CELLS: each cell has one confirmed attempt, and no folder is without its attempt
	[ "$(sql "$1" "SELECT count(*), count(DISTINCT cell) FROM attempt WHERE outcome = 'confirmed'")" = "$2|$2" ] &&
		[ -z "$(comm -23 <(ls "$1/cells") <(sql "$1" "SELECT printf('%04d.%d', cell, number) FROM attempt" | sort))" ]
}
structure() { # what is in a table, but for the scores; and what was run in which order on whom
	"$culprit" table "$1" --format csv | cut -d, -f1-6
	sql "$1" "SELECT number, training, workload, fault, repeat, victims FROM cell"
	sql "$1" "SELECT cell, detector, metric FROM verdict JOIN attempt ON attempt.id = attempt ORDER BY 1, 2, 3"
}

scenario() { # NAME GATES REPEATS
	cat >"$1.lua" <<L
return { name = "$1", workloads = { "ddw", "ddr" }, faults = { "none", "receive-pktloss" },
         detectors = { "peer-threshold", "always-same" }, phases = { before = "1s", fault = "2s", after = "0" },
         gates = { onset = "300s", $2 }, attempts = 5, training = { workloads = { "ddr" } }, repeats = $3 }
L
}
# The matrix itself, with phases and files for cells of seconds: what is killed and resumed is its plan. On a busy machine more than
# three attempts at a cell may be invalid.
sed -E 's/phases *= \{[^}]*\}/phases = { before = "1s", fault = "2s", after = "0" }/; s/"(ddw|ddr)"/{ "\1", records = 1 }/g
	s/(training *=.*)repeats = [0-9]+/\1repeats = 1/; s/^return \{/return { attempts = 10, gates = { onset = "300s" },/' "$matrix" >matrix.lua
scenario night '' 1

check "the lab comes up" "$culprit" lab up --dir "$lab" --subnet 10.76.0.0/24 --servers 3 --clients 1
check "the matrix is cut to cells of seconds" [ "$(grep -c 'before = "1s"\|records = 1 }, .*records = 1 }\|repeats = 1 }' matrix.lua)" = 3 ]
"${run[@]}" -o whole "${cut[@]}" matrix.lua >table 2>log || sed 's/^/# /' log
check "an undisturbed matrix is complete" once whole $cells

# Killed, and resumed at once, while the nodes still undo what the killed one left.
"${run[@]}" -o torn "${cut[@]}" matrix.lua >/dev/null 2>log &
pid=$!
until_true 60 test -e torn/status.json
killed=0
for ((k = 0; k < kills; k++)); do
	# Three of four fall into cells, the others into what comes before.
	[ $((RANDOM % 4)) -eq 0 ] || until_true 60 grep -q '"cell": {' torn/status.json
	moment=$((RANDOM % 7000))
	sleep "$((moment / 1000)).$(printf '%03d' $((moment % 1000)))"
	if kill -KILL $pid 2>/dev/null; then
		killed=$((killed + 1))
		echo "# kill $killed after $moment ms: $(sql torn "SELECT count(*) FROM attempt WHERE outcome = 'confirmed'") of $cells cells," \
			"$(sed -n 's/.*"phase": "\(.*\)".*/\1/p' torn/status.json 2>/dev/null)"
	fi
	wait $pid 2>/dev/null
	rm -f torn/status.json
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

# An interrupted run names the command that resumes it. A changed scenario and a second orchestrator are refused.
"${run[@]}" -o asked night.lua >/dev/null 2>said &
pid=$!
check "it begins its first cell" begins asked said
check "'culprit status' sees it" [ "$("$culprit" status asked --json | grep -Ec '"state": "running"|"number": 1,')" = 2 ]
check "and what each node does" until_true 60 eval "'$culprit' status asked | grep -q '^  running ddr, traced by [a-z]*: c1$'"
"$culprit" status asked --json >status.json
# Of one moment of many; between cells they do other things.
servers() { [ "$("$culprit" status asked --json | grep -Ec '"name": "s[123]",|"doing": "(serving|under|injecting|looking|undoing)')" = 6 ]; }
check "servers, too" until_true 60 servers
"$culprit" resume asked >refused 2>&1
check "a second orchestrator is refused" test $? -eq 2
check "and told why" grep -q 'is going on, in process' refused
kill -INT $pid
wait $pid
check "interrupted, it ends with 3" test $? -eq 3
check "and says how to go on" grep -q "'culprit resume asked' goes on" said
check "'culprit status' says so too" grep -q "'culprit resume asked' goes on" <("$culprit" status asked)
fits status status.json
sed 's/fault = "2s"/fault = "3s"/' night.lua >other.lua
"$culprit" resume asked --scenario other.lua >refused 2>&1
check "a changed scenario is refused" test $? -eq 2
check "and what has changed is named" grep -q 'phases.fault is 3.0, was 2.0' refused
cp "$inventory" before.lua # a lab that is up again has other loop devices
sed -i 's|spare = "/dev/loop[0-9p]*"|spare = "/dev/loop777"|' "$inventory"
"$culprit" resume asked --scenario other.lua >refused 2>&1
check "another number of a loop device is no change" [ "$(grep -c 'phases.fault is 3.0' refused)$(grep -c 'host s1' refused)" = 10 ]
cp before.lua "$inventory"

# A trace damaged after its attempt was recorded: the checksum tells, the cell is run again, the attempt is kept and counted.
printf X | dd of=torn/cells/"$(ls torn/cells | tail -1)"/s2.fs.trace bs=1 seek=64 conv=notrunc status=none
"$culprit" resume torn >table 2>log
check "a trace damaged afterwards has its cell run again" test $? -eq 0
check "and the trace is named" grep -q "s2.fs.trace' is not what was written" log
check "every cell is complete, once" once torn $cells
check "the table counts the attempt" grep -Eq 'not scored: [1-9][0-9]* attempts? *$|not scored: [1-9][0-9]* attempts? invalid' table

# A trace damaged between its transfer and its reading.
scenario damaged 'window = "2s"' 1
"${run[@]}" -o damaged --only cell=2 damaged.lua >table 2>log &
pid=$!
check "a trace comes" until_true 300 test -e damaged/cells/0002.1/s1.fs.trace
truncate -s 100 damaged/cells/0002.1/s1.fs.trace
wait $pid
check "a trace damaged before it is read makes its attempt invalid, and the run goes on" test $? -eq 0
check "with the file in its reason" [ "$(sql damaged "SELECT outcome FROM attempt WHERE cell = 2 ORDER BY number LIMIT 1")" = invalid ]
echo "# $(sql damaged "SELECT reason FROM attempt WHERE cell = 2 AND number = 1")"

# The disk of the orchestrator is full: the run waits, ends, and goes on once there is room.
mkdir small
mount -t tmpfs -o size=8M none small
scenario full 'disk = "8MiB", wait = "3s"' 1
"${run[@]}" -o small/full --only cell=2 full.lua >table 2>log
check "a full disk ends the run with 3" test $? -eq 3
check "and the reason is given" logged "that 'small/full' is kept on has .* left" small/full
check "what is in the store is whole" [ "$(sql small/full "PRAGMA integrity_check")" = ok ]
mount -o remount,size=100M small
"$culprit" resume small/full --quiet >table 2>log
check "with room again it is resumed" test $? -eq 0
check "every cell is complete, once" once small/full 2
scenario tight 'disk = "0B", wait = "3s"' 1
"${run[@]}" -o small/tight --only cell=2 tight.lua >table 2>log &
pid=$!
check "its first attempt begins" begins small/tight log
head -c 200M /dev/zero >small/filler 2>/dev/null
wait $pid
rc=$?
check "a disk that gets full in the middle ends the run with 3" bash -c "[ $rc = 3 ] || { echo 'exit code $rc'; cat log small/tight/run.log; exit 1; }"
check "and says how to go on" logged "'culprit resume small/tight' goes on" small/tight
rm small/filler
"$culprit" resume small/tight --quiet >table 2>>log
check "with room again it is resumed" test $? -eq 0
check "every cell is complete, once" once small/tight 2

# A cluster that fails before the first cell is no error of the scenario: the run can be resumed.
cat >filed.lua <<'L'
return { summary = "reads what is on the file system", command = function() return { argv = { "sleep", "0.3" }, loop = true } end,
         prepare = function(_, client)
           return { { "ls", client.mount .. "/wanted" }, { "sh", "-c", 'mkdir "$1" 2>/dev/null || exit 0; sleep 3600', "sh", "/tmp/hung" } }
         end }
L
sed 's|"ddw", "ddr"|"./filed.lua"|; s|"receive-pktloss"||; s|"peer-threshold", ||; s|training = .*}, repeats|repeats|' night.lua >unwell.lua
sed -i 's|name *= |prepare_limit = "10s", name = |' unwell.lua
"${run[@]}" -o unwell unwell.lua >table 2>log
check "a failed preparation ends the run with 3" test $? -eq 3
check "after three tries" [ "$(grep -c 'trying again' unwell/run.log)" = 2 ]
check "and it says what failed, and how to go on" grep -q "preparing '.*filed.*' ended with 2: .*'culprit resume unwell' goes on" <(tr '\n' ' ' <log)
node c1 -- touch /mnt/fs/wanted
"$culprit" resume unwell --quiet >table 2>log
check "once it can, it is resumed" test $? -eq 0
check "a command that hangs is killed, and tried again" [ "$(grep -c "'prepare_limit', 10 s.*trying again" unwell/run.log)" = 1 ]
sed 's/^/# /' log

# A host that is busy with other work.
scenario busy 'process = "10%", wait = "120s"' 1
node s2 -- timeout 600 nice -n -20 sh -c 'while :; do :; done' & # it has a processor, however many others want one
hog=$!
"${run[@]}" -o busy --only cell=2 busy.lua >table 2>log &
pid=$!
check "a busy host is quarantined, with the reason" until_true 300 grep -qs 'quarantined: s2: process [0-9]* (sh)' busy/run.log
node s2 -- pkill -f 'while :'
wait $hog
wait $pid
check "once it is quiet, the run goes on" test $? -eq 0
sed 's/^/# /' log
check "and says so" grep -q 'quarantine is over' busy/run.log
check "every cell is complete, once" [ "$(sql busy "SELECT count(*) FROM attempt WHERE outcome = 'confirmed'")" = 2 ]
check "the attempt has the report of the gates" [ "$(sql busy "SELECT count(*) FROM attempt WHERE
	detail->>'$.gates.clocks.s1.error_s' > 0 AND detail->>'$.gates.before.s2.seconds' > 0.4 AND outcome = 'confirmed'")" = 2 ]
check "the lab goes down" "$culprit" lab down --dir "$lab"
done_testing
