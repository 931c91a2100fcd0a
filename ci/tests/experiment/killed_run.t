#!/bin/bash
# A run that is interrupted or killed while a fault acts: whatever happens to the orchestrator, the nodes end as they were.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
[ "$(id -u)" -eq 0 ] || skip_all "the lab needs root"
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
lab=$tmp/lab
trap '"$culprit" lab down --dir "$lab" >/dev/null; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
node() { "$culprit" lab exec --dir "$lab" "$@"; }

check "the lab comes up" "$culprit" lab up --dir "$lab" --subnet 10.80.0.0/24
for fault in receive-pktloss disk-hog; do
	cat >$fault.lua <<L
return { name = "long", workloads = { { "ddr", records = 1 } }, faults = { "$fault" }, detectors = { "always-healthy" },
         phases = { before = "1s", fault = "300s", after = "1s" } }
L
done
# Each node says "NODE: " and what is there of culprit's: rules, hogs, its processes, undo journals. A node that says nothing was not seen.
there() {
	local n
	for n in s1 s2 s3 s4 c1 c2 o1; do
		# shellcheck disable=SC2016 # expanded there
		node $n -- sh -c 'echo "$0: $({ nft list tables | grep -o "culprit_.*"; pgrep -l -x dd; pgrep -l culprit-; ls /var/lib/culprit/undo 2>/dev/null; } | xargs)"' $n
	done
}
acting() { there | grep -q "^s[1-4]: .*$acts"; }
clean() { diff <(printf '%s: \n' s1 s2 s3 s4 c1 c2 o1) <(there); }
check "a lab without a run holds nothing of culprit's" clean

for fault in receive-pktloss disk-hog; do
	acts=$([ $fault = disk-hog ] && echo '[0-9] dd\b' || echo culprit_)
	for signal in INT KILL; do
		"$culprit" run --inventory "$lab/inventory.lua" --seed 1 -o "$fault.$signal" $fault.lua >said 2>&1 &
		pid=$!
		check "$fault acts on a server (before SIG$signal)" until_true 60 acting
		began=$EPOCHREALTIME
		kill -$signal $pid
		wait $pid 2>/dev/null
		code=$?
		if [ $signal = INT ]; then
			check "$fault: the interrupted run ends with 3" [ $code -eq 3 ]
			check "$fault: the interrupted run reports that every fault is undone" grep -q 'interrupted: every fault is undone' said
			check "$fault: the interrupted run leaves nothing on any node" clean
		else
			check "$fault: the run was killed while the fault acted" [ $code -eq 137 ]
			# README: the guard reverts everything within 10 s.
			check "$fault: 10 s after the run was killed, nothing is left on any node" until_true 10 clean
			awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "# the nodes were clean %.1f s after the kill\n", b - a }'
		fi
	done
done
check "the lab goes down" "$culprit" lab down --dir "$lab"
done_testing
