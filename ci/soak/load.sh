#!/bin/bash
# Runs a command (without one 'make check') next to LABS labs (4) that kills.py soaks, which makes a load of four to five a lab;
# ends with the command's exit code. Prints the load average while it ran: least, median, most. As root.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
labs=${LABS:-4}
[[ $labs =~ ^[1-9][0-9]?$ ]] || { echo "ci/soak/load.sh: LABS is '$labs'; it takes a number of labs" >&2; exit 2; }
[[ $# -gt 0 ]] || set -- make check
work=$(mktemp -d /var/tmp/culprit-load-XXXXXX) # programs of a node must not lie in /tmp
pids=()
stop() {
	kill "${pids[@]}" 2>/dev/null
	wait
	rm -rf "$work"
}
trap stop EXIT

one() { # NUMBER: sittings, one after the other
	local child
	trap 'kill $child 2>/dev/null; wait; exit' TERM
	for ((seed = 100 * $1; ; seed++)); do
		SOAK_SEED=$seed SOAK_LAB=/run/culprit/load$1 SOAK_SUBNET=10.$((190 + $1)).0.0/24 SOAK_WORK=$work/$1 SOAK_RESULTS=$work/results$1 \
			ci/soak/kills.py >>"$work/said$1" 2>&1 &
		child=$!
		wait "$child" && continue
		# A sitting that ends at once would be begun again without end.
		sleep 10
	done
}
for ((lab = 1; lab <= labs; lab++)); do
	one "$lab" &
	pids+=($!)
done
while sleep 20; do cut -d' ' -f1 /proc/loadavg; done >"$work/load" &
pids+=($!)

"$@"
code=$?
sort -n "$work/load" | awk '{ at[NR] = $1 } END { if (NR) printf "load average: least %s, median %s, most %s (%d readings)\n", at[1], at[int((NR + 1) / 2)], at[NR], NR }'
cat "$work"/results*/kills.csv 2>/dev/null | awk -F, '$1 != "seed" { n++; left += $12 == "left" } END { printf "meanwhile %d kills, %d left something behind\n", n, left }'
exit "$code"
