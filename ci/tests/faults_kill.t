#!/bin/bash
# Kills the orchestrator at a step of each fault's life and finds the nodes as they were. In CI one step a
# fault, another for each; with CULPRIT_SOAK=1 every step of every fault, and the agent's and the network's
# end too ('make soak').
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh
[ "$(id -u)" -eq 0 ] || skip_all "the lab needs root"
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
lab=$tmp/lab
trap '"$culprit" lab down --dir "$lab" >/dev/null; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
node() { "$culprit" lab exec --dir "$lab" "$@"; }

"$culprit" lab up --dir "$lab" --subnet 10.72.0.0/24 >/dev/null || { not_ok "the lab comes up"; done_testing; }
nodes="s1 s2 s3 s4 c1 c2 o1"

# What an agent that starts now finds on every node: it cleans first, and says what it cleaned; here only what
# is there afterwards counts, and that nothing was left to clean.
fingerprints() {
	local n
	for n in $nodes; do
		printf '{"id":1,"op":"fingerprint"}\n{"id":2,"op":"bye"}\n' | node $n -- sh -c "$serve" |
			sed -n 's/^{"id":1,"result":\(.*\)}$/\1/p; s/^.*"cleaned":\(\[[^]]*\]\),"unclean":\(\[[^]]*\]\).*$/cleaned \1 unclean \2/p'
	done
}
left() { # of ours, without starting an agent
	local n
	for n in $nodes; do
		node $n -- sh -c 'nft list tables 2>/dev/null | grep culprit_; pgrep culprit-agent; ls /var/lib/culprit/undo'
	done
}
quiet() { [ -z "$(left)" ]; }
until_true() { # SECONDS COMMAND: a bound for what must not hang
	local end=$((SECONDS + $1))
	shift
	until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done
}
reached() { grep -q "step $1\$" run/run.log 2>/dev/null || ! kill -0 "$pid" 2>/dev/null; }

# The agent where the harness puts it; a node's /tmp is its own, so that a clone there is not seen.
serve='d=$(ls -d /var/lib/culprit/agent/*/ | head -1); exec "$d"/ld-linux* --library-path "$d" "$d"/culprit-agent serve'
check "every node has the agent" "$culprit" undo --inventory "$lab/inventory.lua"
before=$(fingerprints)
check "there is something to compare" [ "$(grep -c '"mounts"' <<<"$before")" = 7 ]
steps=(inject verify onset verify-again undo offset)
faults=$("$culprit" list faults --json | sed -n 's/^ *"name": "\(.*\)",\{0,1\}$/\1/p' | grep -vx none)
turn=0
for fault in $faults; do
	cat >one.lua <<L
return { name = "one", workloads = { { "ddr", records = 1 } }, faults = { "$fault" }, detectors = { "always-healthy" }, attempts = 1,
         phases = { before = "0s", fault = "2s", after = "0s" } }
L
	if [ -n "$CULPRIT_SOAK" ]; then at=("${steps[@]}"); else at=("${steps[turn++ % ${#steps[@]}]}"); fi
	for step in "${at[@]}"; do
		rm -rf run
		"$culprit" run --quiet --lease 2s --inventory "$lab/inventory.lua" --seed $turn -o run one.lua >said 2>&1 &
		pid=$!
		until_true 60 reached "$step"
		kill -KILL $pid 2>/dev/null
		wait $pid 2>/dev/null
		if grep -q "skipped: fault" run/run.log; then
			ok "$fault # SKIP $(sed -n 's/.*skipped: fault //p' run/run.log | head -1)"
			break
		elif ! grep -q "step $step\$" run/run.log; then
			not_ok "$fault: step $step is reached" "$(cat said)"
		elif ! until_true 40 quiet; then
			not_ok "$fault, killed at $step: nothing is left" "$(left)"
		else
			after=$(fingerprints)
			check "$fault, killed at $step: every node is as it was" diff <(echo "$before") <(echo "$after")
		fi
	done
done
done_testing
