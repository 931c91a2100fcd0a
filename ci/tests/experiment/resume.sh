# What the tests of resuming share: a lab, and runs on it. Source it at the root of the checkout.
. ci/tests/schema.sh
. ci/tests/lab/nodes.sh
sql() { sqlite3 "$1/run.db" "$2"; }
# shellcheck disable=SC2034 # the test's
run=("$culprit" run --inventory "$inventory" --seed 5 --quiet)
logged() { cat log "$2/run.log" | grep -q "$1" || { cat log "$2/run.log"; false; }; }
begins() { # RUN LOG: its first cell has files; what ended before it began says why
	until_true 300 eval "test -e '$1/cells/0001.1' || ! kill -0 $pid 2>/dev/null" && [ -e "$1/cells/0001.1" ] && return
	cat "$2" "$1/run.log"
	return 1
}
once() { # RUN CELLS: each cell has one confirmed attempt, and no folder is without its attempt
	[ "$(sql "$1" "SELECT count(*), count(DISTINCT cell) FROM attempt WHERE outcome = 'confirmed'")" = "$2|$2" ] &&
		[ -z "$(comm -23 <(ls "$1/cells") <(sql "$1" "SELECT printf('%04d.%d', cell, number) FROM attempt" | sort))" ]
}
scenario() { # NAME GATES
	cat >"$1.lua" <<L
return { name = "$1", workloads = { "ddw", "ddr" }, faults = { "none", "receive-pktloss" },
         detectors = { "peer-threshold", "always-same" }, phases = { before = "1s", fault = "2s", after = "0" },
         gates = { onset = "300s", $2 }, attempts = 5, training = { workloads = { "ddr" } }, repeats = 1 }
L
}
