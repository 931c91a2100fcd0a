#!/bin/bash
# Large runs: peer-robust finds the one slow disk among many servers, and its cost grows with servers and seconds, not with
# their squares. Compares processor times of this run of the test; ci/bench/scale.sh measures a thousand servers.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
scale=${OUT:-out}/bench/scale
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The minimum of five runs, in ms; the output goes to $tmp/said.
cost() {
	for _ in 1 2 3 4 5; do "$scale" results/corpora/matrix peer-robust "$@"; done | tee "$tmp/said" | awk '{ print int($3 * 1000) + 1 }' | sort -n | head -1
}
small=$(cost 50 120)
check "the slow disk is found among 50" [ "$(cut -d' ' -f6- "$tmp/said" | sort -u)" = server-0026 ]
servers=$(cost 400 120)
check "... and among 400" [ "$(cut -d' ' -f6- "$tmp/said" | sort -u)" = server-0201 ]
seconds=$(cost 50 960)
check "... and in 960 s" [ "$(cut -d' ' -f6- "$tmp/said" | sort -u)" = server-0026 ]
echo "# $small ms; of 8 times the servers $servers ms; of 8 times the seconds $seconds ms"
check "8 times the servers cost less than 20 times as much (squares: 64)" [ "$servers" -lt $((20 * small)) ]
check "... and 8 times the seconds as well" [ "$seconds" -lt $((20 * small)) ]
# Columns take no more room than they need: with 4 times the servers, less than 5 times the memory.
read -r _ _ _ rss_small _ <<<"$("$scale" results/corpora/matrix peer-robust 100 300)"
read -r _ _ _ rss_large _ <<<"$("$scale" results/corpora/matrix peer-robust 400 300)"
echo "# $rss_small MiB for 100 servers and 300 s, $rss_large MiB for 400"
check "memory grows in proportion to servers" [ "$rss_large" -lt $((5 * rss_small)) ]
done_testing
