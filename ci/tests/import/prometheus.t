#!/bin/bash
# A real Prometheus scrapes a file of metrics; queries return the written values. Plainly, with TLS and a password, and behind a
# proxy that needs a token. No root, no network except the loopback.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
for program in prometheus openssl python3; do
	command -v $program >/dev/null || skip_all "no $program ('make check-all' installs it)"
done
ask=$PWD/${OUT:-out}/tests/import/prometheus_test
hostile=$PWD/ci/tests/import/hostile.py
tmp=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
ask() { timeout 60 "$ask" ask "$@" >said 2>&1; }
says() { if grep -qE -- "$2" said; then ok "$1"; else not_ok "$1" "$(head -c 2000 said)"; fi; }

# The exporter is a folder of files. Values do not change, so every sample is known.
mkdir www
cat >www/metrics <<-END
	# TYPE disk_read_ms gauge
	disk_read_ms{device="sda",host="h1"} 4.25
	disk_read_ms{device="sdb",host="h1"} 5.5
	disk_read_ms{device="sda",host="h2"} 40
	disk_read_ms{device="sdb",host="h2"} 6
	# TYPE lat histogram
	lat_bucket{device="sda",host="h1",le="0.1"} 3
	lat_bucket{device="sda",host="h1",le="+Inf"} 7
	lat_bucket{device="sda",host="h2",le="0.1"} 1
	lat_bucket{device="sda",host="h2",le="+Inf"} 8
END
python3 -u -m http.server --bind 127.0.0.1 --directory www 0 >exporter 2>&1 &
pids+=($!)
until_true 20 grep -q 'port [0-9]' exporter || skip_all "python3 serves no files here"
exporter=$(sed -n 's/.*port \([0-9]*\).*/\1/p' exporter)

openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
	-addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' >/dev/null 2>&1
cat >prometheus.yml <<-END
	global: {scrape_interval: 1s}
	scrape_configs:
	  - job_name: disks
	    static_configs: [{targets: ['127.0.0.1:$exporter']}]
END
# The hash (bcrypt) is of the word 'sesame'.
cat >web.yml <<-END
	tls_server_config: {cert_file: cert.pem, key_file: key.pem}
	basic_auth_users: {me: "\$2b\$04\$n0edCtLQYlGy46vyU2GTx.fT9VOuwUgvI.9wzxTOqgeyxA84c438C"}
END
# start PORT DIR [OPTION ...]
start() {
	prometheus --config.file=prometheus.yml --web.listen-address="127.0.0.1:$1" --storage.tsdb.path="$2" --log.level=warn "${@:3}" >"$2.log" 2>&1 &
	pids+=($!)
}
plain=$(free_port)
start "$plain" data
secure=$(free_port)
start "$secure" data-tls --web.config.file=web.yml
url=http://127.0.0.1:$plain
now() { date +%s.%N | cut -c1-14; }
since=$(date +%s)
has_samples() { ask "$url" disk_read_ms "$since" "$(date +%s)" 1 && [ "$(grep -c '^disk_read_ms h2/sda' said)" -ge 5 ]; }
until_true 60 has_samples || { not_ok "Prometheus has scraped" "$(cat said data.log)"; done_testing; }
ok "Prometheus has scraped"
cp said first
says "member and group are guessed" "^note: member in label 'device', groups in 'host' \(guessed"
check "values are the written ones" [ "$(grep '^disk_read_ms' said | awk '{print $1, $2, $4}' | sort -u | tr '\n' ';')" = \
	"disk_read_ms h1/sda 4.25;disk_read_ms h1/sdb 5.5;disk_read_ms h2/sda 40;disk_read_ms h2/sdb 6;" ]
check "one sample for each step" [ -z "$(grep '^disk' said | cut -d' ' -f1-3 | sort | uniq -d)" ]
end=$(date +%s)

ask "$url" lat_bucket "$since" "$end" 1
says "buckets of a histogram are metrics" '^lat\{le="\+Inf"\} h2 [0-9]+ 8$'
says "... and declared as such" '^declared lat kind=bucket$'
ask "$url" 'ratio=disk_read_ms / 2' "$since" "$end" 1
says "a query is named" '^ratio h2/sda [0-9]+ 20$'
ask "$url" 'disk_read_ms{' "$since" "$end" 1
says "a mistake in the query, in Prometheus's words" '^error EINVAL: .*HTTP 400.*parse error'
ask "$url" disk_read_ms "$since" "$end" 1 member=disk
says "a label that does not exist" "^error EINVAL: no series has a label 'disk'; there are device, host, instance, job"
ask "$url" nothing_here "$since" "$end" 1
says "an answer without series is no error" '^done '
ask "$url" 'vector(1)' "$((end - 30000))" "$end" 1
check "more than 11,000 steps" [ "$(grep -c '^value ' said)" = 30001 ]
ask "$url/nowhere" up "$since" "$end" 1
says "another path" '^error EPROTO: .*HTTP 404'

curl_ready() { ask "https://localhost:$secure" disk_read_ms "$since" "$(date +%s)" 1 ca=cert.pem password=password && grep -q '^disk_read_ms h2/sda [0-9]* 40$' said; }
echo me:sesame >password
check "TLS and a password" until_true 60 curl_ready
ask "https://localhost:$secure" up "$since" "$end" 1 ca=cert.pem
says "no password" '^error EACCES: .*HTTP 401.*--token-file'
echo me:wrong-word >wrong
ask "https://localhost:$secure" up "$since" "$end" 1 ca=cert.pem password=wrong
says "a wrong password" '^error EACCES: .*HTTP 401'
check "... and no message shows it" [ "$(grep -c wrong-word said)" = 0 ]
ask "https://localhost:$secure" up "$since" "$end" 1
says "a certificate without a trusted signer" '^error EPROTO: https://localhost:[0-9]*: TLS: '
ask "http://localhost:$secure" up "$since" "$end" 1 password=password
says "HTTP to an HTTPS port" '^error E(INVAL|PROTO|ACCES): '
ask "https://127.0.0.1:$plain" up "$since" "$end" 1 ca=cert.pem
says "HTTPS to an HTTP port" '^error EPROTO: .*TLS'

python3 "$hostile" proxy cert.pem key.pem "$url" >port 2>proxy.log &
pids+=($!)
until_true 20 test -s port
proxy=https://localhost:$(cat port)
echo sesame >token
ask "$proxy" disk_read_ms "$since" "$end" 1 ca=cert.pem token=token
says "a bearer token" '^disk_read_ms h2/sda [0-9]+ 40$'
echo not-the-word >token
ask "$proxy" disk_read_ms "$since" "$end" 1 ca=cert.pem token=token
says "a wrong token" '^error EACCES: .*HTTP 401'
check "... and no message shows it" [ "$(grep -c not-the-word said)" = 0 ]

if command -v promtool >/dev/null; then
	# A dump of the head needs a stopped server.
	kill "${pids[1]}"
	wait "${pids[1]}" 2>/dev/null
	promtool tsdb dump data 2>dump.err | grep '__name__="disk_read_ms"' >dump.prom
	"$ask" read dump.prom disk_read_ms >said 2>&1
	says "a dump of its data is read as a file" '^disk_read_ms h2/sda [0-9.]+ 40$'
fi

if command -v prometheus-node-exporter >/dev/null; then
	port=$(free_port)
	prometheus-node-exporter --web.listen-address="127.0.0.1:$port" --collector.disable-defaults --collector.filesystem >node.log 2>&1 &
	pids+=($!)
	get() { python3 -c 'import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())' "http://127.0.0.1:$port/metrics"; }
	until_true 20 get >/dev/null
	for time in 1795357180 1795357195; do echo "# time $time"; get; done >node.prom
	"$ask" read node.prom node_filesystem_size_bytes member=mountpoint >said 2>&1
	says "scrapes of a node exporter, with lines of time" '^done$'
	says "its types become declarations" '^declared node_filesystem_size_bytes kind=gauge$'
	check "... and all of its samples are read" [ "$(grep -c '^node_filesystem_size_bytes ' said)" = "$(grep -c '^node_filesystem_size_bytes{' node.prom)" ]
fi
done_testing
