#!/bin/bash
# 'culprit replay' over real sshds, in private namespaces: two clients that share a folder exchange progress over their
# SSH connections; no port is opened; the replay ends with its processes and files on a signal, or when culprit is killed.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/schema.sh
[ "$(id -u)" = 0 ] || skip_all "needs root: sshd and namespaces"
[ -x /usr/sbin/sshd ] || skip_all "needs openssh-server"
if [ -z "$REPLAY_SSH_INSIDE" ]; then
	REPLAY_SSH_INSIDE=1 exec unshare --pid --fork --kill-child --mount-proc --net --mount "$0"
fi
home=$PWD
out=$PWD/${OUT:-out}
culprit=$out/culprit
dir=$(mktemp -d /tmp/culprit-replay-ssh.XXXXXX)
mkdir -p /run/sshd /var/lib/culprit
for m in "$dir" /var/lib/culprit; do mount -t tmpfs -o mode=0711 tmpfs "$m" || exit 1; done
trap 'cd /; umount -l "$dir" /var/lib/culprit; rmdir "$dir"' EXIT
unset SSH_AUTH_SOCK
ip link set lo up
cd "$dir" || exit 1
mkdir brick mount
ssh-keygen -q -t ed25519 -C '' -N '' -f id
ssh-keygen -q -t ed25519 -C '' -N '' -f host
cat >sshd.conf <<END
Port 2201
ListenAddress 127.0.0.1
HostKey $dir/host
AuthorizedKeysFile $dir/id.pub
StrictModes no
UsePAM no
PidFile none
MaxStartups 100
SetEnv HOME=$dir
END
/usr/sbin/sshd -D -e -f "$dir/sshd.conf" 2>sshd.log &
until_true 20 grep -q 'Server listening' sshd.log
# Stand-ins for the file system's processes, one on each host.
for name in s1 c1 c2; do
	cp "$(command -v sleep)" "fs-$name"
	"./fs-$name" infinity &
done
cat >fs.lua <<L
local function pids(host, processes)
	local mine = {}
	for _, p in ipairs(processes) do if p.comm == "fs-" .. host.name then mine[#mine + 1] = p.pid end end
	return mine
end
return { summary = "a folder", server_pids = pids, client_pids = pids, lost_errnos = {} }
L
host() { echo "{ name = '$1', role = '$2', address = '127.0.0.1', ssh_port = 2201, identity = 'id', host_key = '$(cut -d' ' -f1,2 host.pub)', $3 },"; }
cat >inventory.lua <<L
return { file_system = { type = "./fs.lua" }, ssh_config = "none", nodes = {
  $(host s1 server "storage = '$dir/brick', service_port = 1") $(host c1 client "mount = '$dir/mount'") $(host c2 client "mount = '$dir/mount'") } }
L
"$out/bench/replay_trace" sync 4 20 4096 100 sync.app
"$out/bench/replay_trace" fitness 2 2 1000000000000000 0 large.app
"$out/bench/replay_trace" sync 4 4000 4096 20000 long.app
again() { "$culprit" replay --inventory inventory.lua "$@"; }
listening() { awk '$4 == "0A" { print $2 }' /proc/net/tcp /proc/net/tcp6 | sort -u | xargs; }
replayers() { pgrep -fc '[c]ulprit-agent replay'; }
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3'"; fi; }
before=$(listening)

again sync.app --json --passes 3 >result 2>said
is "a trace is replayed" $? 0
fits replay result
check "ranks share clients, which is reported" grep -q '4 ranks on 2 clients, several on a client' said
get() { python3 -c 'import json, sys; v = json.load(open("result")); print(eval(sys.argv[1]))' "$1"; }
is "all passes are whole" "$(get '[p["whole"] for p in v["passes"]]')" "[True, True, True]"
is "bytes are those of the trace" "$(get '[(p["read_bytes"], p["written_bytes"]) for p in v["passes"]] == [(4 * 20 * 4096,) * 2] * 3')" True
is "no call failed" "$(get 'v["errors"]')" "{}"
is "ranks waited for each other, across clients" "$(get 'v["round_trip_s"] > 0 and v["passes"][0]["waits"] > 0')" True
echo "# a line from client to client and back: $(get '"%.3f" % (v["round_trip_s"] * 1e3)') ms"
echo "# a barrier of 4 ranks on 2 clients: $(get '"%.3f" % (v["seconds"] / 20 * 1e3)') ms at most"
said=$(again sync.app 2>&1)
is "as text" "$?-$(grep -c 'messages .* ms from client to client' <<<"$said")" 0-1
is "the folder is empty" "$(ls mount)" ""

# Application against replay: one table, one picture.
cp "$home/workloads/traces/psync.app" .
said=$(again psync.app --passes 2 -o psync.json 2>&1)
is "a captured application is replayed, and its result kept" "$?-$([ -s psync.json ]; echo $?)" 0-0
is "the table compares application and replay" "$(grep -cE '^  (run time|pwrite, median) +[0-9.]+ m?s +[0-9.]+ m?s +[-+][0-9.]+ %$' <<<"$said")" 2
is "bytes over time are all bytes of a pass" "$(python3 -c 'import json
v = json.load(open("psync.json"))
print([sum(p["series"][k]) == p[k] == v["application"][k] == sum(v["application"]["series"][k])
       for p in v["passes"] for k in ("read_bytes", "written_bytes")])')" "[True, True, True, True]"
check "both are drawn on one page" "$culprit" timeline psync.app --replay psync.json -o psync.html
said=$("$culprit" timeline "$home/workloads/traces/pseudo.app" --replay psync.json -o x.html 2>&1)
is "the replay of another trace is refused" "$?-$(grep -c "of another trace, 'psync.app'" <<<"$said")-$(ls x.html 2>/dev/null)" "2-1-"
again sync.app --scale-ranks 3 -o three.json >/dev/null 2>said
is "three copies of an application have three times its ranks and bytes" "$?-$(grep -c '12 ranks on 2 clients' said)-$(python3 -c 'import json
v = json.load(open("three.json")); p = v["passes"][0]
print(v["copies"], p["ops"] == 3 * v["application"]["ops"], p["written_bytes"] == 3 * 4 * 20 * 4096, v["errors"])')" "0-1-3 True True {}"
is "their files are removed" "$(ls mount)" ""
said=$(again sync.app --scale-ranks 20000 2>&1)
is "more than a trace can hold is refused, with the numbers" "$?-$(grep -c '20000 copies of the trace have 80000 processes, and a trace holds 65536' <<<"$said")" 2-1
said=$(again sync.app -o none/r.json 2>&1)
is "a result that cannot be written is refused before the replay" "$?-$(grep -c "cannot write 'none/r.json'" <<<"$said")-$(grep -c connecting <<<"$said")" 2-1-0
said=$(again large.app 2>&1)
is "files that do not fit are reported with the sizes" "$?-$(grep -c 'c1: the trace.s files need 4000 TB more, but .* has' <<<"$said")" 3-1
is "before any is made" "$(ls mount)" ""
again sync.app --mode think >/dev/null 2>said
is "a trace without times has no think time" "$?-$(grep -c 'no times of calls' said)" 2-1

# As a workload: again and again in a cell of a length, and once to its end. Results are those of both clients.
results() { # RUN EXPRESSION
	python3 -c 'import json, sqlite3, sys
rows = sqlite3.connect(sys.argv[1] + "/run.db").execute("SELECT detail FROM attempt WHERE outcome = ?", ("confirmed",)).fetchall()
v = [r for row in rows for r in json.loads(row[0])["results"].values()]
print(len(v), eval(sys.argv[2]))' "$1" "$2" 2>&1 | tail -1
}
cat >cells.lua <<L
return { name = "cells", workloads = { { "replay", trace = "./sync.app" } }, faults = { "none" }, detectors = { "always-healthy" },
         tracer = { "ptrace" }, phases = { before = "1s", fault = "1s", after = "1s" } }
L
check "a run with it as its workload" "$culprit" run --quiet --inventory inventory.lua -o cells cells.lua
is "it went round, and no call failed" "$(results cells 'all(r["passes"] > 0 and r["errors"] == 0 and r["short"] == 0 for r in v)')" "2 True"
cat >once.lua <<L
return { name = "once", measure = "runtime", tracers = { "none" }, workloads = { { "replay", trace = "fitness" } }, repeats = 1, limit = "2min" }
L
check "a run to its end" "$culprit" run --quiet --inventory inventory.lua -o once once.lua
is "is one pass of one of culprit's own traces" "$(results once '[r["passes"] for r in v] == [1, 1] and sum(r["bytes"] for r in v) == 4 * 16 * 262144')" "2 True"
is "the runs leave no files or processes" "$(ls mount)$(replayers)" "0"

"$culprit" replay --inventory inventory.lua long.app --cpu 0% >/dev/null 2>&1 &
replay=$!
running() { [ "$(replayers)" -ge 2 ] && [ -n "$(ls mount)" ]; }
check "a long one runs on both clients" until_true 60 running
is "and opens no port" "$(listening)" "$before"
kill -INT $replay
wait $replay
is "it ends on a signal" $? 3
is "with its processes" "$(replayers)" 0
is "and its files" "$(ls mount)" ""
"$culprit" replay --inventory inventory.lua long.app --cpu 0% >/dev/null 2>&1 &
replay=$!
check "another one runs" until_true 60 running
kill -KILL $replay
wait $replay 2>/dev/null
# shellcheck disable=SC2317 # called by until_true
over() { [ "$(replayers)" = 0 ]; }
check "when culprit is killed, the guards end it" until_true 60 over
done_testing
