#!/bin/bash
# Recorded cells as fleets, and their score: ci/bench/fleet_recorded.pl.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
recorded() { perl ci/bench/fleet_recorded.pl "$@"; }

cat >"$tmp/samples" <<'S'
cell,attempt,metric,server,second,count,sum,max,bytes
3,1,dread,s1,0,4,0.5,0.2,0
3,1,disk_reads,s1,0,1,7,7,0
3,1,disk_writes,s1,0,1,2,2,0
3,1,tcp_rtt_s,s1,0,10,0.5,0.1,0
3,1,cpu_busy_s,s1,0,1,1,1,0
3,1,dread,s2,10,1,0.25,0.25,0
3,1,dread,s2,9,0,0,0,0
12,1,dread,s1,0,1,1,1,0
S
recorded convert "$tmp" <"$tmp/samples"
field() { # FILE ROW COLUMN
	grep -v '^#' "$tmp/$1" | awk -F, -v row="$2" -v column="$3" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == row + 1 { print $(at[column]) }'
}
is() { # NAME WANTED GOT
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "'$3' instead of '$2'"; fi
}
is "a cell is a file" "cell-0003.csv cell-0012.csv" "$(cd "$tmp" && echo cell-*)"
is "an amount is the sum" 0.5 "$(field cell-0003.csv 1 dread_s)"
is "its exposure is the count" 4 "$(field cell-0003.csv 1 dreads)"
is "requests are reads and writes" 9 "$(field cell-0003.csv 1 requests)"
is "a gauge is the mean" 0.05 "$(field cell-0003.csv 1 rtt_s)"
is "what was not measured is empty" "" "$(field cell-0003.csv 1 nsread_s)"
is "rows are in order of time" "0 9 10" "$(grep '^[0-9]' "$tmp/cell-0003.csv" | cut -d, -f1 | paste -sd' ')"
is "each exposure that is named is a column" "" "$(
	grep -o 'per=[a-z_]*' "$tmp/cell-0003.csv" | cut -d= -f2 | sort -u >"$tmp/named"
	grep -v '^#' "$tmp/cell-0003.csv" | head -1 | tr ',' '\n' | sort | comm -23 "$tmp/named" -
)"

cat >"$tmp/tap" <<'S'
1..4
ok 1 - peer-robust: disk-hog under ddr(per_server=1 MiB), repeat 1
# cell 3, guilty s1: said s1, disk
not ok 2 - peer-threshold: disk-hog under ddr(per_server=1 MiB), repeat 1
# cell 3, guilty s1: said nobody
not ok 3 - peer-robust: disk-hog under postmark(files=20,transactions=50), repeat 1
# cell 12, guilty s2: said s2+s4, disk
ok 4 - peer-robust: none under ddr(per_server=1 MiB), repeat 1
# cell 13, guilty nobody: said nobody
S
cat >"$tmp/findings" <<'S'
file,kind,who,metric
/tmp/cell-0003.csv,shift,servers/s1,busy_s
/tmp/cell-0003.csv,first,servers/s1,busy_s
/tmp/cell-0012.csv,bursts,servers/s4,busy_s
/tmp/cell-0012.csv,first,servers/s2,busy_s
/tmp/cell-0013.csv,group,servers,busy_s
S
recorded score "$tmp/tap" "$tmp/findings" >"$tmp/score"
is "victims and others are counted" "disk-hog,2,2,1,1,2,1" "$(sed -n 2p "$tmp/score")"
is "a control has no victim" "none,1,0,0,0,0,0" "$(sed -n 3p "$tmp/score")"
is "nothing else is counted" 3 "$(wc -l <"$tmp/score")"
check "the page of public data is what its CSV files give" cmp results/fleet-public.md <(perl ci/bench/fleet_public_page.pl results/fleet)
done_testing
