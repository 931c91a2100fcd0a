# What faults_kill_nodes.t and faults_kill_servers.t do with their halves of the faults, each of which kills the orchestrator or the
# victim's agent, or cuts the victim's network, at a step of each fault's life; afterwards every node is as it was. In CI each fault
# has one such death, at varying steps; with CULPRIT_SOAK all three at every step of every fault ('make soak-steps').
# Source it at the root of the checkout, then: kill_faults GREP-OPTION ..., which choose the half by name.
. ci/tests/lab/nodes.sh
quiet() { [ -z "$(left; on_all 'pgrep -l "^culprit-"')" ]; }
reached() { grep -q "step $1\$" run/run.log 2>/dev/null || ! kill -0 "$pid" 2>/dev/null; }
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
	local fault=$1 step=$2 what=$3 name="$1, $3 dies at $2" victim lease=60s
	# Only this death waits for the lease. A program of an act has half of it: 3 s for one of nft among twenty busy processes.
	[ "$what" != network ] || lease=6s
	rm -rf run
	"$culprit" run --quiet --lease $lease --inventory "$inventory" --seed $turn -o run one.lua >said 2>&1 &
	pid=$!
	until_true 300 reached "$step"
	victim=$(sqlite3 run/run.db "SELECT coalesce(victims->>0, '$(acts_on "$fault")') FROM cell" 2>/dev/null)
	die "$what" "$victim" 2>/dev/null
	# A run that has lost a node ends by itself, but this test does not wait for that.
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	if grep -qE "skipped: fault|no fault of the scenario can run here" run/run.log; then
		ok "$name # SKIP $(sed -nE 's/.*(skipped: fault|can run here:) //p' run/run.log | head -1)"
	elif ! grep -q "step $step\$" run/run.log; then
		not_ok "$name: the step is reached" "$(cat said run/run.log)"
	elif ! until_true 120 quiet; then
		not_ok "$name: nothing is left" "$(left)"
	else
		check "$name: every node is as it was" diff <(echo "$before") <(fingerprints)
	fi
}

kill_faults() { # GREP-OPTION ...
	local fault what step
	lab_up --cpus 1 --memory 512MiB
	check "every node has the agent" "$culprit" undo --inventory "$inventory"
	before=$(fingerprints)
	check "there is something to compare" [ "$(grep -c '"mounts"' <<<"$before")" = 5 ]
	turn=0
	for fault in $("$culprit" list faults --json | sed -n 's/^ *"name": "\(.*\)",\{0,1\}$/\1/p' | grep "$@"); do
		cat >one.lua <<L
return { name = "one", workloads = { { "ddr", records = $(records "$fault") } }, faults = { $(parameters "$fault") }, detectors = { "always-healthy" },
         attempts = 1, phases = { before = "0s", fault = "2s", after = "0s" }, gates = { onset = "300s" } }
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
	check "there are faults" [ $turn -ge 6 ]
	check "the lab goes down" "$culprit" lab down --dir "$lab"
	done_testing
}
# The three pieces of the file may all be on other servers: few packets come from this one then, and half of them are lost.
records() { case $1 in disk-slow | disk-stall | disk-errors) echo 6 ;; *) echo 1 ;; esac; } # some pieces must be on the victim: it has to read
# Look-alikes have no victim; a node that they act on.
acts_on() { case $1 in hot-file | metadata-storm) echo c1 ;; *) echo s1 ;; esac; }
parameters() {
	case $1 in
	send-pktloss) echo "{ '$1', loss = '50%' }" ;;
	server-cpu) echo "{ '$1', cpus = 0.05 }" ;; # nor does it compute much
	*) echo "'$1'" ;;
	esac
}
