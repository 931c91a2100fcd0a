#!/bin/bash
# A run with every fault on a lab, by an orchestrator and agents that are built with sanitizers (make sanitize). A finding fails
# it, and so does a cell without a confirmed attempt. As root; some five minutes.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
culprit=$PWD/${OUT:-out-asan}/culprit
export UBSAN_OPTIONS=print_stacktrace=1
[[ -x $culprit ]] || { echo "ci/sanitize_lab.sh: there is no $culprit: run 'make sanitize'" >&2; exit 2; }
tmp=$(mktemp -d)
trap '"$culprit" lab down --dir "$tmp/lab" >/dev/null 2>&1; rm -rf "$tmp"' EXIT

# Under the workload and with the parameters that the soak gives each.
faults=$(OUT=${OUT:-out-asan} python3 -B -c '
import sys
sys.path.insert(0, "ci/soak")
import kills
for name in ["none", *kills.fault_names()]:
    print("{ \"%s\", %s }," % (name, kills.FAULT_TEXT.get(name, kills.UNDER_DDW)))') || exit 2
cat >"$tmp/all.lua" <<L
return { name = "all", workloads = { { "ddw", fresh = 1, records = 1000 }, "create" }, attempts = 4, faults = { $faults },
	detectors = { "always-healthy", "peer-robust" }, phases = { before = "2s", fault = "6s", after = "1s" }, gates = { onset = "300s" } }
L
said() { grep -rnE 'runtime error:|ERROR: (Address|Leak)Sanitizer|SUMMARY: ' "$tmp" --include=log --include=run.log --include='*.out' --include=lab.log; }
"$culprit" lab up --dir "$tmp/lab" --subnet 10.78.0.0/24 --servers 3 --clients 1 --memory 512MiB >"$tmp/lab.log" 2>&1 &&
	timeout -k 10 2400 "$culprit" run --quiet --inventory "$tmp/lab/inventory.lua" -o "$tmp/run" "$tmp/all.lua" >"$tmp/log" 2>&1 &&
	"$culprit" undo --inventory "$tmp/lab/inventory.lua" >>"$tmp/log" 2>&1
code=$?
if said || [[ $code -ne 0 ]]; then
	cat "$tmp/lab.log" "$tmp/log"
	[[ ! -r $tmp/run/run.log ]] || grep -v ' step ' "$tmp/run/run.log"
	echo "a run with every fault on a lab: FAILED"
	exit 1
fi
echo "a run with every fault on a lab: $(grep -c confirmed "$tmp/run/run.log") cells confirmed, no finding"
