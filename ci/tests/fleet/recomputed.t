#!/bin/bash
# Rows of results/fleet/families.csv and ablation.csv, made anew from their seed with today's detector, equal the committed ones in all
# columns but the last, seconds. The sample is fixed: clean fleets and the ratio 10. A change of the detector that changes these rows must
# commit new tables (ci/bench/families.sh, fleet_ablation.sh). No root.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
bin=${OUT:-out}/bench
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

same() { # TABLE ROWS key=value...: so many rows of TABLE, all as committed
	local table=results/fleet/$1.csv rows=$2 keys
	shift 2
	rm -f "$tmp/new.csv"
	# The table's own head says how it was made.
	read -ra keys < <(sed -n '1s/^# //p' "$table")
	"$bin/fleet_families" run "$tmp/new.csv" "${keys[@]}" "$@" 2>"$tmp/said" || { cat "$tmp/said"; return 1; }
	awk -F, 'BEGIN { OFS = "," } FNR <= 2 { next } { key = $1 FS $2 FS $3 FS $4; NF-- }
		NR == FNR { old[key] = $0; next }
		{ n++ } old[key] != $0 { print "committed: " old[key] "\nanew:      " $0; bad = 1 }
		END { if (n != rows) { print n + 0 " rows, not " rows; bad = 1 } exit bad }' rows="$rows" "$table" "$tmp/new.csv"
}
for family in $("$bin/fleet_families" list | sed -n 's/^| \([a-z-]*\) | \(development\|held out\) .*/\1/p'); do
	check "$family: six rows of the detector fleet are as committed" same families 6 "family=$family" only=fleet least=10
done
check "there are 16 families" [ "$tap_n" = 16 ]
check "groups: the rivals' rows, too" same families 48 family=groups least=10
for part in tails side; do
	check "dispersion: rows without $part, too" same ablation 6 family=dispersion "only=without $part" least=10
done
done_testing
