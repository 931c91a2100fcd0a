#!/bin/bash
# Ceph in the lab: a cell of each kind, a crash and a hang, an OSD that is killed and comes back, and nothing that is left.
. "$(dirname "$0")/lab_lib.sh"
for program in ceph-mon ceph-osd ceph-mds ceph-fuse ceph monmaptool; do
	command -v $program >/dev/null || skip_all "there is no $program: ci/install.sh --all installs Ceph"
done

own() { find /var/lib/ceph /etc/ceph /run/ceph -printf '%p %s %T@\n' 2>/dev/null | sort; }
before=$(own)
exits "lab up --fs ceph" 0 "ceph, 3 servers, 2 clients" up --fs ceph
# shellcheck disable=SC2034 # clean looks for it
link=$("$culprit" lab status --json --dir "$dir" | sed -n 's/.*"link": "\(.*\)".*/\1/p')
exits "status finds its daemons" 0 'is up' status
check "storage is a raw device" grep -q 'storage = "/dev/loop[0-9]*p1", spare' "$dir/inventory.lua"
probe() { # TIMEOUT
	timeout "$1" "$culprit" lab exec --dir "$dir" c1 -- sh -c 'for i in 1 2 3 4; do
		dd if=/dev/zero of="/mnt/fs/probe.$i" bs=1M count=8 conv=fsync 2>/dev/null || exit; done'
}
check "a client writes to all OSDs" probe 60

# --- an inventory without storage and mount is completed by what is found on the hosts
sed 's/storage = "[^"]*", //; s/, mount = "[^"]*"//' "$dir/inventory.lua" >"$dir/bare.lua"
is "the inventory says neither storage nor mount" "$(grep -c '[^a-z]storage =\|mount =' "$dir/bare.lua")" 0
said=$("$culprit" doctor --inventory "$dir/bare.lua" 2>&1)
for what in /var/lib/ceph/osd/ceph-2/block '/mnt/fs (' "3 servers, 2 clients"; do
	check "doctor finds $what" grep -qF "$what" <<<"$said"
done
sed 's/^/# /' <<<"$said"
is "with the device's own name, too" "$("$culprit" doctor --inventory "$dir/inventory.lua" 2>&1 | grep -c 'ok *file system  */var/lib/ceph/osd/')" 3

work=$(mktemp -d)
cat >"$work/ceph.lua" <<EOF
return {
	name = "ceph", inventory = "$dir/inventory.lua",
	workloads = { { "ddw", per_server = "1MiB", records = 8, direct = 0 } },
	faults = { "none", "disk-hog", "receive-pktloss", "kill" },
	detectors = { "peer-robust", { "crash-hang", timeout = "4s" } },
	phases = { before = "3s", fault = "10s", after = "1s" },
	training = { workloads = { "ddw" } },
	seed = 3,
}
EOF
"$culprit" run -o "$work/run" "$work/ceph.lua" >"$work/said" 2>&1
is "run: every cell is confirmed" "$(grep -c 'confirmed' <(grep '^\[' "$work/said"))" 5
"$culprit" query --samples "$work/run" | tail -n +2 >"$work/samples.csv"
ratio=$(sqlite3 "$work/run/run.db" "CREATE TEMP TABLE sample (cell INTEGER, attempt INTEGER, metric TEXT, server TEXT, second INTEGER,
	count INTEGER, sum REAL, max REAL, bytes INTEGER)" ".mode csv" ".import $work/samples.csv sample" "
	WITH a AS (SELECT cell.number AS number, victims->>0 AS victim, (onset_ns - start_ns) / 1000000000 AS onset, (offset_ns - start_ns) / 1000000000 AS ends
		FROM attempt JOIN cell ON cell.number = cell WHERE fault = 'receive-pktloss' AND outcome = 'confirmed'),
	s AS (SELECT metric LIKE '%retransmitted%' AS again, sum, server = victim AS its FROM sample JOIN a ON sample.cell = a.number
		WHERE metric IN ('client_tcp_retransmitted_segments', 'client_tcp_sent_segments') AND second > onset AND second < ends)
	SELECT round((SELECT sum(sum * again) / sum(sum * NOT again) FROM s WHERE its)
		/ max(1e-3, (SELECT sum(sum * again) / sum(sum * NOT again) FROM s WHERE NOT its)), 2)")
check "clients send twice as much again to an OSD that loses packets (measured: $ratio times)" awk "BEGIN { exit !($ratio > 2) }"
asynchronous=$(awk -F, '$3 == "dwrite" { n += $6 } END { print n + 0 }' "$work/samples.csv")
check "asynchronous writes to the device are seen ($asynchronous)" test "$asynchronous" -gt 100
is "peer-robust names the hog's victim" "$(awk '/^peer-robust$/ { on = 1 } on && /^disk-hog/ { getline; print $3; exit }' "$work/said")" 1.00
is "crash-hang finds the killed OSD" "$(awk '/^crash-hang$/ { on = 1 } on && /^kill/ { getline; print $3; exit }' "$work/said")" 1.00
sed 's/^/# /' "$work/said"

# --- an OSD is gone: its clients wait; it comes back, and they continue
inside s2 pkill -9 -x ceph-osd
exits "status says which server has no OSD" 3 's2 has no server process' status
check "a client waits for the OSD" eval '! probe 3'
inside s2 sh -c 'setsid ceph-osd -f -c /run/culprit/ceph.conf --id 2 --public-addr '"$net"'.12 >/dev/null 2>&1 </dev/null &'
check "it is back, and the client goes on" probe 60
exits "status finds it" 0 'is up' status

down >/dev/null
check "nothing is left" clean
is "Ceph's folders of this machine are as before" "$(own)" "$before"
rm -rf "$work"
done_testing
