#!/bin/bash
# The figure of ci/bench/contention.sh: drawn from figures by second, the same each time, names escaped.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
awk 'BEGIN {
	print "second,name,threads,calls,bytes,ms,p99_ms"
	for (s = 3; s < 63; s++) {
		n = int(s / 10) % 2 ? 5 + s % 3 : s % 3
		printf "%d,app<&>,8,%d,4096,%g,%g\n", s, 4000 - 500 * n, 0.2 + 0.1 * n, 1 + 0.5 * n
		if (n) printf "%d,work:low,%d,900,1,2,3\n", s, n
	}
}' >"$dir/seconds.csv"
draw() { results/figures/contention.py "$dir/seconds.csv" 'app<&>' work:low "$dir/$1"; }
check "it is drawn" draw a.svg
check "it counts the crowded seconds" grep -q '30 of 60 seconds with 4 or more of 7 work:low threads' "$dir/a.svg"
check "it is well-formed, with names of threads as they are" python3 -c 'import sys, xml.dom.minidom as m
assert "app<&>" in m.parse(sys.argv[1]).getElementsByTagName("title")[0].firstChild.data' "$dir/a.svg"
results/figures/contention.py "$dir/seconds.csv" 'app<&>' work:low "$dir/one.svg" 1
check "or those from a number on" grep -q '50 of 60 seconds with 1 or more of 7 work:low threads' "$dir/one.svg"
draw b.svg
check "the same figures give the same bytes" cmp "$dir/a.svg" "$dir/b.svg"
check "the script that measures says what it takes" bash -c 'ci/bench/contention.sh what 2>&1 | grep -Eq "case FOLDER|no db_bench"'
done_testing
