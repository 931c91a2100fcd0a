#!/bin/bash
# A cluster that fails before the first cell, and a host that is busy with other work: the run waits or ends, and can be resumed.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/experiment/resume.sh
lab_up

scenario night ''
# A cluster that fails before the first cell is no error of the scenario: the run can be resumed.
cat >filed.lua <<'L'
return { summary = "reads what is on the file system", command = function() return { argv = { "sleep", "0.3" }, loop = true } end,
         prepare = function(_, client)
           return { { "ls", client.mount .. "/wanted" }, { "sh", "-c", 'mkdir "$1" 2>/dev/null || exit 0; sleep 3600', "sh", "/tmp/hung" } }
         end }
L
sed 's|"ddw", "ddr"|"./filed.lua"|; s|"receive-pktloss"||; s|"peer-threshold", ||; s|training = .*}, repeats|repeats|' night.lua >unwell.lua
sed -i 's|name *= |prepare_limit = "10s", name = |' unwell.lua
"${run[@]}" -o unwell unwell.lua >table 2>log
check "a failed preparation ends the run with 3" test $? -eq 3
check "after three tries" [ "$(grep -c 'trying again' unwell/run.log)" = 2 ]
check "and it says what failed, and how to go on" grep -q "preparing '.*filed.*' ended with 2: .*'culprit resume unwell' goes on" <(tr '\n' ' ' <log)
node c1 -- touch /mnt/fs/wanted
"$culprit" resume unwell --quiet >table 2>log
check "once it can, it is resumed" test $? -eq 0
check "a command that hangs is killed, and tried again" [ "$(grep -c "'prepare_limit', 10 s.*trying again" unwell/run.log)" = 1 ]
sed 's/^/# /' log

# A host that is busy with other work.
scenario busy 'process = "10%", wait = "120s"'
node s2 -- timeout 600 nice -n -20 sh -c 'while :; do :; done' & # it has a processor, however many others want one
hog=$!
"${run[@]}" -o busy --only cell=2 busy.lua >table 2>log &
pid=$!
check "a busy host is quarantined, with the reason" until_true 300 grep -qs 'quarantined: s2: process [0-9]* (sh)' busy/run.log
node s2 -- pkill -f 'while :'
wait $hog
wait $pid
check "once it is quiet, the run goes on" test $? -eq 0
sed 's/^/# /' log
check "and says so" grep -q 'quarantine is over' busy/run.log
check "every cell is complete, once" [ "$(sql busy "SELECT count(*) FROM attempt WHERE outcome = 'confirmed'")" = 2 ]
check "the attempt has the report of the gates" [ "$(sql busy "SELECT count(*) FROM attempt WHERE
	detail->>'$.gates.clocks.s1.error_s' > 0 AND detail->>'$.gates.before.s2.seconds' > 0.4 AND outcome = 'confirmed'")" = 2 ]
check "the lab goes down" "$culprit" lab down --dir "$lab"
done_testing
