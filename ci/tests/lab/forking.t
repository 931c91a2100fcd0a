#!/bin/bash
# Servers that fork a process per client: the template of 'culprit new file-system', described by the parent alone. Its children
# are traced, stopped and killed with it.
. "$(dirname "$0")/../lab/lab_lib.sh"

for program in sshfs mergerfs socat sftp-server; do
	PATH=$PATH:/usr/lib/openssh command -v $program >/dev/null || skip_all "there is no $program: ci/install.sh --all installs it"
done
work=$(mktemp -d)
cd "$work" || exit
sql() { sqlite3 run/run.db "$1"; }
children() { inside "$1" pgrep -x sftp-server | sort; }

"$culprit" new file-system mine >/dev/null
sed -i -e 's/return pids(processes, "sftp-server")/return pids(processes, "socat")/' -e '/cannot = { kill/d' -e 's/directport=%d/&,reconnect/' \
	-e 's/^\t\tstart_server = function(node)$/&\n\t\t\tnode:spawn("idle", { "sleep", "100000" })/' mine.lua
check "the template is described by its parent" grep -q 'pids(processes, "socat")' mine.lua
cat >forking.lua <<'E2'
return {
	name = "forking", summary = "hang and kill",
	workloads = { { "ddw", per_server = "1MiB", records = 4 } },
	faults = { "hang", "kill" },
	detectors = { "always-healthy" },
	phases = { before = "3s", fault = "5s", after = "2s" },
}
E2
exits "a lab of it" 0 '2 servers' "$culprit" lab up --dir "$dir" --subnet "$subnet" --servers 2 --clients 1 --fs ./mine.lua
for s in s1 s2; do children $s >before.$s; done
check "each server has a child for its client" [ -s before.s1 ] && [ -s before.s2 ]

# Children seen stopped, with their server, while the run continues.
"$culprit" run --inventory "$dir/inventory.lua" --seed 1 -o run forking.lua >table 2>log &
run=$!
while kill -0 $run 2>/dev/null; do
	for s in s1 s2; do
		inside $s ps -C sftp-server,socat -o stat= | cut -c1 | sort | uniq -c | xargs echo $s >>states
	done
done
wait $run
code=$?
sed 's/^/# /' log table
is "the run ends with 0" $code 0
is "both cells are confirmed" "$(sql "SELECT count(DISTINCT cell) FROM attempt WHERE outcome = 'confirmed'")" 2
hung=$(sql "SELECT victims->>0 FROM cell WHERE fault = 'hang'")
killed=$(sql "SELECT victims->>0 FROM cell WHERE fault = 'kill'")
check "hang stops the server and its child ($hung)" grep -qx "$hung [2-9] T" states
is "... which go on" "$(inside "$hung" ps -C sftp-server,socat -o stat= | grep -c T)" 0
is "kill kills the child ($killed)" "$(children "$killed" | comm -12 - "before.$killed")" ""
is "traces have the calls of children" \
	"$(sql "SELECT count(*) FROM attempt WHERE outcome = 'confirmed' AND (SELECT sum(value->>'calls') FROM json_each(detail->'traces') WHERE key LIKE 's%') > 100")" 2


# Described by a process that does not serve: what the client reads has been sent by another one.
sed -i 's/return pids(processes, "socat")/return pids(processes, "sleep")/' mine.lua
sed -i -e 's/"ddw"/"ddr"/' -e 's/faults = .*/faults = { "none" }, attempts = 1,/' forking.lua
exits "a run of it does not end well" 3 'sent [0-9]* bytes to the clients, but its trace has no call' \
	"$culprit" run --inventory "$dir/inventory.lua" --seed 1 -o wrong forking.lua
is "... its attempts are invalid" "$(sqlite3 wrong/run.db "SELECT DISTINCT outcome FROM attempt")" invalid
down >/dev/null
check "nothing is left" clean
cd / && rm -rf "$work"
done_testing
