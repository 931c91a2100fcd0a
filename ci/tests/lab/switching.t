#!/bin/bash
# Servers that become another user, on nodes whose root lacks CAP_SYS_RESOURCE, and clients that close connections all the
# time: faults act, the servers are as before, tracers see them, and crash-hang blames nobody for what a client closed.
. "$(dirname "$0")/../lab/lab_lib.sh"

for program in sshfs mergerfs sftp-server postmark setpriv; do
	PATH=$PATH:/usr/lib/openssh command -v $program >/dev/null || skip_all "there is no $program: ci/install.sh --all installs it"
done
# Nodes do not see /tmp.
bin=/var/cache/culprit-switching-$$
trap '"$culprit" lab down --dir "$dir" >/dev/null 2>&1; rm -rf "$bin"' EXIT
mkdir "$bin" && cp "$(dirname "$culprit")/helpers/switcher" "$bin"
work=$(mktemp -d)
sed "s|/var/cache/culprit-switching|$bin|" "$(dirname "$0")/switching.lua" >"$work/switching.lua"
cd "$work" || exit
without() { setpriv --bounding-set -sys_resource --inh-caps -sys_resource "$@"; }
sql() { sqlite3 "${2:-run}/run.db" "$1"; }
# A server: its user, whether root started it, and what it listens on.
server() {
	inside "$1" sh -c 'pid=$(pgrep -ox switcher); ps -o user= $pid; od -An -tu8 -w16 /proc/$pid/auxv | awk "\$1 == 11 { print \$2 }"
		grep -c ":0142 00000000:0000 0A" /proc/net/tcp' | xargs
}

exits "a lab of it" 0 '3 servers' without "$culprit" lab up --dir "$dir" --subnet "$subnet" --servers 3 --clients 1 --fs ./switching.lua
is "its root lacks CAP_SYS_RESOURCE" \
	"$(($(inside s1 sed -n 's/^CapEff:\t/0x/p' /proc/self/status) >> 24 & 1))" 0
is "a server is nobody's, was root's, and listens" "$(server s1)" "nobody 0 1"
said=$("$culprit" doctor --inventory "$dir/inventory.lua")
for fault in kill hang err-files err-fsize err-vmsize; do
	check "doctor: $fault can run" grep -q "ok *$fault " <<<"$said"
done

cat >faults.lua <<'E2'
return {
	name = "switching", summary = "a server that is killed, stopped, limited",
	workloads = { { "postmark", transactions = 200, files = 60 } },
	faults = { "none", "kill", "hang", "err-files", "err-fsize", "err-vmsize" },
	detectors = { { "crash-hang", timeout = "4s" } },
	phases = { before = "3s", fault = "8s", after = "2s" },
}
E2
without "$culprit" run --inventory "$dir/inventory.lua" --seed 1 -o run faults.lua >table 2>log
is "the run ends with 0" $? 0
sed 's/^/# /' log
is "all cells are confirmed" "$(sql "SELECT count(DISTINCT cell) FROM attempt WHERE outcome = 'confirmed'")" 6
for s in s1 s2 s3; do is "$s is as it was" "$(server $s)" "nobody 0 1"; done
named() { # FAULT: the victim, and whom crash-hang names
	sql "SELECT victims->>0 || ' ' || (verdict.verdict->>'indicted') FROM cell JOIN attempt ON attempt.cell = cell.number
		JOIN verdict ON verdict.attempt = attempt.id WHERE fault = '$1' AND outcome = 'confirmed' AND detector = 'crash-hang'"
}
sql "SELECT fault, victims, verdict.verdict FROM cell JOIN attempt ON attempt.cell = cell.number JOIN verdict ON verdict.attempt = attempt.id" | cut -c1-200 | sed 's/^/# /'
for fault in kill hang; do
	check "crash-hang names the server of $fault" grep -qE '^(s[123]) \["\1"\]$' <<<"$(named $fault)"
done
is "... and none of the control" "$(sql "SELECT verdict.verdict->>'indicted' FROM cell JOIN attempt ON attempt.cell = cell.number
	JOIN verdict ON verdict.attempt = attempt.id WHERE fault = 'none' AND detector = 'crash-hang'")" "[]"
check "the client has closed connections" \
	[ "$("$culprit" query run "SELECT count(*) FROM events WHERE node = 'c1' AND owner = 'daemon' AND call = 'close' AND peer LIKE '%:322'" |
		awk 'NR == 2 { print $1 }')" -gt 100 ]

sed -e 's/faults = .*/faults = { "none" }, tracer = "ptrace",/' -e 's/"switching"/"traced"/' faults.lua >ptrace.lua
exits "a run under ptrace" 0 '1 of 1 cells confirmed' without "$culprit" run --inventory "$dir/inventory.lua" --seed 1 -o ptrace ptrace.lua
for run in run ptrace; do
	is "$run: what the servers did is in their traces" "$(sql "SELECT min(log.value->>'calls') > 100 FROM attempt, json_each(detail->'traces') AS log
		WHERE outcome = 'confirmed' AND log.key LIKE 's%'" $run)" 1
done
down >/dev/null
check "nothing is left" clean
cd / && rm -rf "$work"
done_testing
