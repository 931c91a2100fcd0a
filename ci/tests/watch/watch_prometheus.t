#!/bin/bash
# culprit watch with a real Prometheus: asks it for series, survives its outage, and is scraped by it. Needs prometheus
# (ci/packages-all.txt). No root.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
if ! command -v prometheus >/dev/null || ! command -v promtool >/dev/null; then
	skip_all "no prometheus (make check-all installs it)"
fi
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
pids=()
trap 'for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null; wait "$p" 2>/dev/null; done; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# The last 300 minutes of 80 disks, of which host2/d1 is 3 times as slow in the second half.
python3 - >data.om <<'P'
import math, random, time
r, now = random.Random(3), int(time.time() // 60 * 60)
own = [math.exp(r.gauss(0, .03)) for _ in range(80)]
print("# TYPE disk_read_ms gauge")
for d in range(80):
    for i in range(300):
        v = 5 * own[d] * math.exp(r.gauss(0, .1)) * (3 if d == 9 and i >= 150 else 1)
        print(f'disk_read_ms{{host="host{d // 4}",disk="d{d % 4}"}} {v:.4f} {now - (299 - i) * 60}')
print("# EOF")
P
promtool tsdb create-blocks-from openmetrics data.om data >blocks 2>&1 || skip_all "promtool makes no blocks: $(tail -1 blocks)"
port=$(free_port)
export_port=$(free_port)
cat >prometheus.yml <<Y
global: {scrape_interval: 1s}
scrape_configs: [{job_name: culprit, static_configs: [{targets: ["127.0.0.1:$export_port"]}]}]
Y
serve() {
	prometheus --config.file=prometheus.yml --storage.tsdb.path=data --storage.tsdb.retention.time=30d \
		--web.listen-address=127.0.0.1:"$port" >>log 2>&1 &
	server=$!
	pids+=("$server")
}
answers() { python3 -c 'import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())' "http://127.0.0.1:$port$1"; }
serve
check "Prometheus starts" until_true 30 answers /-/ready
watch=("$culprit" watch --prometheus "http://127.0.0.1:$port" --step 1min --member disk --group host --horizon 1h --horizon 4h --false-alarms 0.01)

"${watch[@]}" --once --query disk_read_ms >out 2>err
check "--once: 1" bash -c '[ '$?' = 1 ] || { cat out err; false; }'
check "it names the disk" bash -c 'grep -q " begin host2/d1: disk_read_ms " out || { cat out err; false; }'
"${watch[@]}" --once --query 'disk_read_ms{host="none"}' >out 2>err
check "no series: 2" [ $? = 2 ]
"${watch[@]}" --once --query 'disk_read_ms{' >out 2>err
check "a wrong query: 2, with the server's words" bash -c '[ '$?' = 2 ] && grep -q "parse error" err || { cat err; false; }'

"${watch[@]}" --query disk_read_ms --interval 500ms --export 127.0.0.1:"$export_port" >out 2>err &
pid=$!
pids+=("$pid")
scraped() { answers "/api/v1/query?query=$1" | grep -q "$2"; }
check "its findings are scraped" until_true 30 scraped culprit_finding_severity '"member":"d1"'
check "its numbers too" scraped culprit_samples_total '"value"'
kill "$server"
wait "$server" 2>/dev/null
# No query while there cannot be a new step: at most a minute.
check "an outage is reported" until_true 90 grep -q 'it is asked again' err
sleep 2
check "once" [ "$(grep -c 'it is asked again' err)" = 1 ]
serve
check "its end as well" until_true 60 grep -q 'the server answers again' err
check "the finding was not repeated" [ "$(grep -c begin out)" = 1 ]
kill -TERM $pid
check "SIGTERM ends it" until_true 60 bash -c "! kill -0 $pid"
wait $pid
check "with 0" [ $? = 0 ]
done_testing
