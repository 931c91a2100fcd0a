#!/bin/bash
# OrangeFS on a lab of the test's own: data through it, what doctor says, one cell of each kind, and nothing left.
. "$(dirname "$0")/lab_lib.sh"
for program in sbin/pvfs2-server bin/pvfs2fuse bin/pvfs2-check-server; do
	[ -x /opt/orangefs/$program ] || skip_all "there is no /opt/orangefs/$program (ci/orangefs.sh builds it)"
done

exits "an unknown setting is refused" 2 'methods' up --fs orangefs,methods=directio
exits "... and an unknown method" 3 "method 'fast': use directio or alt-aio" up --fs orangefs,method=fast
check "... and only logs are left" only_logs
exits "up" 0 'orangefs, 3 servers, 2 clients' up --fs orangefs
# shellcheck disable=SC2034 # clean looks for it
link=$("$culprit" lab status --json --dir "$dir" | sed -n 's/.*"link": "\(.*\)".*/\1/p')

# --- the way of the data: 96 strips of 64 KiB over three servers, to and from their disks
inside c1 dd if=/dev/urandom of=/tmp/data bs=1M count=6 status=none
sum=$(inside c1 sha256sum /tmp/data | cut -c1-64)
inside c1 dd if=/tmp/data of=/mnt/fs/data bs=3M oflag=direct status=none
for s in s1 s2 s3; do
	is "$s has a third of the strips" "$(inside $s sh -c 'cat /srv/storage/data/*/bstreams/*/*.bstream | wc -c')" $((2 << 20))
done
sectors() { # of all storage devices, read so far
	for s in s1 s2 s3; do
		inside $s sh -c 'awk "{ print \$3 }" "/sys/dev/block/$(stat -c %Hr:%Lr "$(findmnt -no SOURCE /srv/storage)")/stat"'
	done | awk '{ sum += $1 } END { print sum }'
}
before=$(sectors)
is "another client reads what one wrote" "$(inside c2 sh -c 'dd if=/mnt/fs/data bs=3M iflag=direct status=none | sha256sum | cut -c1-64')" "$sum"
check "... from the disks" test $((($(sectors) - before) * 512)) -ge $((6 << 20))
inside c1 sh -c 'echo odd >/mnt/fs/small'
is "small odd writes work" "$(inside c2 cat /mnt/fs/small)" odd

# --- an inventory without storage, port and mount is completed by what is found on the hosts
cd "$dir" || exit 1
sed 's/storage = "[^"]*", service_port = [0-9]*, //; s/, mount = "[^"]*"//' inventory.lua >bare.lua
is "the inventory says neither storage nor mount" "$(grep -c '[^a-z]storage =\|mount =' bare.lua)" 0
said=$("$culprit" doctor --inventory bare.lua 2>&1)
for what in '/srv/storage/data (volume lab, port 3334' '/mnt/fs (volume lab' "3 servers, 2 clients"; do
	check "doctor finds $what" grep -qF "$what" <<<"$said"
done

# --- a cell of each kind
cat >cells.lua <<'S'
return {
	name      = "cells",
	workloads = { "ddr" },
	faults    = { "none", "disk-hog", "receive-pktloss" },
	detectors = { "peer-robust" },
	phases    = { before = "6s", fault = "12s", after = "2s" },
	seed      = 1,
}
S
"$culprit" run --inventory inventory.lua -o cells cells.lua >table 2>said
is "three cells run" $? 0
sed 's/^/# /' said
is "all are confirmed" "$(sqlite3 cells/run.db "SELECT count(DISTINCT cell) FROM attempt WHERE outcome = 'confirmed'")" 3
"$culprit" query --samples cells | tail -n +2 >samples.csv
is "responses are short, and what follows them in strips of 64 KiB is bulk data" "$(awk -F, '{ n[$3] += $6; bytes[$3] += $9 }
	END { print (bytes["ncread"] / n["ncread"] < 1000), (bytes["ncbulk"] / n["ncbulk"] > 65536), (n["ncread"] >= n["ncbulk"]) }' samples.csv)" "1 1 1"
ratio=$(sqlite3 cells/run.db "CREATE TEMP TABLE sample (cell INTEGER, attempt INTEGER, metric TEXT, server TEXT, second INTEGER, count INTEGER,
	sum_s REAL, max_s REAL, bytes INTEGER)" ".mode csv" ".import samples.csv sample" "
	WITH a AS (SELECT cell.number AS number, victims->>0 AS victim, (onset_ns - start_ns) / 1000000000 AS onset, (offset_ns - start_ns) / 1000000000 AS ends
		FROM attempt JOIN cell ON cell.number = cell WHERE fault = 'disk-hog' AND outcome = 'confirmed'),
	s AS (SELECT sum_s, count, server = victim AS its FROM sample JOIN a ON sample.cell = a.number
		WHERE metric = 'dread' AND second > onset AND second < ends)
	SELECT round((SELECT sum(sum_s) / sum(count) FROM s WHERE its) / (SELECT sum(sum_s) / sum(count) FROM s WHERE NOT its), 2)")
check "beside a hog the victim's reads take twice as long as its peers' (measured: $ratio times)" awk "BEGIN { exit !($ratio > 2) }"
is "peer-robust names the hog's victim" "$(sqlite3 cells/run.db "SELECT verdict->>'indicted' = victims FROM verdict
	JOIN attempt ON attempt.id = attempt JOIN cell ON cell.number = cell WHERE detector = 'peer-robust' AND metric = 'any' AND fault = 'disk-hog'")" 1
cd / || exit 1

# --- down
inside s2 sh -c 'p=$(pgrep pvfs2-server); kill -9 $p; while kill -0 $p 2>/dev/null; do sleep 0.01; done'
exits "a lab whose server died is broken" 3 's2 has no server process' status
check "down" down
check "nothing is left" clean
done_testing
