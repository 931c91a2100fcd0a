#!/bin/bash
# A fault whose inject does not end: the run ends, its log has the file and the line, and the guards undo what inject had
# begun, also if inject is inside a C function and the program must exit at once.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/lab_lib.sh
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

check "a lab" up
fault loop 'while true do end'
run loop >/dev/null 2>&1
code=$?
check "an endless loop in inject ends the run, as a mistake in the fault" [ $code = 2 ]
check "its log names file and line" grep -q 'loop-fault.lua:3: it used up its 1.0 s of processor time' "$tmp/loop/run.log"
check "what it had begun is undone" gone
fault pattern 'return (("a"):rep(50)):find(("a*"):rep(40) .. "b")'
exits "a pattern that does not end" 2 "pattern-fault.lua:3: 'find' does not return.*culprit resume" run pattern
check "the guards undo what it had begun" gone
done_testing
