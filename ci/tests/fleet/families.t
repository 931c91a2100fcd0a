#!/bin/bash
# fleet_csv and fleet_families: what they print follows from the seed, a run is resumed, options are checked. No root.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
bin=${OUT:-out}/bench
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

"$bin/fleet_csv" models members=40 hours=2 who=third labels="$tmp/labels" >"$tmp/a.csv"
"$bin/fleet_csv" models members=40 hours=2 who=third >"$tmp/b.csv"
"$bin/fleet_csv" models members=40 hours=2 who=third order=series >"$tmp/c.csv"
"$bin/fleet_csv" models members=40 hours=2 who=third seed=2 >"$tmp/d.csv"
check "the head names time, groups, member and metric" grep -qx 'time,model,host,member,latency_ms' "$tmp/a.csv"
check "the metric is declared" grep -qx '# metric latency_ms unit=ms worse=more kind=gauge' "$tmp/a.csv"
check "the same seed gives the same file" cmp -s "$tmp/a.csv" "$tmp/b.csv"
check "another seed gives another file" [ "$(cmp -s "$tmp/a.csv" "$tmp/d.csv"; echo $?)" = 1 ]
check "the order of series has the same rows" cmp -s <(sort "$tmp/a.csv") <(sort "$tmp/c.csv")
check "times ascend" sort -C -s -t, -k1,1n <(grep -v '^[#t]' "$tmp/a.csv")
missing=$(tail -n +2 "$tmp/labels" | cut -d, -f1-3 | while read -r member; do grep -q ",$member," "$tmp/a.csv" || echo "$member"; done)
check "labels name members of the file" [ -z "$missing" ]
check "and there are some" [ "$(wc -l <"$tmp/labels")" -ge 2 ]
"$bin/fleet_csv" nothing >"$tmp/out" 2>&1
check "an unknown family is refused with the list" bash -c '[ "$1" = 2 ] && grep -q lognormal "$2"' - $? "$tmp/out"

run() { "$bin/fleet_families" run "$tmp/r.csv" fleets=1 clean=1 members=40 family=lognormal only=ratio-2 "$@" 2>"$tmp/err"; }
run
check "a run has 8 ratios, 5 shares and a clean line" [ "$(grep -c '^lognormal,.*,ratio-2,' "$tmp/r.csv")" = 41 ]
cp "$tmp/r.csv" "$tmp/first.csv"
run
check "what is there is not run again" cmp -s "$tmp/r.csv" "$tmp/first.csv"
head -20 "$tmp/first.csv" >"$tmp/r.csv"
run jobs=2
check "what is missing is run, by two processes" cmp -s <(cut -d, -f1-17 "$tmp/r.csv" | sort) <(cut -d, -f1-17 "$tmp/first.csv" | sort)
run seed=2
check "a file of another run is refused" bash -c '[ "$1" = 2 ] && grep -q "of another run" "$2"' - $? "$tmp/err"
run only=nobody
check "an unknown detector is refused" [ $? = 2 ]
"$bin/fleet_families" table "$tmp/r.csv" >"$tmp/table"
check "the table finds the ratio of 10" grep -Eq '^\| 10 \|.* 100 \|$' "$tmp/table"
check "the table has no number that is none" lacks nan "$tmp/table"
check "one table can be printed" [ "$("$bin/fleet_families" table "$tmp/r.csv" recall | grep -c '^[A-Z|r]')" -ge 10 ]
check "of one half" [ -z "$("$bin/fleet_families" table "$tmp/r.csv" recall held)" ]
check "the families are listed, half of them held out" [ "$("$bin/fleet_families" list | grep -c '| held out |')" = 8 ]

parts() { "$bin/fleet_families" run "$tmp/$1.csv" fleets=1 clean=1 members=40 family=dispersion "${@:2}" 2>"$tmp/err"; }
without() { grep "^dispersion,$1,.*$2," "$tmp/$3.csv" | cut -d, -f5-21; } # CELL DETECTOR FILE: what was found
parts each parts=each
check "each part is left out" [ "$(grep -c '^dispersion,3,1,without ' "$tmp/each.csv")" = 10 ]
"$bin/fleet_families" table "$tmp/each.csv" parts >"$tmp/table"
check "and has a row in the table" bash -c '[ "$(grep -c "^| " "$1")" = 12 ] && ! grep -q nan "$1"' - "$tmp/table"
parts one without=groups only=fleet
check "by itself it is the same" cmp -s <(without 1.5,1 fleet one) <(without 1.5,1 'without groups' each)
check "with all parts it is not" bash -c '! cmp -s "$1" "$2"' - <(without '.*' fleet each) <(without '.*' 'without groups' each)
check "the head says it" grep -q '^# .* without=groups$' "$tmp/one.csv"
parts none without=groups,nobody
check "an unknown part is refused with the list" bash -c '[ "$1" = 2 ] && grep -q "nobody.*tails" "$2"' - $? "$tmp/err"
done_testing
