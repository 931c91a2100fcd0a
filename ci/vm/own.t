#!/bin/bash
# Bricks that are services of systemd, from volume files and without glusterd: what their end looks like to systemd, and faults of a
# user's own that act above the counters of disk and interface.
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2086
up $nodes
note "Linux $(on s1 uname -r)"
check "services serve, and a client mounts" bricks
before=$(left)
scenario stock '"none", "kill", "hang", "'"$PWD"'/ci/vm/netem.lua", "'"$PWD"'/ci/vm/io-max.lua"' 8
begin stock
ended 0 "a run with kill, hang, netem and io.max ends with 0"
for fault in none kill hang netem io-max; do confirmed $fault; done

victim=$(victim_of kill)
ended_by() { on "$victim" 'journalctl -o cat -u brick.service' | grep 'Main process exited'; }
check "kill: the journal of $victim's service says 9/KILL" bash -c 'grep -q "status=9/KILL" <<<"$1"' sh "$(ended_by)"
check "and no other signal ended one" bash -c '! grep -v "status=9/KILL" <<<"$1"' sh "$(ended_by)"
check "systemd watches it again" on "$victim" '[ "$(systemctl show --value -p ActiveState brick.service)" = active ]'

# What was measured under the fault, of the victim and of the other server with most of it.
measured() { # FAULT METRIC
	culprit query --samples "$tmp/stock" --cell "$(sql stock "SELECT number FROM cell WHERE fault LIKE '%$1%'")" --metric "$2" |
		awk -F, -v victim="$(victim_of "$1")" 'NR > 1 { v[$4] += $7 } END { for (s in v) if (s != victim && v[s] > most) most = v[s]; print v[victim] + 0, most + 0 }'
}
read -r own most < <(measured io-max process_io_pressure_s)
note "io-max: seconds of pressure: victim $own, the others at most $most"
check "io.max shows in the pressure of the victim's service" awk -v a="$own" -v b="$most" 'BEGIN { exit !(a > 1 && a > 2 * b) }'
read -r own most < <(measured netem qdisc_backlog_bytes)
note "netem: bytes in the queue: victim $own, the others at most $most"
check "netem shows in the backlog of the victim's queue" awk -v a="$own" -v b="$most" 'BEGIN { exit !(a > 0 && a > 2 * b) }'
is "nothing is left" "$(left)" "$before"
done_testing
