#!/bin/bash
# flow_coverage.sh RUN ...: how much of what a run recorded is bound to what, in each cell, next to the goals; as a
# table in Markdown. Then why the rest is not, and (without a run, or with --speed first) how fast binding is.
cd "$(dirname "$0")/../.." || exit 1
culprit=$PWD/${OUT:-out}/culprit

if [ $# = 0 ] || [ "$1" = --speed ]; then
	ci/bench/flow_bind.sh || exit
	[ $# -gt 0 ] && shift
fi
for run; do
	cells=$("$culprit" slow "$run" --top 0 | sed -n 's/^cell \([0-9]*\) .*/\1/p')
	for cell in $cells; do
		"$culprit" slow "$run" --cell "$cell" --top 0
	done | awk -v run="${run##*/}" '
		/^cell [0-9]/ {
			n++
			name[n] = $0
			sub(/, from .*/, "", name[n])
			sub(/\([^)]*\)/, "", name[n])
		}
		/ of +[0-9]+ .*%$/ {
			what = substr($0, 1, 46)
			sub(/ +$/, "", what)
			for (i = 1; i <= NF; i++)
				if ($i == "of") figure[what, n] = $(i - 1) " of " $(i + 1) ", " $(i + 2) " %"
		}
		/^not bound: |^  begun by / { why[n] = why[n] "\n    " $0 }
		END {
			goals = "receives bound to their sends=100 %;requests with all four legs=99.9 %;" \
				"servers\047 data calls, syncs bound to requests=99.5 %;" \
				"data requests bound to applications\047 calls=99 %;" \
				"others, but for the client\047s own threads\047=95 %"
			printf "| %s | goal |", run
			for (c = 1; c <= n; c++) printf " %s |", name[c]
			printf "\n|---|---|"
			for (c = 1; c <= n; c++) printf "---|"
			print ""
			rows = split(goals, row, ";")
			for (r = 1; r <= rows; r++) {
				split(row[r], part, "=")
				printf "| %s | %s |", part[1], part[2]
				for (c = 1; c <= n; c++) printf " %s |", figure[part[1], c]
				print ""
			}
			for (c = 1; c <= n; c++) print "\n" name[c] why[c]
		}'
done
