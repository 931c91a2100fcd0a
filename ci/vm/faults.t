#!/bin/bash
# Faults on a GlusterFS as administrators have it: bricks of glusterd under systemd, each on its own disk. Each fault is confirmed
# with the default tracer, and leaves nothing.
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2086
up $nodes
note "Linux $(on s1 uname -r)"
check "glusterd serves a volume" volume
before=$(left)
is "nothing is there before" "$before" "$(printf '%s: end\n' c1 o1 s1 s2 s3)"

culprit doctor --inventory "$DIR/inventory.lua" >"$tmp/doctor.said" 2>&1
code=$?
sed 's/^/# /' "$tmp/doctor.said"
is "doctor passes" $code 0

scenario stock '"none", "disk-hog", "disk-busy", "send-pktloss", "kill", "hang", "err-remount"' 8
begin stock
ended 0 "a run with seven faults ends with 0"
for fault in none disk-hog disk-busy send-pktloss kill hang err-remount; do confirmed $fault; done
check "no tracer fell back" bash -c '! grep -i "instead of ebpf" "$1"' sh "$tmp/stock.said"
check "disk-busy sends SCSI commands" grep -q sgm_dd <(sql stock "SELECT detail FROM attempt")
is "nothing is left" "$(left)" "$before"
check "the volume can be written" on c1 'echo x >/mnt/after && rm /mnt/after'
done_testing
