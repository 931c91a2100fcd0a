#!/bin/bash
# The disk of the orchestrator is full before a run and in its middle: the run ends, and is resumed once there is room.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/experiment/resume.sh
lab_up

mkdir small
mount -t tmpfs -o size=8M none small
scenario full 'disk = "8MiB", wait = "3s"'
"${run[@]}" -o small/full --only cell=2 full.lua >table 2>log
check "a full disk ends the run with 3" test $? -eq 3
check "and the reason is given" logged "that 'small/full' is kept on has .* left" small/full
check "what is in the store is whole" [ "$(sql small/full "PRAGMA integrity_check")" = ok ]
mount -o remount,size=100M small
"$culprit" resume small/full --quiet >table 2>log
check "with room again it is resumed" test $? -eq 0
check "every cell is complete, once" once small/full 2
scenario tight 'disk = "0B", wait = "3s"'
"${run[@]}" -o small/tight --only cell=2 tight.lua >table 2>log &
pid=$!
check "its first attempt begins" begins small/tight log
head -c 200M /dev/zero >small/filler 2>/dev/null
wait $pid
rc=$?
check "a disk that gets full in the middle ends the run with 3" bash -c "[ $rc = 3 ] || { echo 'exit code $rc'; cat log small/tight/run.log; exit 1; }"
check "and says how to go on" logged "'culprit resume small/tight' goes on" small/tight
rm small/filler
"$culprit" resume small/tight --quiet >table 2>>log
check "with room again it is resumed" test $? -eq 0
check "every cell is complete, once" once small/tight 2

check "the lab goes down" "$culprit" lab down --dir "$lab"
done_testing
