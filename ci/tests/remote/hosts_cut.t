#!/bin/bash
# A node's network is cut in the middle of a fault, for longer than the lease, and for less.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/remote/hosts_lib.sh
check "a lab comes up" "$culprit" lab up --dir "$dir" --subnet "$subnet" --servers 2 --clients 1

cut_off() { # SECONDS: nothing passes but what stays on the node
	inside "$(victim)" sh -c 'printf "table inet cut {\n%s\n%s\n}\n" \
		"chain in { type filter hook input priority -300; iif != lo drop; }" \
		"chain out { type filter hook output priority -300; oif != lo drop; }" | nft -f - &&
		sleep $1; nft delete table inet cut' sh "$1"
}

scenario long receive-pktloss 4
begin long
check "a fault acts" comes_to_act
check "its node's network is cut for 20 s" cut_off 20
check "by then the guard has undone the fault" eval '! acting'
ended 0 "the run continues and succeeds"
check "with another attempt" recovered long
check "the first one's reason names the node, and how long it was silent" bash -c 'grep -q "s[12]: no answer for 10 s" <<<"$1"' sh "$(reason long)"
check "all nodes are clean" nothing_left

scenario short receive-pktloss 6
begin short
check "a fault acts again" comes_to_act
check "the network is cut for 3 s, which the lease outlasts" cut_off 3
check "the fault is still active" acting
ended 0 "the run ends well"
check "and no attempt lost its node" bash -c '! grep -qE "no answer|connection lost|agent ended" <<<"$1"' sh \
	"$(sql short "SELECT reason FROM attempt")"
check "all nodes are clean again" nothing_left
check "the lab goes down" down
done_testing
