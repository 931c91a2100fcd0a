#!/bin/bash
# ci/bench/live.sh [CALLS]: 'culprit trace --live' on a lab of two servers and a client, under load. Prints how long it takes from
# a call to the moment when a query shows it (percentiles over CALLS calls, 200 by default); what is lost where the logs may
# take 64 KiB a second only; and what is left on the nodes of a capture that is killed. Root.
set -u
cd "$(dirname "$0")/../.." || exit 1
culprit=$PWD/${OUT:-out}/culprit
calls=${1:-200}
lab=${LAB:-/run/culprit/bench-live}
subnet=${SUBNET:-10.97.0.0/24}
tmp=$(mktemp -d)
load=() capture=""
trap 'kill "${load[@]}" $capture 2>/dev/null; "$culprit" lab down --dir "$lab" >/dev/null 2>&1; rm -rf "$tmp"' EXIT
"$culprit" lab up --dir "$lab" --subnet "$subnet" --servers 2 --clients 1 >/dev/null || exit 1
inside() { "$culprit" lab exec --dir "$lab" "$@"; }
begin() { # FOLDER OPTION...
	local folder=$1
	shift
	"$culprit" trace --inventory "$lab/inventory.lua" --live --application bash -o "$folder" "$@" >"$folder.said" 2>&1 &
	capture=$!
	for _ in $(seq 600); do
		[ -S "$folder/control" ] && return
		sleep 0.1
	done
	cat "$folder.said"
	exit 1
}
finish() {
	kill -INT "$capture"
	wait "$capture"
	capture=""
}
# A shell that writes files, so that the servers have work, and looks for a file of a name that holds the time.
# shellcheck disable=SC2016 # the node's shell expands it
inside c1 -- bash -c 'while :; do dd if=/dev/zero of=/mnt/fs/load bs=64k count=16 conv=fsync 2>/dev/null; done' &
load=($!)
# shellcheck disable=SC2016
inside c1 -- bash -c 'while :; do [ -e "/tmp/mark-$EPOCHREALTIME" ]; read -rt 0.1 <><(:); done' &
load+=($!)

begin "$tmp/live"
python3 - "$culprit" "$tmp/live" "$calls" <<'PY'
import json, subprocess, sys, time
culprit, folder, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
seen, took, since, queries, spent = set(), [], 0.0, 0, 0.0
while len(took) < wanted:
    begin = time.time()
    out = subprocess.run([culprit, "query", "--json", "--limit", "100000", folder,
        f"select t, path from events where path like '/tmp/mark-%' and t > {since}"], capture_output=True, check=True).stdout
    now = time.time()
    queries, spent = queries + 1, spent + now - begin
    rows = [json.loads(line) for line in out.splitlines()]
    first = not seen
    for row in rows:
        if row["path"] not in seen and not first:
            took.append(now - float(row["path"].removeprefix("/tmp/mark-")))
        seen.add(row["path"])
    since = max([since] + [row["t"] - 2 for row in rows])
took.sort()
at = lambda p: took[min(len(took) - 1, int(len(took) * p / 100))]
print(f"call to query, s: n {len(took)}, median {at(50):.3f}, 99th percentile {at(99):.3f}, most {took[-1]:.3f}; {queries} queries of {spent / queries:.3f} s each")
PY
"$culprit" trace --control "$tmp/live" status
finish
"$culprit" query "$tmp/live" "select log, count(*) calls from events group by 1"
"$culprit" query "$tmp/live" "select coalesce(sum(count), 0) lost from losses"

# Overload: a million calls of a program that the shell starts, over 64 KiB a second.
kill "${load[@]}"
wait "${load[@]}" 2>/dev/null
# shellcheck disable=SC2016
inside c1 -- bash -c 'while [ ! -e /tmp/go ]; do read -rt 0.1 <><(:); done; dd if=/dev/zero of=/dev/null bs=1 count=500000 2>/dev/null; rm /tmp/go; touch /tmp/gone; sleep 100' &
load=($!)
sleep 1
begin "$tmp/over" --bandwidth 64KiB --bound 512KiB
inside c1 -- touch /tmp/go
for _ in $(seq 600); do
	inside c1 -- test -e /tmp/gone && break
	sleep 0.1
done
"$culprit" trace --control "$tmp/over" status
finish
cat "$tmp/over.said"
"$culprit" query "$tmp/over" "select log, (select count(*) from events e where e.log = l.log and process = 'dd' and call in ('read', 'write')) of_dd, \
	(select count(*) from events e where e.log = l.log) calls, sum(count) lost, count(*) gaps from losses l group by 1"
echo "dd made 1000000 reads and writes of a byte each (and a few for its start)"

# Killed: what is left.
begin "$tmp/killed"
kill -KILL "$capture"
wait "$capture" 2>/dev/null
capture=""
left() { for node in s1 s2 c1; do inside "$node" -- pgrep -f '[t]race --tracer'; inside "$node" -- bash -c 'find /var/lib/culprit -name "*.trace"'; done; }
begin=$EPOCHREALTIME
for _ in $(seq 300); do
	[ -z "$(left)" ] && break
	sleep 0.2
done
echo "killed: tracers and logs left on the nodes after $(bc <<<"$EPOCHREALTIME - $begin") s: $(left | wc -l)"
"$culprit" query "$tmp/killed" "select count(*) from events" 2>&1 | tail -2
