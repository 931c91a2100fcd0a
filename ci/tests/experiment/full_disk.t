#!/bin/bash
# The disk that a run, or what another command writes, is kept on has no room: one complaint, exit code 3, nothing is left, and what
# was there stays. No node is there to be reached. In CI 48 KB more room at each try; CULPRIT_SOAK=N: 4 KB.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
[ "$(id -u)" -eq 0 ] || skip_all "a small disk is mounted by root"
root=$PWD
culprit=$root/${OUT:-out}/culprit
tmp=$(mktemp -d)
small=$tmp/small
run=$small/run
trap '! mountpoint -q "$small" || umount "$small"; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
echo 'return { name = "full", workloads = { "ddw" }, faults = { "none", "receive-pktloss" }, detectors = { "always-same" } }' >full.lua

# ---- the beginning: without room nothing is begun, and nothing is left. No node is there to be reached ----
mkdir "$small"
mount -t tmpfs -o size=24M none "$small"
echo 'return { file_system = { type = "glusterfs" }, nodes = {
	{ name = "s1", role = "server", address = "127.0.0.1", ssh_port = 1 }, { name = "s2", role = "server", address = "127.0.0.1", ssh_port = 1 },
	{ name = "s3", role = "server", address = "127.0.0.1", ssh_port = 1 }, { name = "c1", role = "client", address = "127.0.0.1", ssh_port = 1 } } }' >nowhere.lua
step_kb=$([ -n "$CULPRIT_SOAK" ] && echo 4 || echo 48)
refused=0 wrong=
for ((room = 0; room < 1000; room += step_kb)); do
	head -c $((24 * 1024 - room))K /dev/zero >"$small/filler"
	"$culprit" run --quiet --inventory nowhere.lua --seed 1 -o "$run" full.lua >table 2>said
	rc=$?
	if [ -e "$run" ]; then
		break
	fi
	[ $rc = 3 ] && [ "$(wc -l <said)" = 1 ] && grep -q "^culprit run: cannot .*No space left on device$" said || wrong="$wrong $room KB: $rc $(cat said)"
	refused=$((refused + 1))
done
refused() { [ $refused -gt 0 ] && [ -z "$wrong" ] || { echo "$refused refused; $wrong"; return 1; }; }
check "with no room a run is not begun: one complaint, exit code 3, no folder" refused
check "with some it is: the nodes are the trouble then" grep -q "'culprit resume .*/run' goes on" said
rm -rf "$run" "$small/filler"

# ---- other commands on a full disk: one complaint, exit code 3, nothing is left, what was there stays ----
corpora=$root/results/corpora
mkdir unpacked "$small/kept"
gunzip -c "$corpora/ci/run.db.gz" | tee "$small/kept/run.db" >unpacked/run.db
zcat "$root/ci/tests/data/lab-none.s1.fs.log.gz" >log
head -c 100M /dev/zero >"$small/filler" 2>/dev/null
there() { (cd "$small" && find . ! -name lock | sort; sqlite3 kept/run.db "SELECT count(*) FROM verdict; PRAGMA integrity_check"); }
was=$(there)
while read -r words; do
	# shellcheck disable=SC2086
	"$culprit" $words >out 2>said </dev/null
	rc=$?
	check "a full disk: culprit ${words//$small/SMALL}" eval "[ $rc = 3 ] && [ \$(wc -l <said) = 1 ] && grep -q '^culprit [a-z]*: cannot .*: No space left on device$' said ||
		{ echo 'exit code $rc'; cat said; false; }"
	check "... leaves all as it was" diff <(echo "$was") <(there)
done <<L
ship unpacked --pack $small/new
report unpacked -o $small/new
table unpacked --write-baseline $small/new
diagnose --csv $root/results/fleet/example.csv.gz --report $small/new
ship log --to $small/new
rescore $small/kept --detector always-same --save
L
rm -rf "$small/kept" "$small/filler"
done_testing
