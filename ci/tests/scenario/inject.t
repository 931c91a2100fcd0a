#!/bin/bash
# A fault whose inject does not end: the run ends, its log has the file and the line, and the guards undo what inject had
# begun, also if inject is inside a C function and the program must exit at once.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/lab_lib.sh
command -v sqlite3 >/dev/null || skip_all "there is no sqlite3"
tmp=$(mktemp -d)
trap 'down >/dev/null 2>&1; rm -rf "$tmp"' EXIT
export CULPRIT_LUA_SECONDS=1
run() { timeout 120 "$culprit" run --quiet --inventory "$dir/inventory.lua" -o "$tmp/$1" "$tmp/$1.lua"; }
hogs() { inside s1 ps -e -o args= | grep -c '[c]ulprit-agent.* cpu'; }
gone() { for _ in $(seq 300); do [ "$(hogs)" = 0 ] && return; sleep 0.1; done; return 1; }
fault() { # NAME LINE: begins a hog, and then runs LINE
	cat >"$tmp/$1-fault.lua" <<-L
		return { summary = "x", resource = "cpu", verify = function() return true end, inject = function(ctx)
		  ctx.victim:process { self = true, argv = { "cpu" } }
		  $2
		end }
	L
	echo "return { name = '$1', workloads = { { 'ddw', records = 1 } }, faults = { './$1-fault.lua' }, detectors = { 'always-healthy' },
		phases = { before = '1s', fault = '1s', after = '1s' }, attempts = 1 }" >"$tmp/$1.lua"
}

check "a lab whose nodes have processors and memory of their own" up --cpus 0.5 --memory 256MiB
fault loop 'while true do end'
run loop >/dev/null 2>&1
code=$?
check "an endless loop in inject ends the run, as a mistake in the fault" [ $code = 2 ]
check "its log names file and line" grep -q 'loop-fault.lua:3: the call used up its 1.0 s of processor time' "$tmp/loop/run.log"
check "what it had begun is undone" gone
fault pattern 'return (("a"):rep(50)):find(("a*"):rep(40) .. "b")'
exits "a pattern that does not end" 2 "pattern-fault.lua:3: 'find' does not return.*culprit resume" run pattern
check "the guards undo what it had begun" gone

# A workload that ends by itself: what it said is kept, shown with the reason, and found again.
cat >"$tmp/loud-workload.lua" <<'L'
return { summary = "x", command = function(ctx, client)
  if client.name ~= "c1" then return { argv = { "sleep", "60" } } end
  return { argv = { "sh", "-c", 'seq 1 20000; echo "one line"; printf "no\\033[31m quota\\n\\n"; exit 3' } }
end }
L
echo "return { name = 'loud', workloads = { './loud-workload.lua' }, faults = { 'none' }, detectors = { 'always-healthy' },
	phases = { before = '2s', fault = '2s', after = '2s' }, attempts = 2 }" >"$tmp/loud.lua"
run loud >"$tmp/said" 2>&1
is "a workload that ends by itself leaves the cell without a confirmed attempt" $? 3
reason='c1: the workload loud-workload ended by itself with 3; cells/0001.2/c1.app.out ends with: one line\\nno\\x1b\[31m quota'
check "its last lines are in the reason, escaped" grep -qE "attempt 2 invalid: $reason\$" "$tmp/loud/run.log"
check "the table names them and the file" bash -c "tr -s ' \n' ' ' <'$tmp/said' | grep -qE 'cell 1, attempt 2 invalid: $reason'"
check "so does status" bash -c "'$culprit' status '$tmp/loud' | grep -qE 'cell 1, attempt 2 invalid: $reason'"
kept=$tmp/loud/cells/0001.2
check "the end of its output is kept, 64 KiB" [ "$(wc -c <"$kept/c1.app.out") $(tail -n 2 "$kept/c1.app.out" | cut -c 1-2)" = "65536 no" ]
is "the other client's, too, which said nothing" "$(wc -c <"$kept/c2.app.out")" 0
sum() { (cd "$tmp/loud" && sha256sum cells/*/*.app.out | sed 's/\(.*\)  \(.*\)/\2 \1/' | sort); }
is "they are listed with their checksums" "$(sqlite3 "$tmp/loud/run.db" "SELECT path || ' ' || sha256 FROM file ORDER BY path")" "$(sum)"

# Processors and memory that one node has lost are missing in its own readings, and in no other's.
cat >"$tmp/own.lua" <<'L'
return { name = "own", workloads = { "ddr" }, faults = { "cpu-hog", { "memory-hog", leave = "60MB" } }, detectors = { "always-healthy" },
	phases = { before = "2s", fault = "6s", after = "1s" }, attempts = 3 }
L
run own >"$tmp/said" 2>&1
is "both faults are verified" "$(sqlite3 "$tmp/own/run.db" "SELECT count(DISTINCT cell) FROM attempt WHERE outcome = 'confirmed'")" 2
"$culprit" query --samples "$tmp/own" >"$tmp/own.csv"
most() { # FAULT METRIC [-1]: the largest value, or the least, of the victim and of the others
	sqlite3 "$tmp/own/run.db" "SELECT number || ',' || (victims->>0) FROM cell WHERE fault LIKE '$1%'" |
		awk -F, -v m="$2" -v sign="${3:-1}" 'BEGIN { most[0] = most[1] = -1e300 } NR == FNR { cell = $1; victim = $2; next }
			$1 == cell && $3 == m { k = $4 == victim; if (sign * $7 > most[k]) most[k] = sign * $7 }
			END { printf "%.6f %.6f\n", sign * most[1], sign * most[0] }' - "$tmp/own.csv"
}
read -r victim others < <(most cpu-hog cpu_throttled_s)
echo "# held back by the quota: $victim s of a second, others $others s"
check "a processor hog uses up the victim's quota alone" awk -v v="$victim" -v o="$others" 'BEGIN { exit !(v > 0 && v > 3 * o) }'
read -r victim others < <(most memory-hog memory_available_bytes -1)
echo "# least memory available: $victim bytes, others $others"
check "a memory hog takes the victim's memory alone" awk -v v="$victim" -v o="$others" 'BEGIN { exit !(v < 9e7 && o > 9e7) }'
is "a node has the memory that it was given" "$(most memory-hog memory_total_bytes)" "268435456.000000 268435456.000000"
done_testing
