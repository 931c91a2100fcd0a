#!/bin/bash
# A mistake in a user's fault is an error, which is not tried again; once its file is mended, the run is resumed with that fault's cells
# alone.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/experiment/resume.sh
lab_up

fault() { # LINE: the second one of its inject
	cat >mine.lua <<-L
		return { summary = "x", resource = "cpu", verify = function() return true end, inject = function(ctx)
		  pcall(ctx.victim.process, ctx.victim, { argv = { "/no/such/program" } })
		  $1
		end }
	L
}
cat >mended.lua <<'L'
return { name = "mended", workloads = { { "ddw", records = 1 } }, faults = { "none", "./mine.lua" }, detectors = { "always-healthy" },
         phases = { before = "1s", fault = "1s", after = "0" }, gates = { onset = "300s" }, attempts = 3 }
L
fault 'ctx.victm.name = 1'
"${run[@]}" -o mended mended.lua >table 2>log
check "a mistake in a fault ends the run with 2" test $? -eq 2
is_one() { [ "$(sql mended "SELECT count(*) FROM attempt WHERE $1")" = "$2" ] || { sql mended "SELECT cell, number, outcome, reason FROM attempt"; false; }; }
check "it is an error, tried once, although a failed call was caught before it" is_one "outcome = 'error' AND reason LIKE '%mine.lua:3:%'" 1
check "no attempt is invalid" is_one "outcome = 'invalid'" 0
control=$(sql mended "SELECT id FROM attempt WHERE outcome = 'confirmed'")
fault 'ctx.state.x = 1'
"$culprit" resume mended --quiet >table 2>log
check "mended, the run is resumed to its end" eval "[ $? -eq 0 ] || { cat log mended/run.log; false; }"
check "one line says what is run again" logged "changed since: fault mine; its cells are run again (0 had been confirmed), others stay" mended
check "every cell is complete, once" once mended 2
check "the control is the one of before" is_one "outcome = 'confirmed' AND id = $control" 1
fault 'ctx.state.x = 2'
"$culprit" resume mended --quiet >table 2>log
check "mended again, a confirmed cell is run again, too" eval "[ $? -eq 0 ] || { cat log mended/run.log; false; }"
check "and said" logged "fault mine; its cells are run again (1 had been confirmed)" mended
check "every cell is complete, once" once mended 2
check "the attempt with the old text is kept, with the reason" is_one "outcome = 'invalid' AND reason LIKE '%file has changed since'" 1
"$culprit" resume mended --quiet >table 2>log
check "the next resume finds nothing to do" logged 'nothing is left to run' mended

check "the lab goes down" "$culprit" lab down --dir "$lab"
done_testing
