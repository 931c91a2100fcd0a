#!/bin/bash
# Servers that systemd started: killed, limited and restarted, they stay in systemd's hands. A system manager of the test's
# own runs as process 1 of its namespaces, with units that exist only there.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
[ "$(id -u)" = 0 ] || skip_all "namespaces need root"
[ -x /lib/systemd/systemd ] || skip_all "there is no systemd"
for program in systemctl unshare nsenter mkfs.ext4; do
	PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null || skip_all "there is no $program"
done
agent=$(realpath "${OUT:-out}/agent/culprit-agent")
helper=$(realpath "${OUT:-out}/helpers/server")
tmp=$(mktemp -d)
manager=
# Whoever is pid 1 of the namespaces takes all others with it. The test's cgroup is seen in its own mount.
cleanup() {
	[ -z "$manager" ] || kill -KILL "$manager"
	wait 2>/dev/null
	unshare --mount --propagation private bash -c "mount -t cgroup2 none /mnt && cd /mnt/culprit-test-$$ &&
		find . -depth -type d -exec rmdir {} \; && cd .. && rmdir culprit-test-$$" 2>/dev/null
	rm -rf "$tmp"
}
trap cleanup EXIT
mkdir "$tmp/units" "$tmp/data" "$tmp/data/folder"
unit() { # NAME PORT LINE: a server that goes into the background, and is started again when it ends
	printf '[Unit]\nDefaultDependencies=no\n[Service]\nType=forking\nRestart=always\nRestartSec=100ms\nTimeoutStartSec=20\n%s\nExecStart=%s %s %s\n' \
		"$3" "$helper" "$2" "$tmp/data" >"$tmp/units/$1.service"
}
# systemd notes how each main process ended.
unit plain 4713 "UMask=0027
ExecStopPost=/bin/sh -c 'echo \$EXIT_CODE \$EXIT_STATUS >>$tmp/ends'"
unit walled 4714 "PrivateMounts=yes"
printf '[Unit]\nDefaultDependencies=no\nWants=plain.service walled.service\n' >"$tmp/units/test.target"
printf '[Unit]\nDefaultDependencies=no\nRequires=plain.service\nAfter=plain.service\n[Service]\nExecStart=/bin/sleep infinity\n' \
	>"$tmp/units/dependent.service"

cat >"$tmp/begin" <<'B'
mount -t cgroup2 none /mnt && mkdir "/mnt/$1" && echo $$ >"/mnt/$1/cgroup.procs" && umount /mnt || exit
exec unshare --cgroup --pid --net --fork --kill-child bash -c '
	mount -t proc proc /proc && ip link set lo up && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib || exit
	mount -t cgroup2 none /sys/fs/cgroup || exit
	export container=other SYSTEMD_UNIT_PATH="$1"
	exec /lib/systemd/systemd --system --unit=test.target --log-target=console --show-status=0' bash "$2"
B
unshare --mount --propagation private bash "$tmp/begin" "culprit-test-$$" "$tmp/units" </dev/null >"$tmp/log" 2>&1 &
begun=$!
found() { manager=$(pgrep -P "$begun" -x systemd) && [ -n "$manager" ]; }
inside() { nsenter -t "$manager" -m -p -n -C "$@"; }
of() { inside systemctl show --property="$2" --value "$1.service"; } # UNIT PROPERTY
active() { [ "$(of "$1" ActiveState)" = active ]; }
until_true 20 found || skip_all "systemd does not start in namespaces here: $(tail -n 1 "$tmp/log")"
until_true 20 active plain || skip_all "systemd starts no service in namespaces here: $(tail -n 1 "$tmp/log")"

# A session of the agent: requests are written to descriptor 8, answers read from 9.
session() {
	mkfifo "$tmp/to" "$tmp/from"
	inside "$agent" serve --lease 60s --dir "$tmp/state" <"$tmp/to" >"$tmp/from" 2>"$tmp/agent" &
	served=$!
	exec 8>"$tmp/to" 9<"$tmp/from"
	read -r -t 30 answer <&9
}
ask() { # REQUEST: its answer is in $answer; true if it is a result
	id=$((id + 1))
	echo "{\"id\":$id,$1}" >&8
	while read -r -t 60 answer <&9; do
		case $answer in "{\"id\":$id,\"result\""*) return 0 ;; "{\"id\":$id,"*) return 1 ;; esac
	done
	return 1
}
can() { ask "$1" && grep -q '"able":true' <<<"$answer"; }
act() { ask "$1" && handle=$(sed 's/.*"handle":"\([^"]*\)".*/\1/' <<<"$answer"); }
undo() { ask "\"op\":\"undo\",\"handle\":\"$handle\""; }
does() { # NAME COMMAND ...: as check, but in this shell, which keeps the session's state
	local name=$1
	shift
	if "$@"; then ok "$name"; else not_ok "$name" "$answer"; fi
}
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3': $answer"; fi; }
units() { inside systemctl list-units --all --plain --no-legend 'culprit-standby-*' | awk '{ print $1 }'; }
no_unit() { [ -z "$(units)" ]; }
pid() { of "${1:-plain}" MainPID; }
services() { inside pgrep -c -f "^$helper $1 "; } # PORT: how many processes
as_before() { # WHAT: plain.service runs, as another process, and nothing else does
	does "$1: the undo" undo
	is "$1: systemd has started it again, once" "$(of plain ActiveState) $(services 4713)" "active 1"
	check "$1: as another process of its own" eval '[ "$(pid)" != "$was" ] && inside grep -q "^0::/system.slice/plain.service" "/proc/$(pid)/cgroup"'
	was=$(pid)
}

session
was=$(pid)
inside systemctl start dependent.service
does "a server under systemd can be restarted" can "\"op\":\"check\",\"what\":\"service.restart\",\"with\":{\"pid\":$was}"

does "a server is killed" act "\"op\":\"service.kill\",\"pid\":$was"
# Whether systemd notices the death or is asked to stop first decides between the two states.
is "it is not started again by systemd" "$(of plain ActiveState | sed s/failed/inactive/) $(services 4713)" "inactive 0"
is "it ended by SIGKILL, as in a crash" "$(head -n 1 "$tmp/ends")" "killed KILL"
is "a unit that depends on it goes on" "$(of dependent ActiveState)" active
as_before kill

limit=$(inside awk '/Max open files/ { print $4 }' "/proc/$was/limits")
does "a server is limited" act "\"op\":\"service.limit\",\"pid\":$was,\"limits\":{\"nofile\":50}"
is "it is the same process" "$(pid)" "$was"
as_before limit
is "its limit is the unit's again" "$(inside awk '/Max open files/ { print $4 }' "/proc/$was/limits")" "$limit"

does "a server is restarted differently" act "\"op\":\"service.restart\",\"pid\":$was,\"limits\":{\"nofile\":60}"
is "it is outside the unit" "$(of plain ActiveState) $(services 4713)" "inactive 1"
as_before "restart under a limit"

does "a server gets a small storage" act "\"op\":\"service.restart\",\"pid\":$was,\"storage\":{\"path\":\"$tmp/data\",\"size_bytes\":8388608}"
is "it stays systemd's" "$(of plain ActiveState) $(inside stat -f -c %T "$tmp/data")" "active ext2/ext3"
as_before "small storage"
check "its files are back" inside test -e "$tmp/data/data"

does "a server is killed" act "\"op\":\"service.kill\",\"pid\":$was"
inside systemctl start plain.service
was=$(pid)
does "the undo of one that somebody has started meanwhile" undo
is "leaves it alone" "$(pid)" "$was"

# A unit with a mount namespace of its own can be killed; only systemd can start it there.
walled=$(pid walled)
can "\"op\":\"check\",\"what\":\"service.restart\",\"with\":{\"pid\":$walled,\"limits\":{\"nofile\":60}}"
check "a unit with namespaces cannot be started differently" grep -q 'walled.service has a namespace of its own' <<<"$answer"
does "but it can be killed" act "\"op\":\"service.kill\",\"pid\":$walled"
is "systemd does not start it" "$(of walled ActiveState | sed s/failed/inactive/) $(services 4714)" "inactive 0"
does "until the undo" undo
is "systemd starts it" "$(of walled ActiveState) $(services 4714)" "active 1"

# systemd-run makes a unit without a file, which systemd forgets when it has ended.
inside systemd-run --quiet --unit=fleeting --property=DefaultDependencies=no --property=Restart=always --property=Type=forking \
	"$helper" 4715 "$tmp/data"
until_true 20 active fleeting
fleeting=$(pid fleeting)
keepers() { inside systemctl list-units --all --plain --no-legend 'culprit-keep-*' | wc -l; }
does "a server of systemd-run is killed" act "\"op\":\"service.kill\",\"pid\":$fleeting"
is "systemd does not start it, and does not forget it" "$(of fleeting LoadState) $(services 4715)" "loaded 0"
does "until the undo" undo
is "systemd starts it, and keeps nothing" "$(of fleeting ActiveState) $(of fleeting Restart) $(services 4715) $(keepers)" "active always 1 0"
does "it can be killed again" act "\"op\":\"service.kill\",\"pid\":$(pid fleeting)"
does "and started again" undo
inside systemctl stop fleeting.service
is "once it is stopped it is forgotten, as any such unit" "$(of fleeting LoadState)" not-found

does "a server is killed" act "\"op\":\"service.kill\",\"pid\":$was"
inside pkill -KILL -x culprit-agent
check "the guard of a dead agent has systemd start it" until_true 60 active plain
is "once" "$(services 4713)" 1
check "the dead session's unit ends with its journal" until_true 60 no_unit

# Everything of a session is killed at the same moment: agent, guard, its twin, and the process of the unit that watches it.
rm -f "$tmp/to" "$tmp/from"
session
was=$(pid)
check "a session has a transient unit" until_true 60 eval '[ -n "$(inside systemctl show --property=MainPID --value "$(units)" | grep -vx 0)" ]'
unit=$(units)
watcher=$(inside systemctl show --property=MainPID --value "$unit")
check "outside the control group of the session" inside grep -q "/$unit\$" "/proc/$watcher/cgroup"
check "that is not chosen when memory runs out" [ "$(inside systemctl show --property=OOMScoreAdjust --value "$unit")" = -1000 ]
does "a server is killed" act "\"op\":\"service.kill\",\"pid\":$was"
is "four processes hold the session" "$(inside pgrep -c '^culprit-(agent|guard|standby)$')" 4
inside pkill -STOP '^culprit-(agent|guard|standby)$'
inside pkill -KILL '^culprit-(agent|guard|standby)$'
# nsenter stops itself when its child is stopped, and then would not see that it has ended.
served_out() { pkill -CONT -x -P "$served" nsenter; kill -CONT "$served"; ! kill -0 "$served"; }
until_true 60 served_out
check "all killed at once: systemd starts the unit again, which undoes" until_true 60 active plain
is "once" "$(services 4713)" 1
check "the unit ends" until_true 60 no_unit
check "its server stays" active plain

rm -f "$tmp/to" "$tmp/from"
session
check "a session has a unit" until_true 60 eval '! no_unit'
ask '"op":"bye"'
check "that ends with it" until_true 60 no_unit
done_testing
