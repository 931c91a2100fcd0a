#!/bin/bash
# The end of a test run (ci/check.sh): a table by part, the slowest programs, and each failed check. Usage: summary.sh WORK FAILURES SECONDS
# Exit codes: 0 all passed, 1 not, 2 something could not be built.
set -uo pipefail
work=$1 failures=$2 seconds=$3
results=$work/results
touch "$results"
planned=$(wc -l <"$work/all")
ran=$(cut -f2 "$results" | sort -u | wc -l)

echo
awk -F'\t' '
	BEGIN { split("lint unit kernel pages lab test again", order, " "); printf "%-8s %8s %8s %8s %8s %9s %9s\n", "part", "programs", "checks", "failed", "skipped", "seconds", "processor" }
	{ p[$1]++; c[$1] += $3; bad[$1] += ($4 > 0 || $7 != 0); k[$1] += $5; s[$1] += $6; u[$1] += $8 }
	END {
		for (i = 1; i in order; i++) if (order[i] in p) {
			o = order[i]
			printf "%-8s %8d %8d %8d %8d %9.0f %9.0f\n", o, p[o], c[o], bad[o], k[o], s[o], u[o]
			tp += p[o]; tc += c[o]; tb += bad[o]; tk += k[o]; ts += s[o]; tu += u[o]
		}
		printf "%-8s %8d %8d %8d %8d %9.0f %9.0f\n", "all", tp, tc, tb, tk, ts, tu
	}' "$results"
printf '%d:%02d on the clock; limits that bound a hang are multiplied by %s\n' $((seconds / 60)) $((seconds % 60)) "${CULPRIT_TEST_PATIENCE:-1}"
echo
echo "the slowest:"
sort -t$'\t' -k6,6nr "$results" | head -n 10 | awk -F'\t' '{ printf "%8.1f s  %6.1f s of processor time  %s\n", $6, $8, $2 }'

rc=0
[[ $planned -gt 0 ]] || { echo "no test was planned"; rc=1; }
while IFS=$'\t' read -r _ program _ failed _ _ code _; do
	[[ $failed -gt 0 || $code -ne 0 ]] || continue
	[[ $rc -ne 0 ]] || printf '\nfailed:\n'
	rc=1
	log=$failures/$(sed 's/^ci.tests.//; s/^make /make_/; s/\//_/g' <<<"$program").log
	ci/failures.py "$program" "$log" "$code"
done <"$results"
if [[ $ran -lt $planned ]]; then
	printf '\n%d of %d programs did not run:\n' $((planned - ran)) "$planned"
	grep -vxF -f <(cut -f2 "$results") "$work/all" | head -n 20 | sed 's/^/  /'
	rc=1
fi
# What prove alone saw, such as a plan that does not fit.
if [[ $rc -eq 0 && -s $work/prove-failed ]]; then
	cat "$work/prove-failed"
	rc=1
fi
[[ ! -s $work/broken ]] || rc=2
echo
# The closing line that runners of tests understand.
awk -F'\t' '{ c += $3; f += $4; s += $5; if ($4 == 0 && $7 != 0) f++ } END { printf "%d passed, %d failed, %d skipped\n", c - f - s, f, s }' "$results"
exit $rc
