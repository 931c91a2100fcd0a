#!/bin/bash
# culprit watch: findings begin and end as lines arrive; rotation; state over a kill; the exporter; exit codes. No root.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/schema.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
pids=()
trap 'for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null; wait "$p" 2>/dev/null; done; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

# fleet FROM TO: 80 disks in 20 hosts, a sample a minute; host2/d1 is 3 times as slow from step 300 to 600. FROM 0 begins with a head.
cat >fleet.py <<'P'
import math, random, sys
first, end = int(sys.argv[1]), int(sys.argv[2])
if not first: print("time,host,disk,metric,value")
own = random.Random(7)
own = [math.exp(own.gauss(0, .03)) for _ in range(80)]
for i in range(first, end):
    r = random.Random(i)
    load = 5 + 1.5 * math.sin(i / 50)
    for d in range(80):
        v = load * own[d] * math.exp(r.gauss(0, .1)) * (3 if d == 9 and 300 <= i < 600 else 1)
        print(f"{1760000000 + i * 60},host{d // 4},d{d % 4},read_ms,{v:.4f}")
P
fleet() { python3 fleet.py "$@"; }
fleet 0 700 >all.csv
head -32001 all.csv >ill.csv # to step 400
watch=("$culprit" watch --false-alarms 0.01)

# --- standard input ---
"${watch[@]}" --csv - <all.csv >out 2>err
check "a stream that ends healthy ends with 0" [ $? = 0 ]
check "the fault begins once and ends once" [ "$(cut -d' ' -f2 out | tr '\n' ' ')" = "begin end " ]
check "the begin names member, metric, effect, since" grep -Eq '^2025-10-09T[0-9:]+Z begin host2/d1: read_ms [23]\.?[0-9]* times its peers \(lasting\) for [0-9]+ % of the time since 2025-10-09T' out
check "the format and the horizons are reported" grep -q 'horizons: 64 min, ' err
"${watch[@]}" --csv - --json <ill.csv >out 2>err
check "a stream that ends ill ends with 1" [ $? = 1 ]
fits watch out
check "--json prints an object a line" python3 -c 'import json
l, = [json.loads(l) for l in open("out")]
assert l["event"] == "begin" and l["member"] == "d1" and l["group"] == "host2" and l["metric"] == "read_ms", l
assert l["kind"] == "shift" and l["severity"] >= 1 and 2 < l["effect"] < 4 and l["since"] <= l["time"], l'

# --- --once ---
"${watch[@]}" --once --csv ill.csv --state state.json >out 2>err
check "--once: 1 while a finding is open" [ $? = 1 ]
check "it is printed" grep -q ' begin host2/d1: ' out
"${watch[@]}" --once --csv ill.csv --state state.json >out 2>err
check "--once again: still 1" [ $? = 1 ]
check "it is not printed again" [ ! -s out ]
"${watch[@]}" --once --csv all.csv --state state.json >out 2>err
check "--once after the repair: 0" [ $? = 0 ]
check "the end is printed" grep -q ' end   host2/d1: ' out

# --- a flight recorder ---
mkdir capture
cat >recorder.py <<'P'
import os, socket
s = socket.socket(socket.AF_UNIX)
s.bind("capture/early")
s.listen()
os.rename("capture/early", "capture/control")
while True:
    c = s.accept()[0]
    with open("told", "ab") as f: f.write(c.makefile("rb").readline())
    c.close()
P
"${watch[@]}" --once --csv ill.csv --on-alarm capture >out 2>err
check "a finding in old samples triggers no capture" bash -c '! grep -q "capture" err'
now=$(date +%s)
awk -F, -v now="$now" -v last="$(tail -1 ill.csv | cut -d, -f1)" 'BEGIN { OFS = "," } NR > 1 { $1 += now - last } 1' ill.csv >new.csv
"${watch[@]}" --once --csv new.csv --on-alarm capture >out 2>err
check "without a running capture the watch continues" [ $? = 1 ]
check "and reports it" grep -q "no capture runs in the folder 'capture'" err
python3 recorder.py & pids+=($!)
until_true 60 test -S capture/control
awk -F, -v now="$(date +%s)" -v last="$(tail -1 ill.csv | cut -d, -f1)" 'BEGIN { OFS = "," } NR > 1 { $1 += now - last } 1' ill.csv >new.csv
"${watch[@]}" --once --csv new.csv --on-alarm capture >out 2>err
check "a finding that begins now makes the capture write" until_true 60 grep -qx 'write watch found d1' told
check "once" [ "$(wc -l <told)" = 1 ]
check "which is reported" grep -q "the capture of 'capture' is writing its records" err

echo '{"version":7}' >bad.json
"${watch[@]}" --once --csv ill.csv --state bad.json >out 2>err
check "an invalid state: 2" [ $? = 2 ]
check "it says what to do" grep -q 'bad.json: remove the file' err
head -1 all.csv >none.csv
"${watch[@]}" --once --csv none.csv >out 2>err
check "nothing to judge: 2" [ $? = 2 ]
check "it says so" grep -q 'nothing could be judged' err
"${watch[@]}" --once --csv missing.csv >out 2>err
check "a missing file: 2" [ $? = 2 ]
printf 'a,b\n1,2\n' >other.csv
"${watch[@]}" --once --csv other.csv >out 2>err
check "another kind of file: 2, with file and line" bash -c '[ '$?' = 2 ] && grep -q "other.csv:1: " err'

# --- refused ---
refused() { # NAME WHAT ARGUMENTS...
	local name=$1 what=$2
	shift 2
	"$culprit" watch "$@" >out 2>err
	check "$name: 2, in one line" bash -c "[ $? = 2 ] && grep -q -- '$what' err && [ \$(wc -l <err) = 1 ]"
}
refused "no source" '--csv FILE' --once
refused "two sources" 'not both' --csv all.csv --prometheus http://127.0.0.1:1 --query x
refused "an address that others reach" 'loopback' --csv all.csv --export 0.0.0.0:9100
refused "a name instead of an address" 'loopback' --csv all.csv --export localhost:9100
refused "no horizon" 'horizon' --csv all.csv --horizon soon
refused "a horizon with an unknown unit" "units: s, ms, us, ns, min, h, d, w" --csv all.csv --horizon 10m
refused "another format" 'format' --csv all.csv --format sar
refused "an interval of a file" 'needs --prometheus' --csv all.csv --interval 5s

# --- a growing file, with the exporter on a socket ---
get() { python3 - "$@" <<'P'
import socket, sys
where, path, method = sys.argv[1], sys.argv[2], (sys.argv[3:] or ["GET"])[0]
if where.startswith("unix:"):
    s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(where[5:])
else:
    s = socket.create_connection(where.rsplit(":", 1), 10)
s.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
data = b""
while True:
    more = s.recv(65536)
    if not more: break
    data += more
sys.stdout.write(data.decode())
P
}
fleet 0 200 >grow.csv
"${watch[@]}" --csv grow.csv --export unix:"$tmp/socket" --state live.json >out 2>err &
pid=$!
pids+=("$pid")
scraped() { get unix:"$tmp/socket" /metrics | grep -q "$1"; }
check "the exporter answers on a socket" until_true 20 scraped '^culprit_samples_total 16000'
check "only its owner can open it" [ "$(stat -c %a socket)" = 600 ]
check "healthy: no finding" scraped '^culprit_findings 0$'
fleet 200 399 >>grow.csv
check "the fault appears in the metrics" until_true 20 scraped '^culprit_finding_severity{member="d1",group="host2",metric="read_ms",kind="shift"} '
check "and in a line" until_true 20 grep -q ' begin host2/d1: ' out
get unix:"$tmp/socket" /metrics | sed '1,/^\r$/d' >page
if command -v promtool >/dev/null; then
	check "promtool finds nothing to criticise" bash -c 'said=$(promtool check metrics <page 2>&1) && [ -z "$said" ] || { echo "$said"; false; }'
else
	ok "promtool finds nothing to criticise # SKIP no promtool (package prometheus)"
fi
check "other paths: 404" bash -c "$(declare -f get); get unix:$tmp/socket /etc/passwd | grep -q '^HTTP/1.1 404'"
check "other methods: 405" bash -c "$(declare -f get); get unix:$tmp/socket /metrics POST | grep -q '^HTTP/1.1 405'"
"${watch[@]}" --csv grow.csv --export unix:"$tmp/socket" >out2 2>err2
check "a second one is refused the socket of a live one" bash -c '[ '$?' = 2 ] && grep -q "another process serves" err2'

# --- killed, and started again ---
kill -9 $pid
wait $pid 2>/dev/null
check "after kill -9 the socket file is left" [ -S socket ]
"${watch[@]}" --csv grow.csv --export unix:"$tmp/socket" --state live.json >out 2>err &
pid=$!
pids+=("$pid")
check "the next start replaces it and knows the finding" until_true 20 scraped '^culprit_samples_total 31920'
check "  (open)" scraped '^culprit_findings 1$'
check "  and does not repeat it" [ ! -s out ]
# Rotation in the middle of a line, and the new file without a head.
printf '17600' >>grow.csv
sleep 0.2
printf '24000,host0,d0,read_ms,5\n' >>grow.csv
mv grow.csv grow.csv.1
fleet 400 700 >grow.csv
check "rotation is reported" until_true 20 grep -q 'grow.csv was replaced by another file' err
check "the fault ends after it" until_true 20 grep -q ' end   host2/d1: ' out
check "no line was lost" until_true 20 scraped '^culprit_samples_total 55921'
check "all lines were valid" scraped '^culprit_lines_skipped_total 0$'
echo 'what,is,this' >>grow.csv
check "a wrong line is reported with its number" until_true 20 grep -q 'grow.csv:24001: ' err
check "and counted" until_true 20 scraped '^culprit_lines_skipped_total 1$'
kill -TERM $pid
check "SIGTERM ends it" until_true 60 bash -c "! kill -0 $pid"
wait $pid
check "with 0" [ $? = 0 ]
check "the socket is removed" [ ! -e socket ]

# --- a port; hostile names ---
{
	echo 'time,host,disk,metric,value'
	python3 - <<'P'
import math, random
r = random.Random(1)
for i in range(200):
    for d in range(80):
        name = 'a"b\\c} 1' if d == 9 else f"d{d % 4}"
        v = 5 * math.exp(r.gauss(0, .1)) * (3 if d == 9 and i > 60 else 1)
        print(f'{1760000000 + i * 60},host{d // 4},"' + name.replace('"', '""') + f'",read_ms,{v:.4f}')
P
} >hostile.csv
"${watch[@]}" --csv hostile.csv --export 127.0.0.1:0 >out 2>err &
pid=$!
pids+=("$pid")
check "the address is reported" until_true 20 grep -q 'metrics at 127.0.0.1:' err
address=$(sed -n 's/.*metrics at //p' err)
found() { get "$address" /metrics | grep -qF 'member="a\"b\\c} 1"'; }
check "labels are escaped" until_true 20 found
if command -v promtool >/dev/null; then
	check "promtool reads them" bash -c "$(declare -f get); get $address /metrics | sed '1,/^\\r$/d' | promtool check metrics"
else
	ok "promtool reads them # SKIP no promtool (package prometheus)"
fi
# More clients than are served: it neither ends nor stops judging.
python3 - "$address" <<'P'
import socket, sys
host, port = sys.argv[1].rsplit(":", 1)
idle = []
for _ in range(40):
    try: idle.append(socket.create_connection((host, int(port)), 2))
    except OSError: pass
for s in idle:
    try: s.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 100000)
    except OSError: pass
P
check "many clients, long headers: it continues" until_true 20 found
kill -INT $pid
check "SIGINT ends it" until_true 60 bash -c "! kill -0 $pid"
wait $pid
check "with 0" [ $? = 0 ]
done_testing
