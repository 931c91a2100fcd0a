#!/bin/bash
# A capture on all nodes of a lab ('culprit trace --inventory'): told to write, to filter, to end; nothing stays on the nodes.
. "$(dirname "$0")/../lab/lab_lib.sh"
tmp=$(mktemp -d)
trap 'kill $capture $load $follower $flood 2>/dev/null; "$culprit" lab down --dir "$dir" >/dev/null 2>&1; rm -rf "$tmp"' EXIT
capture="" load="" follower="" flood=""
up >/dev/null
inventory=$dir/inventory.lua
out=$tmp/capture
# Tracers that run on the nodes, each of which has its own processes.
tracers() { for node in s1 s2 s3 c1 c2; do inside $node pgrep -f '[t]race --tracer'; done | wc -l; }
"$culprit" trace --tracer ebpf -o "$tmp/probe" -- true >/dev/null 2>&1 || skip_all "this kernel does not allow eBPF"

begin() { # OPTION...: starts a capture, and waits for its first order
	"$culprit" trace --inventory "$inventory" -o "$out" "$@" >"$tmp/said" 2>&1 &
	capture=$!
	until_true 60 test -S "$out/control" || cat "$tmp/said"
}
control() { "$culprit" trace --control "$out" "$@"; }
# How many reads, writes and syncs of files, or calls on sockets, are in a log: CELL NODE.
disk_calls() { "$culprit" log "$out/cells/$1.1/$2.fs.trace" | grep -c 'pwrite64\|pwritev\|pread64\|preadv\|fsync'; }
socket_calls() { "$culprit" log "$out/cells/$1.1/$2.fs.trace" | grep -c 'writev(\|recvmsg(\|sendmsg(\|readv('; }
whole() { "$culprit" log "$out/cells/$1.1/$2" 2>&1 | grep -q '^# end at .* 0 lost'; }

inside c1 bash -c 'while :; do dd if=/dev/zero of=/mnt/fs/load bs=64k count=8 conv=fsync 2>/dev/null || sleep 1; sleep 0.05; done' &
load=$!
until_true 30 inside c1 test -s /mnt/fs/load
begin --mode flow --heads --ring 2s --application bash
check "a capture begins" test -S "$out/control"
is "with a tracer on each node, and one of the application" "$(tracers)" 6
is "its socket is its owner's" "$(stat -c %a "$out/control")" 600
exits "it tells how it goes" 0 '6 tracers' control status
sleep 3
exits "it writes when told" 0 'done: write seems slow: cells/0001.1' control write seems slow
for log in s1.fs.trace s2.fs.trace s3.fs.trace c1.fs.trace c2.fs.trace c1.app.trace; do
	check "$log is whole" whole 0001 "$log"
done
disk=0
for node in s1 s2 s3; do disk=$((disk + $(disk_calls 0001 $node))); done
check "servers' disk calls are in it" test "$disk" -gt 0
check "the application's writes are" bash -c "'$culprit' log '$out/cells/0001.1/c1.app.trace' | grep -q 'write(fd=.*/mnt/fs/load'"
exits "a filter holds on all nodes" 0 'done: filter calls=network' control filter calls=network
sleep 5
exits "..." 0 'done: write: cells/0002.1' control write
disk=0 sockets=0
for node in s1 s2 s3; do
	disk=$((disk + $(disk_calls 0002 $node)))
	sockets=$((sockets + $(socket_calls 0002 $node)))
done
is "what it leaves out is not recorded" "$disk" 0
check "what it does not is" test "$sockets" -gt 0
check "and the log says so" bash -c "'$culprit' log '$out/cells/0002.1/s1.fs.trace' | grep -q 'recorded from here: on filter calls=network'"
exits "a wrong filter is refused" 2 "unknown kind 'netwrk'" control filter calls=netwrk
exits "a wrong order, too" 2 'orders are' control fly
exits "a folder without a capture is no capture" 2 'no capture runs' "$culprit" trace --control "$tmp" status
exits "a folder that exists is not used" 2 'capture' "$culprit" trace --inventory "$inventory" -o "$out"
exits "--live and --ring" 2 'give one of them' "$culprit" trace --inventory "$inventory" --live --ring 5s -o "$tmp/no"
exits "sums are refused" 2 'events and flow' "$culprit" trace --inventory "$inventory" --mode sums -o "$tmp/no"
exits "so is one at the start" 2 "unknown kind 'netwrk'" "$culprit" trace --inventory "$inventory" --calls netwrk -o "$tmp/no"
check "and leaves no folder" test ! -e "$tmp/no"
kill -INT "$capture"
wait "$capture"
is "it ends in order" $? 0
check "with what it had last" whole 0003 s1.fs.trace
exits "and takes no orders" 2 'no capture runs' control status
exits "the folder is a run" 0 '3 of 3 cells have a confirmed attempt' "$culprit" status "$out"
is "no tracer stays" "$(tracers)" 0

# Live: the logs come while they are written, and are read in the meantime.
out=$tmp/live
begin --live --application bash
asked() { "$culprit" query --json "$out" "$1" | tr -dc '0-9\n'; }
# shellcheck disable=SC2317 # called by until_true
more() { [ "$(asked "select count(*) from events where node = '$1'")" -gt "$2" ]; }
for node in s1 c1; do
	check "live: calls of $node are seen" until_true 60 more $node 0
	check "and more come" until_true 60 more $node "$(asked "select count(*) from events where node = '$node'")"
done
exits "a log that grows is no damage" 0 '"n": *[1-9]' "$culprit" query --json "$out" "select count(*) n from events where owner = 'app'"
searched() { "$culprit" findings "$out" >"$tmp/found" 2>&1 || [ $? = 1 ]; }
check "findings are searched in it, and nothing is wrong with it" searched
"$culprit" ship --follow --to - "$out" >"$tmp/rows" 2>"$tmp/rows.said" &
follower=$!
check "its rows are shipped as they come" until_true 60 grep -q '"table":"events"' "$tmp/rows"
exits "a second capture of the same nodes" 0 'beside.second: 1 written' "$culprit" trace --inventory "$inventory" --for 1s -o "$tmp/beside.second"
exits "it tells how it goes" 0 'bytes received' control status
exits "it ends when told" 0 'done: stop' control stop
wait "$capture"
is "in order" $? 0
for log in s1.fs.trace s2.fs.trace s3.fs.trace c1.fs.trace c2.fs.trace c1.app.trace; do
	check "live: $log is whole" whole 0001 "$log"
done
wait "$follower"
is "the shipper ends with it" $? 0
is "it has sent every call" "$(grep -c '^{"table":"events"' "$tmp/rows")" "$(asked "select count(*) from events")"
exits "the folder is a run" 0 '1 of 1 cells have a confirmed attempt' "$culprit" status "$out"
is "no tracer stays" "$(tracers)" 0

# More than may come and may wait: the application continues, and each call that is missing is counted.
inside c1 bash -c 'until [ -e /tmp/go ]; do sleep 0.05; done; dd if=/dev/zero of=/dev/null bs=1 count=200000 2>/dev/null; touch /tmp/gone; exec sleep 1000' &
flood=$!
out=$tmp/over
begin --live --application bash --bandwidth 16KiB --bound 256KiB
inside c1 touch /tmp/go
check "live: an application does not wait for its log" until_true 60 inside c1 test -e /tmp/gone
exits "the capture ends when told" 0 'done: stop' control stop
wait "$capture"
is "in order" $? 0
kill "$flood"
recorded=$(asked "select count(*) from events where node = 'c1' and process = 'dd' and call in ('read', 'write')")
lost=$(asked "select sum(count) from losses where log like '%c1.app.trace'")
check "of 400,000 calls $recorded are recorded and at least the others counted as lost ($lost)" test "$recorded" -lt 400000 -a $((recorded + lost)) -ge 400000
check "the end of the log says the same" bash -c "'$culprit' log '$out/cells/0001.1/c1.app.trace' | grep -q '^# end at .* $lost lost'"

# A condition in Lua; an end after some time.
cat >"$tmp/when.lua" <<-'END'
	local n = 0
	return { pause = "1000s", when = function(now)
	  assert(now.nodes.s1.role == "server" and now.nodes.c2.load.cpus > 0)
	  n = n + 1
	  if n == 2 then return "the second second" end
	end }
END
out=$tmp/second
begin --ring 2s --trigger "$tmp/when.lua" --for 6s
wait "$capture"
is "a capture ends after its time" $? 0
check "the condition had it write" grep -q 'trigger: the second second: cells/0001.1' "$tmp/said"
check "and it wrote at the end" whole 0002 c1.fs.trace
out=$tmp/third
begin --live
kill -KILL "$capture"
wait "$capture" 2>/dev/null
# shellcheck disable=SC2317 # called by until_true
gone() { [ "$(tracers)" = 0 ]; }
check "a capture that is killed leaves no tracer" until_true 60 gone
# shellcheck disable=SC2317
no_log() { for node in s1 s2 s3 c1 c2; do inside $node find /var/lib/culprit -name '*.trace'; done | grep -q . && return 1 || return 0; }
check "and no log on the nodes" until_true 60 no_log
exits "what had come can be read, and is cut short" 2 'is cut short' "$culprit" query "$out" "select count(*) from events"
# A node that is lost.
out=$tmp/fourth
begin --mode flow --for 90s
sleep 2
inside s1 pkill -KILL -f 'culprit-agent [s]erve'
wait "$capture"
is "a lost node ends a capture" $? 3
check "the others' logs are there" whole 0001 s2.fs.trace
check "its own is not" test ! -e "$out/cells/0001.1/s1.fs.trace"
exits "the cell does not count" 0 '1 attempt.* invalid' "$culprit" status "$out"
# Its guard may have been killed as well; then the next contact undoes what is left.
exits "what is left there is undone at the next contact" 0 's1' "$culprit" undo --inventory "$inventory"
check "and no tracer stays" until_true 60 gone
kill "$load" 2>/dev/null
done_testing
