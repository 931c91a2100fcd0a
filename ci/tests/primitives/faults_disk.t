#!/bin/bash
# Slow, stalling and failing disks: what each does to requests, that it ends with its undo, whoever dies, and that a lab whose disk
# hangs goes down. Has its own lab.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/nodes.sh
lab_up
check "every node has the agent" "$culprit" undo --inventory "$inventory"
read -r storage spare < <(sed -n '/name = "s1"/,/}/p' "$inventory" | tr -d '\n' |
	sed -E 's/.*storage = "([^"]*)".*spare = "([^"]*)".*/\1 \2/')
control=/run/culprit/disk
plain='{"latency_s":0.0,"rate":0.0,"factor":0.0,"stall_s":0.0,"every_s":0.0,"errors_pct":0.0}'
state() { node s1 -- sed -n 's/^{"state":\({[^}]*}\).*/\1/p' $control; }
is_plain() { [ "$(state)" = "$plain" ]; }
reads() { # COUNT BYTES: milliseconds for that many direct reads, one after the other, or "failed"
	node s1 -- sh -c 'a=$(date +%s%N)
		dd if="$0" of=/dev/null iflag=direct count="$1" bs="$2" 2>/dev/null && echo $((($(date +%s%N) - a) / 1000000)) || echo failed' "$spare" "$1" "$2"
}
between() { [ "$2" != failed ] && [ "$1" -le "$2" ] && [ "$2" -le "$3" ]; }

# The agent of s1: what it is asked, and its answer in $said. It answers before the next question: no line is lost.
agent_start() {
	mkfifo to from
	node s1 -- sh -c 'd=$(ls -d /var/lib/culprit/agent/*/ | head -1)
		exec "$d"/ld-linux* --library-path "$d" "$d"/culprit-agent serve --lease 5min' <to >from &
	exec 5>to 6<from
	read -t 60 -r said <&6
}
ask() {
	echo "$1" >&5
	read -t 60 -r said <&6
}
says() { # NAME PATTERN: of the answer
	if grep -q -- "$2" <<<"$said"; then ok "$1"; else not_ok "$1" "$said"; fi
}
degrade() { # NAME MEMBERS
	ask "{\"id\":1,\"op\":\"disk.degrade\",\"path\":\"$storage\",$2}"
	says "$1" '"backend":"lab"'
	handle=$(sed -n 's/.*"handle":"\([a-z0-9]*\)".*/\1/p' <<<"$said")
}
undo() { # NAME
	ask "{\"id\":2,\"op\":\"undo\",\"handle\":\"$handle\"}"
	says "$1" '"undone":true'
}
refuses() { # NAME CODE PATTERN MEMBERS
	ask "{\"id\":1,\"op\":\"disk.degrade\",\"path\":\"$storage\",$4}"
	says "$1" "$3.*\"code\":-$2}"
}
effect() { # NAME MEMBERS COUNT BYTES LEAST MOST: reads take LEAST to MOST ms, and afterwards as long as before
	local before during after
	before=$(reads "$3" "$4")
	degrade "$1: the disk takes it" "$2"
	during=$(reads "$3" "$4")
	undo "$1: it is undone"
	after=$(reads "$3" "$4")
	echo "# $1: $3 reads of $4 in $before ms, $during ms under the fault, $after ms after it"
	check "$1: reads take longer" between "$5" "$during" "$6"
	check "... and did not before" between 0 "$before" $(($5 / 2))
	check "... nor afterwards" between 0 "$after" $(($5 / 2))
	check "... and the disk is as it was" is_plain
}

agent_start
check "a node has the control file of its own disk alone" [ "$(node s1 -- sh -c 'grep -c culprit-disk /proc/self/mountinfo')" = 1 ]
check "... a client none" [ "$(node c1 -- sh -c 'grep -c culprit-disk /proc/self/mountinfo')" = 0 ]
check "nothing is wrong with the disk at first" is_plain
effect "latency" '"latency_s":0.05' 20 4k 1000 3000
effect "a factor" '"factor":10' 10 128k 1000 6000
effect "a rate" '"rate":262144' 4 128k 1900 6000
effect "a stall" '"stall_s":2,"every_s":600' 1 4k 1500 3000
effect "a stall once" '"stall_s":2' 1 4k 1500 3000

degrade "counters" '"latency_s":0.05'
refuses "a second act on one disk is refused" 16 'slowed already' '"factor":2'
reads 20 4k >/dev/null
ask "{\"id\":3,\"op\":\"disk.counters\",\"handle\":\"$handle\"}"
check "... have the requests and what was added to them" python3 - "$said" <<'P'
import json, sys
c = json.loads(sys.argv[1])["result"]
assert c["delayed"] >= 20 and c["added_s"] >= 1 and c["held"] == 0 and c["failed"] == 0 and c["seconds"] >= 1, c
P
undo "... and are undone"
refuses "nothing to do" 22 'say what the disk is to be' '"max_s":5'
refuses "a rate too low" 22 'rate must be above 65535' '"rate":1000'
refuses "stalls without an end" 22 'leaves less than 0.1 s' '"stall_s":5,"every_s":5'
ask '{"id":1,"op":"check","what":"disk.degrade","with":{"path":"/tmp","factor":2}}'
says "a storage that cannot be slowed" '"able":false,"reason":".*not a disk of .culprit lab'
check "... and nothing of these has changed the disk" is_plain

# A rate by a control group: a process of the node reads the disk within it, and is back in its own group afterwards.
limit_group() { # NAME
	ask "{\"id\":1,\"op\":\"disk.degrade\",\"path\":\"$storage\",\"rate\":262144,\"backend\":\"cgroup\",\"pids\":[$limited]}"
	handle=$(sed -n 's/.*"handle":"\([a-z0-9]*\)".*/\1/p' <<<"$said")
	says "$1" '"backend":"cgroup"'
}
groups() { find /sys/fs/cgroup -name 'culprit-*-b[0-9]*' -type d 2>/dev/null; }
refuses "a control group cannot add latency" 95 'limit its rate only' '"latency_s":1,"backend":"cgroup"'
refuses "... and needs processes" 95 "'pids' are missing" '"rate":100000,"backend":"cgroup"'
node s1 -- sh -c 'mkfifo /tmp/go; echo $$ >/tmp/limited; read -r x </tmp/go; a=$(date +%s%N)
	dd if="$0" of=/dev/null bs=128k count=8 iflag=direct 2>/dev/null; echo $((($(date +%s%N) - a) / 1000000)) >/tmp/took; read -r x </tmp/go' "$spare" &
until_true 60 node s1 -- test -s /tmp/limited
limited=$(node s1 -- cat /tmp/limited)
own=$(node s1 -- cat "/proc/$limited/cgroup")
limit_group "a rate by a control group"
if grep -q "no control group with blkio or io" <<<"$said"; then
	ok "a control group # SKIP this machine has no blkio or io"
else
	check "... which has the process" [ "$(node s1 -- cat "/proc/$limited/cgroup" | grep -c '/culprit-[0-9a-f]*-b[0-9]*$')" = 1 ]
	node s1 -- sh -c 'echo >/tmp/go'
	until_true 120 node s1 -- test -s /tmp/took
	took=$(node s1 -- cat /tmp/took)
	echo "# a control group of 256 KiB/s: 1 MiB in $took ms"
	check "... and slows it" between 2500 "$took" 20000
	ask "{\"id\":3,\"op\":\"disk.counters\",\"handle\":\"$handle\"}"
	says "... and counts its bytes alone" '"bytes":1048576[,}]'
	undo "... it is undone"
	is_own() { [ "$(node s1 -- cat "/proc/$limited/cgroup")" = "$own" ]; }
	check "... the process is in its own group" is_own
	check "... and the other group is gone" [ -z "$(groups)" ]
	limit_group "again, for the agent's death below"
fi

# Errors: reads fail; a file system that has met one is repaired.
server=$(node s1 -- pgrep -xo glusterfsd)
fail() { # NAME
	ask "{\"id\":1,\"op\":\"disk.fail\",\"path\":\"$storage\",\"errors_pct\":100,\"pid\":$server}"
	says "$1" '"backend":"lab"'
	handle=$(sed -n 's/.*"handle":"\([a-z0-9]*\)".*/\1/p' <<<"$said")
}
fail "errors: the disk takes it"
check "... reads fail" [ "$(reads 1 4k)" = failed ]
undo "... it is undone"
check "... and do not after the undo" [ "$(reads 1 4k)" != failed ]
check "... which leaves a server alone whose storage is whole" [ "$(node s1 -- pgrep -xo glusterfsd)" = "$server" ]
fail "errors, again"
node s1 -- sh -c 'echo 1 >/sys/fs/ext4/$(basename "$(findmnt -no SOURCE "$0")")/trigger_fs_error' "$storage"
check "a storage that has met an error is read-only" node s1 -- sh -c '! touch "$0/probe" 2>/dev/null' "$storage"
undo "... and is repaired by the undo"
check "... so that it can be written" node s1 -- sh -c 'touch "$0/probe" && rm "$0/probe"' "$storage"
check "... and the server runs" node s1 -- pgrep -x glusterfsd

# A stall that would last for an hour: its guard undoes it, without the disk.
degrade "a long stall" '"stall_s":3600'
( reads 1 4k >"$tmp/hung" ) &
reader=$!
check "... holds a read" until_true 60 node s1 -- sh -c 'grep -q "\"held\":[1-9]" '$control
node s1 -- pkill -KILL -x culprit-agent
check "without the agent the stall ends" until_true 60 is_plain
check "... and no process is in a group of ours" until_true 60 eval '[ -z "$(groups)" ] && is_own'
wait $reader
check "... and the read with it" between 0 "$(cat "$tmp/hung")" 60000
check "... and nothing is left" until_true 60 clean
exec 5>&- 6<&-
node s1 -- sh -c 'echo >/tmp/go'

# As faults of a run.
cat >faults.lua <<'L'
return { name = "faults", workloads = { "ddr" }, detectors = { "always-healthy" }, attempts = 1,
	faults = { { "disk-slow", latency = "20ms" }, { "disk-slow", rate = "1MB/s" }, "disk-slow", "disk-stall", { "disk-stall", every = "0s" }, "disk-errors" },
	phases = { before = "1s", fault = "6s", after = "1s" } }
L
"$culprit" run --quiet --inventory "$inventory" --seed 1 -o run faults.lua >said 2>&1
sed 's/^/# /' said
outcomes() { sqlite3 run/run.db "SELECT fault || ' ' || outcome || ' ' || coalesce(reason, '') FROM attempt JOIN cell ON attempt.cell = cell.number ORDER BY 1"; }
all=$(outcomes)
if [ "$(grep -c " confirmed " <<<"$all")" = 6 ]; then ok "all are verified to act, twice, and undone"; else not_ok "all are verified to act, twice, and undone" "$all"; fi
sqlite3 run/run.db "SELECT detail->'verified_still_on' FROM attempt" | sed 's/^/# /'
cat >bad.lua <<'L'
return { name = "bad", workloads = { "ddr" }, detectors = { "always-healthy" }, attempts = 1,
	faults = { { "disk-slow", rate = "1KiB/s" }, { "disk-slow", factor = 0.5 }, { "disk-stall", stall = "5s", every = "5s" } },
	phases = { before = "0s", fault = "1s", after = "0s" } }
L
"$culprit" run --quiet --inventory "$inventory" --seed 1 -o bad bad.lua >said 2>&1
for why in "below 64KiB/s is too low" "would make the disk faster" "must be longer than .stall."; do
	check "rejected before an attempt: $why" grep -qE "(skipped: fault|ended: no fault).*$why" bad/run.log
done
check "... without one" [ "$(sqlite3 bad/run.db 'SELECT count(*) FROM attempt')" = 0 ]

# The orchestrator dies during a stall without an end of its own.
cat >long.lua <<'L'
return { name = "long", workloads = { "ddr" }, detectors = { "always-healthy" }, attempts = 1, faults = { { "disk-stall", stall = "10min", every = "0s" } },
	phases = { before = "0s", fault = "60s", after = "0s" } }
L
"$culprit" run --quiet --lease 6s --inventory "$inventory" --seed 1 -o long long.lua >said 2>&1 &
pid=$!
check "a run has begun a stall" until_true 120 grep -q 'step onset$' long/run.log
kill -KILL $pid
wait $pid 2>/dev/null
all_plain() { ! on_all "[ ! -e $control ] || sed 's/,\"counters.*//' $control" | grep -v '^$' | grep -vF "\"state\":$plain"; }
check "without the orchestrator it ends" until_true 120 all_plain
check "... and nothing is left" until_true 120 clean
check "the file system works again" node c1 -- timeout 60 sh -c 'echo x >/mnt/fs/x && cat /mnt/fs/x && rm /mnt/fs/x'

# A lab whose disk hangs goes down.
node s1 -- sh -c "echo '{\"stall_s\":3600}' >$control"
node s1 -- sh -c 'setsid dd if=/dev/zero of="$0/hung" bs=128k count=64 oflag=direct >/dev/null 2>&1 &' "$storage"
check "a disk hangs" until_true 60 node s1 -- sh -c 'grep -q "\"held\":[1-9]" '$control
began=$(date +%s%N)
check "its lab goes down" timeout 120 "$culprit" lab down --dir "$lab"
took=$((($(date +%s%N) - began) / 1000000))
echo "# in $took ms"
check "... at once" [ $took -lt 20000 ]
check "... and leaves no disk" [ -z "$(grep -lF "$lab/" /sys/block/loop*/loop/backing_file 2>/dev/null)" ]
done_testing
