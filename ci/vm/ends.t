#!/bin/bash
# Whatever ends while a fault acts, no fault outlives it: the orchestrator, the network, the power, the system. Then a clock that is
# set while cells run, and a disk that is removed. Services of systemd-run, since they are not there after a boot.
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2086
up $nodes
note "Linux $(on s1 uname -r)"
check "services serve, and a client mounts" bricks
before=$(left)
nothing_left() { [ "$(left)" = "$before" ] || { diff <(echo "$before") <(left); false; }; }
# Runs a scenario of one fault, until it acts on $victim: by CONDITION there. What ended before it says why.
acts() { # NAME FAULT CONDITION TEXT
	scenario "$1" "\"$2\"" 600 1
	begin "$1"
	victim=
	until_true 300 eval "! kill -0 $run || victim=\$(victim_of $2) && [ -n \"\$victim\" ]"
	if until_true 300 eval "! kill -0 $run || on '$victim' '$3' >'$tmp/acts'" && kill -0 $run; then ok "$4"; else
		not_ok "$4" "$(cat "$tmp/$1.said")"
	fi
}
console() { grep -aq "$1" "$DIR/$victim.console"; }

# The orchestrator is killed: its connections end, or else the lease of 10 s.
acts killed hang 'pgrep -r T glusterfsd' "hang acts"
kill -KILL $run
ended 137 "the orchestrator is killed"
check "its stopped server goes on, and nothing is left" until_true 60 nothing_left

# The victim's network is cut. What it does without one it says on its serial console.
acts cut receive-pktloss 'nft list tables | grep culprit' "a packet loss acts"
on "$victim" 'systemd-run -q sh -c "while nft list tables | grep -q culprit; do sleep 0.2; done; echo the rules of the cut victim are gone >/dev/ttyS0"'
check "its network is cut while the rules are there" eval '! console "rules of the cut victim are gone" && ip link set "tap-$victim" down'
check "without a network it removes the rules" until_true 120 console "rules of the cut victim are gone"
ended 3 "the run ends with 3"
check "the run names the node that it lost" grep -q "$victim" "$tmp/cut.said"
ip link set "tap-$victim" up
check "once it has its network again, nothing is left" until_true 60 nothing_left

# Power and system: what lies on the disk of a node that ended in the middle of a fault.
for end in "power is cut" "system reboots by reboot -f"; do
	name=${end%% *}
	acts "$name" err-remount 'LC_ALL=C touch /srv/data/new 2>&1 | grep -i read-only || { rm -f /srv/data/new; false; }' "$end: storage that cannot be written acts"
	boot_id=$(on "$victim" cat /proc/sys/kernel/random/boot_id)
	if [ "$name" = power ]; then down "$victim"; else on "$victim" 'nohup reboot -f >/dev/null 2>&1 &'; fi
	ended 3 "$end: the run ends with 3"
	check "$end: the run names the node that it lost" grep -q "$victim" "$tmp/$name.said"
	[ "$name" = power ] || check "$end: the system begins anew" until_true 300 eval "new=\$(on $victim cat /proc/sys/kernel/random/boot_id) && [ \$new != $boot_id ]"
	# shellcheck disable=SC2086
	up $nodes
	culprit undo --inventory "$DIR/inventory.lua" >"$tmp/undo.said" 2>&1
	is "$end: undo says that every node is clean" $? 0
	sed 's/^/# /' "$tmp/undo.said"
	check "$end: nothing is left" nothing_left
	check "$end: its file system has no errors" on "$victim" 'e=$(dumpe2fs -h /dev/sda1 2>&1) && ! grep -i "state:.*error\|FS Error" <<<"$e" && touch /srv/data/x && rm /srv/data/x'
	check "$end: its service starts again" bricks "$victim"
	check "$end: and the client writes there" until_true 120 on c1 'timeout 60 sh -c "for i in 1 2 3 4 5 6 7 8; do echo x >/mnt/\$i && rm /mnt/\$i || exit; done"'
done

# A clock that is set: no cell is measured until it is right again.
scenario clock '"none", "hang"' 8 3
begin clock
check "the clock's run has begun" until_true 300 eval "[ \$(ls -d '$tmp'/clock/cells/*.1 | wc -l) -gt 0 ]"
on s2 'systemctl stop chrony; date -s "+2 seconds"' | sed 's/^/# /'
check "a run whose s2 is 2 s ahead waits, and says why" until_true 300 grep -q 'quarantined: s2: .*clock' "$tmp/clock/run.log"
culprit doctor --inventory "$DIR/inventory.lua" >"$tmp/doctor.said" 2>&1
check "doctor says that it is 2 s ahead" awk '
	$1 == "ok" && $2 ~ /^[sco][1-9]$/ { node = $2 }
	$1 == "note" && $2 == "clock" { offset[node] = $3 }
	END { ahead = offset["s2"] - offset["s1"]; exit !(ahead > 1.5 && ahead < 2.5) }' "$tmp/doctor.said"
on s2 'systemctl start chrony; for i in 1 2 3; do chronyc -a makestep && break; sleep 1; done; chronyc waitsync 30 0.05' | tail -1 | sed 's/^/# /'
ended 0 "once it is right, the run goes on and ends with 0"
check "and says that it went on" grep -q 'quarantine is over' "$tmp/clock/run.log"
confirmed none
confirmed hang
check "nothing is left" nothing_left

# A disk is removed while a cell is measured.
scenario gone '"none"' 600 1
begin gone
check "a cell is being measured" until_true 300 eval "[ \$(ls -d '$tmp'/gone/cells/*.1 | wc -l) -gt 0 ] && on s3 'pgrep culprit-'"
check "the disk of s3 is removed" vms qmp s3 device_del id=data
ended 3 "the run ends with 3"
culprit doctor --inventory "$DIR/inventory.lua" >"$tmp/doctor.said" 2>&1
code=$?
sed 's/^/# /' "$tmp/doctor.said"
check "doctor refuses the cluster" [ $code -ne 0 ]
check "and names s3's storage" awk '
	$1 == "ok" && $2 ~ /^[sco][1-9]$/ { node = $2 }
	$1 == "BAD" && $2 == "storage" { bad = bad node }
	END { exit bad != "s3" }' "$tmp/doctor.said"
down s3
# shellcheck disable=SC2086
up $nodes
# What was removed shortly before the power was cut may be there again: undo first.
culprit undo --inventory "$DIR/inventory.lua" 2>&1 | sed 's/^/# /'
check "with its disk again, nothing is left after undo" nothing_left
done_testing
