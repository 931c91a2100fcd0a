#!/bin/bash
# The table 'requests' of culprit query, on a recorded cell: its requests agree with the calls. No root.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
tar -xzf ci/tests/data/lab-flow.tar.gz -C "$dir"
run=$dir/tiny

says() { # EXPECTED SQL: CSV without its head
	local got
	got=$("$culprit" query --csv "$run" "$2" 2>&1 | tail -n +2)
	[ "$got" = "$1" ] || { echo "$got"; return 1; }
}
check "as many as culprit slow counts while the fault acted" says "$("$culprit" slow --json "$run" | python3 -c '
import json, sys
cell = json.load(sys.stdin)["cells"][0]
for s in cell["servers"]: print(s["server"], s["phases"]["during"]["requests"], sep=",")')" \
	"select server, count(*) from requests where phase = 'during' group by 1 order by 1"
check "reads bring what the application read, from the server's disk" says 1,1 \
	"select count(*) > 100, sum(disk_bytes) = (select sum(bytes) from events where owner = 'app' and class = 'read' and path like '/mnt/fs/%')
		from requests where procedure = 'READ'"
check "the parts of a request's time add up" says 0,0 \
	"select max(abs(total_ns - there_ns - waiting_ns - disk_ns - answering_ns - back_ns)), sum(total_ns is null) from requests"
check "a read lies inside the FUSE request that caused it, and that one inside the application's call" says 0,1 \
	"select sum(total_ns > daemon_ns or daemon_ns > fuse_ns or fuse_ns > call_ns), count(*) > 100 from requests
		where procedure = 'READ' and fuse_bound = 'by thread'"
check "it begins with a write of the client's thread" says 1,1 \
	"select count(*) > 400, count(*) = (select count(*) from requests where procedure = 'READ') from requests r join events e
		on e.tid = r.tid and e.node = r.client and e.owner = 'daemon' and abs(e.t - r.t) < 1e-7 and e.class = 'write'
		where procedure = 'READ'"
check "asked twice at once" says 625 "select count(*) from requests a join requests b using (number)"
check "of one cell: another has none" says 0 "select count(*) from requests where cell = 1"
check "--cell" says 625 "select count(*) from requests where cell = 2 and attempt > 0"
check "failures have the same requests" says 0 "select count(*) from failures f where by is not null and not exists
	(select 1 from requests r where r.server = f.node and r.procedure = f.request and r.disk_errors > 0)"
check "... and are calls of their nodes" says 1,1 "select count(*) > 0, count(*) = (select count(*) from failures) from failures f join events e
	on e.node = f.node and e.time_ns = f.time_ns and e.tid = f.tid and e.call = f.call and e.errno = f.errno and abs(e.t - f.t) < 1e-7"
listed() { # --schema lists the columns of both, and all can be queried
	local t
	for t in requests failures; do
		"$culprit" query --schema | grep -q "^$t: " || { echo "no $t"; return 1; }
		"$culprit" query "$run" "select $("$culprit" query --schema --csv | awk -F, -v t=$t '$1 == t { printf "%s\"%s\"", n++ ? ", " : "", $2 }') from $t limit 1" >"$dir/said" || return 1
	done
}
check "--schema lists both with columns that can be asked" listed
rm "$run"/cells/0002.1/s3.fs.trace
missing() {
	"$culprit" query "$run" "select count(*) from requests" >"$dir/said" 2>&1
	[ $? = 2 ] && grep -q "requests of cell 2 (attempt 2): .*s3.fs.trace" "$dir/said" || { cat "$dir/said"; return 1; }
}
check "a missing log is reported" missing
rm "$run"/cells/0002.1/*.fs.trace
without() { # TABLE
	"$culprit" query "$run" "select 1 from $1" 2>"$dir/said" >/dev/null
	[ $? = 2 ] && grep -q "$1: no attempt was recorded with flows: .*\.fs\.trace" "$dir/said" && [ "$(wc -l <"$dir/said")" = 1 ] || { cat "$dir/said"; return 1; }
}
check "a run without flows: the reason, once" without requests
check "... for failures, too" without failures
check "... other tables are as they were" says 1 "select count(*) > 0 from events"
check "findings of a run without flows say nothing of flows" prints_without flows 0 "$culprit" findings "$run"
rm "$run"/cells/0002.1/*.trace
none() {
	"$culprit" query "$run" "select 1 from requests" >"$dir/said" 2>&1
	[ $? = 2 ] || { cat "$dir/said"; return 1; }
}
check "without any log: reported" none
done_testing
