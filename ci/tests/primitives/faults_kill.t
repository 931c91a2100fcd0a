#!/bin/bash
# Kills the orchestrator or the victim's agent, or cuts the victim's network, at a step of each fault's life;
# afterwards every node is as it was. In CI each fault has one such death, at varying steps; with CULPRIT_SOAK all
# three at every step of every fault ('make soak-steps').
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
[ "$(id -u)" -eq 0 ] || skip_all "the lab needs root"
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
lab=$tmp/lab
trap '"$culprit" lab down --dir "$lab" >/dev/null; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
node() { "$culprit" lab exec --dir "$lab" "$@"; }

"$culprit" lab up --dir "$lab" --subnet 10.72.0.0/24 --cpus 1 --memory 512MiB >/dev/null || { not_ok "the lab comes up"; done_testing; }
nodes="s1 s2 s3 s4 c1 c2 o1"

# The agent where the harness puts it: a clone in /tmp is not visible on a node.
serve='d=$(ls -d /var/lib/culprit/agent/*/ | head -1); exec "$d"/ld-linux* --library-path "$d" "$d"/culprit-agent serve'

# What an agent that starts now finds on every node, and what it had to clean, which should be nothing.
fingerprints() {
	local n pid
	for n in $nodes; do
		pid=$(node $n -- pgrep -x 'glusterfsd?' | head -1)
		printf '{"id":1,"op":"fingerprint"%s}\n{"id":2,"op":"bye"}\n' "${pid:+,\"pids\":[$pid]}" | node $n -- sh -c "$serve" |
			sed -n 's/^{"id":1,"result":\(.*\)}$/\1/p; s/^.*"cleaned":\(\[[^]]*\]\),"unclean":\(\[[^]]*\]\).*$/cleaned \1 unclean \2/p'
	done
}
left() { # of ours, without starting an agent
	local n
	for n in $nodes; do
		node $n -- sh -c 'nft list tables 2>/dev/null | grep culprit_; pgrep -l "^culprit-"; ls /var/lib/culprit/undo'
	done
}
quiet() { [ -z "$(left)" ]; }
reached() { grep -q "step $1\$" run/run.log 2>/dev/null || ! kill -0 "$pid" 2>/dev/null; }

check "every node has the agent" "$culprit" undo --inventory "$lab/inventory.lua"
before=$(fingerprints)
check "there is something to compare" [ "$(grep -c '"mounts"' <<<"$before")" = 7 ]
steps=(inject verify onset verify-again undo offset)
deaths=(orchestrator agent network)

# What dies at the step. The agent's guard lives on; the network comes back only after the lease.
die() { # WHAT VICTIM
	case $1 in
	orchestrator) kill -KILL $pid ;;
	agent) node "$2" -- pkill -KILL -x culprit-agent ;;
	network)
		node "$2" -- nft 'add table inet cut; add chain inet cut in { type filter hook input priority -500; policy drop; }'
		until_true 120 node "$2" -- sh -c '! pgrep -x culprit-guard >/dev/null'
		node "$2" -- nft delete table inet cut
		;;
	esac
}

try() { # FAULT STEP WHAT
	local fault=$1 step=$2 what=$3 name="$1, $3 dies at $2" victim
	# A machine so busy that the lease ends before the step is given a longer one.
	for lease in 2 8 32; do
		rm -rf run
		"$culprit" run --quiet --lease ${lease}s --inventory "$lab/inventory.lua" --seed $turn -o run one.lua >said 2>&1 &
		pid=$!
		until_true 120 reached "$step"
		grep -q "step $step\$\|skipped: fault" run/run.log && break
		kill -KILL $pid 2>/dev/null
		wait $pid 2>/dev/null
		until_true 120 quiet
	done
	victim=$(sqlite3 run/run.db "SELECT victims->>0 FROM cell" 2>/dev/null)
	die "$what" "$victim" 2>/dev/null
	# A run that has lost a node ends by itself, but this test does not wait for that.
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	if grep -q "skipped: fault" run/run.log; then
		ok "$name # SKIP $(sed -n 's/.*skipped: fault //p' run/run.log | head -1)"
	elif ! grep -q "step $step\$" run/run.log; then
		not_ok "$name: the step is reached" "$(cat said)"
	elif ! until_true 120 quiet; then
		not_ok "$name: nothing is left" "$(left)"
	else
		check "$name: every node is as it was" diff <(echo "$before") <(fingerprints)
	fi
}

faults=$("$culprit" list faults --json | sed -n 's/^ *"name": "\(.*\)",\{0,1\}$/\1/p' | grep -vx none)
turn=0
for fault in $faults; do
	cat >one.lua <<L
return { name = "one", workloads = { { "ddr", records = 1 } }, faults = { "$fault" }, detectors = { "always-healthy" }, attempts = 1,
         phases = { before = "0s", fault = "2s", after = "0s" }, gates = { onset = "300s" } }
L
	if [ -n "$CULPRIT_SOAK" ]; then
		for what in "${deaths[@]}"; do
			for step in "${steps[@]}"; do try "$fault" "$step" "$what"; done
		done
	else
		try "$fault" "${steps[turn % 6]}" "${deaths[turn / 2 % 3]}"
	fi
	turn=$((turn + 1))
done
done_testing
