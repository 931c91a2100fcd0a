#!/bin/bash
# An interrupted run says how it goes and how to resume it; a second orchestrator and a changed scenario are refused. A trace that
# is damaged before it is read makes its attempt invalid.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/experiment/resume.sh
lab_up

scenario night ''
"${run[@]}" -o asked night.lua >/dev/null 2>said &
pid=$!
check "it begins its first cell" begins asked said
check "'culprit status' sees it" [ "$("$culprit" status asked --json | grep -Ec '"state": "running"|"number": 1,')" = 2 ]
check "and what each node does" until_true 60 eval "'$culprit' status asked | grep -q '^  running ddr, traced by [a-z]*: c1$'"
"$culprit" status asked --json >status.json
# Of one moment of many; between cells they do other things.
servers() { [ "$("$culprit" status asked --json | grep -Ec '"name": "s[123]",|"doing": "(serving|under|injecting|looking|undoing)')" = 6 ]; }
check "servers, too" until_true 60 servers
"$culprit" resume asked >refused 2>&1
check "a second orchestrator is refused" test $? -eq 2
check "and told why" grep -q 'is in progress in process' refused
kill -INT $pid
wait $pid
check "interrupted, it ends with 3" test $? -eq 3
check "and says how to go on" grep -q "'culprit resume asked' goes on" said
check "'culprit status' says so too" grep -q "'culprit resume asked' goes on" <("$culprit" status asked)
fits status status.json
sed 's/fault = "2s"/fault = "3s"/' night.lua >other.lua
"$culprit" resume asked --scenario other.lua >refused 2>&1
check "a changed scenario is refused" test $? -eq 2
check "and what has changed is named" grep -q 'phases.fault is 3.0, was 2.0' refused
cp "$inventory" before.lua # a lab that is up again has other loop devices
sed -i 's|spare = "/dev/loop[0-9p]*"|spare = "/dev/loop777"|' "$inventory"
"$culprit" resume asked --scenario other.lua >refused 2>&1
check "another number of a loop device is no change" [ "$(grep -c 'phases.fault is 3.0' refused)$(grep -c 'host s1' refused)" = 10 ]
cp before.lua "$inventory"

# A trace damaged between its transfer and its reading.
scenario damaged 'window = "2s"'
"${run[@]}" -o damaged --only cell=2 damaged.lua >table 2>log &
pid=$!
check "a trace comes" until_true 300 test -e damaged/cells/0002.1/s1.fs.trace
truncate -s 100 damaged/cells/0002.1/s1.fs.trace
wait $pid
check "a trace damaged before it is read makes its attempt invalid, and the run goes on" test $? -eq 0
check "with the file in its reason" [ "$(sql damaged "SELECT outcome FROM attempt WHERE cell = 2 ORDER BY number LIMIT 1")" = invalid ]
echo "# $(sql damaged "SELECT reason FROM attempt WHERE cell = 2 AND number = 1")"

check "the lab goes down" "$culprit" lab down --dir "$lab"
done_testing
