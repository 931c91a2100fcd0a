#!/bin/bash
# Requests followed in a cell with a disk hog: culprit slow names the server and the layer that took the time.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/schema.sh
[ "$(id -u)" -eq 0 ] || skip_all "the lab needs root"
culprit=$PWD/${OUT:-out}/culprit
scenarios=$PWD/scenarios
tmp=$(mktemp -d)
lab=$tmp/lab
trap '"$culprit" lab down --dir "$lab" >/dev/null; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
sql() { sqlite3 "$1/run.db" "$2"; }

# The disks are slow: what the hog adds to a request is then far more than what a busy processor does.
check "the lab comes up" "$culprit" lab up --dir "$lab" --subnet 10.79.0.0/24 --disk-rate 4MB/s
# The cell of flow.lua with a disk hog under reads. Longer phases: how much of a difference may be chance falls with their seconds, and a
# pass over a file takes about as long, so that every server is asked before the fault as after.
sed -e 's/{ before = "10s", fault = "14s", after = "6s" }/{ before = "16s", fault = "26s", after = "2s" }/' \
	-e 's/{ "ddw"[^}]*}, //' -e 's/"none", //' "$scenarios/flow.lua" >flow.lua
"$culprit" run --inventory "$lab/inventory.lua" --seed 1 -o flow flow.lua --json >flow.json 2>flow.said
code=$?
sed 's/^/# /' flow.said
fits run flow.json
check "flow.lua ends with 0" [ $code -eq 0 ]
check "its phases are the test's" grep -q 'fault = "26s"' flow.lua
check "flow.lua has one cell, and it is confirmed" [ "$(sql flow "SELECT count(*) || ' ' || max(outcome = 'confirmed') FROM cell LEFT JOIN attempt ON cell = cell.number")" = "1 1" ]
victim=$(sql flow "SELECT victims->>0 FROM cell WHERE fault = 'disk-hog'")
"$culprit" slow flow >slow.said 2>&1
code=$?
sed 's/^/# /' slow.said
check "culprit slow ends with 0" [ $code -eq 0 ]
tr -s ' \n' ' ' <slow.said >slow.line
# On a busy machine seconds differ so much that the rule may find no server to stand out. It then says who was slowest, and where: that
# must be the victim, at least half as slow again, in its disk.
disk="(waiting for its disk takes|its disk needs)"
stands="$victim is slow: ($disk|it needs .* mostly (in|waiting for) its disk)"
least="(1\.[5-9]|[2-9]|[1-9][0-9])[0-9.]*x the time for the same work"
slowest="$victim is the slowest, and ($disk $least|it needs $least [^,]*, mostly (in|waiting for) its disk)"
check "culprit slow names the hogged server ('$victim') and its disk" grep -Eq "$stands|$slowest" slow.line
check "culprit slow names no other server" lacks "s[^${victim#s}] is slow" slow.line
"$culprit" slow flow --json >slow.json
fits slow slow.json
check "culprit slow --json finds no other server, with all requests followed" python3 -c "
import json
cells = json.load(open('slow.json'))['cells']
assert len(cells) == 1 and (cells[0]['found'] or ['$victim']) == ['$victim'], cells[0]['sentence']
c = cells[0]['coverage']
assert c['requests'] > 100 and c['requests_whole'] >= 0.999 * c['requests'], c
assert c['data_requests_in_calls'] >= 0.99 * c['data_requests'], c
assert not cells[0]['troubles'], cells[0]['troubles']"
check "the lab goes down" "$culprit" lab down --dir "$lab"
done_testing
