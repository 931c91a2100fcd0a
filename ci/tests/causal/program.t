#!/bin/bash
# Captures and replays a real program of several processes: fio in client/server mode. Some jobs write; others read after these
# have ended. The capture holds all their bytes, and no call of the replay fails. Root, eBPF, fio.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
out=$PWD/${OUT:-out} culprit=$PWD/${OUT:-out}/culprit
[ "$(id -u)" = 0 ] || skip_all "needs root"
command -v fio >/dev/null || skip_all "needs fio"
command -v python3 >/dev/null || skip_all "needs python3"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/root"
"$out/agent/culprit-agent" trace --tracer ebpf --mode flow --causal -o "$tmp/try" -- true 2>"$tmp/why" || skip_all "no eBPF here: $(cat "$tmp/why")"
cat >"$tmp/job.fio" <<J
[global]
directory=$tmp/root
filename_format=\$jobname.\$jobnum
ioengine=psync
bs=16k
size=256k
unique_filename=0
[write]
rw=write
numjobs=2
end_fsync=1
[read]
stonewall
rw=randread
numjobs=2
J
cat >"$tmp/go" <<'G'
fio --server=sock:"$1/sock" >"$1/server" 2>&1 &
server=$!
n=0
while [ ! -S "$1/sock" ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done
fio --client=sock:"$1/sock" "$1/job.fio" >"$1/client" 2>&1
code=$?
kill $server
wait $server
exit $code
G
said=$("$culprit" capture -o "$tmp/fio.app" --root "$tmp/root" --time-limit 5min -- sh "$tmp/go" "$tmp" 2>&1)
if [ -e "$tmp/fio.app" ]; then ok "fio is captured"; else not_ok "fio is captured" "$said$(cat "$tmp/client")"; done_testing; fi
printf '%s\n' "$said" | sed 's/^/# /'
"$culprit" log "$tmp/fio.app" >"$tmp/text"
bytes() { awk -v call="$1" '$3 ~ "^p?" call "\\(" && $0 ~ /-fio|write\.|read\./ { sub(/.*\) = /, ""); sum += $1 } END { print sum + 0 }' "$tmp/text"; }
check "the bytes read by the jobs are in it" [ "$(bytes read)" = $((2 * 256 * 1024)) ]
check "... and the bytes written" [ "$(bytes write)" -ge $((2 * 256 * 1024)) ]
check "... by several processes" [ "$(grep -c '^rank ' "$tmp/text")" -ge 4 ]
check "memory shared between processes is reported" grep -q 'share memory' <<<"$said"
# The server starts the readers after the writers, so their first call waits, directly or not, for both writers' last write.
check "readers begin after the writers' last writes" python3 - "$tmp/text" <<'P'
import re, sys
ops, edges, data = {}, {}, {}
for line in open(sys.argv[1]):
    m = re.match(r"(\d+)\.(\d+):(\d+) [0-9.]+ (\w+)\(\"?([^\",)]*)", line)
    if not m: continue
    me = (m[1], m[2], int(m[3]))
    edges[me] = [(a, b, int(n)) for a, b, n in re.findall(r" after=(\d+)\.(\d+):(\d+)", line)]
    data.setdefault(m[4].lstrip("p") + " " + m[5], []).append(me)
def before(op):  # all operations that precede it
    todo, seen = [op], set()
    while todo:
        r, t, n = todo.pop()
        for p in edges.get((r, t, n), []) + ([(r, t, n - 1)] if n > 1 else []):
            if p not in seen:
                seen.add(p)
                todo.append(p)
    return seen
reads = [v[0] for k, v in data.items() if re.match(r"read .*read\.\d$", k)]
writes = [v[-1] for k, v in data.items() if re.match(r"write .*write\.\d$", k)]
print(len(reads), "readers,", len(writes), "writers")
sys.exit(not (len(reads) == 2 and len(writes) == 2 and all(w in before(r) for r in reads for w in writes)))
P
replayed=$("$out/agent/culprit-agent" replay --root "$tmp/replayed" --do 2 "$tmp/fio.app" 2>&1)
check "the trace is replayed twice, and no call fails" [ "$(grep -c '"whole":true.*"short":0,"errors":{}' <<<"$replayed")" = 2 ]
check "... with the bytes of the capture" [ "$(grep -o '"read_bytes":[0-9]*,"written_bytes":[0-9]*' <<<"$replayed" | sort -u)" = \
	"\"read_bytes\":$(bytes read),\"written_bytes\":$(bytes write)" ]
check "the trace is drawn" "$culprit" timeline "$tmp/fio.app" -o "$tmp/fio.html"
done_testing
