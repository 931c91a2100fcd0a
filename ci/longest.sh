#!/bin/bash
# The calls of a run's cells: ci/longest.sh RUN DETECTOR METRIC WORKLOAD FAULT... For each cell of that workload under one of these faults the
# mean and the longest of the metric's calls on any server, in milliseconds, and whether the detector named a server without a fault. As
# Markdown, for results/*.md.
set -euo pipefail
[[ $# -ge 5 && "${*:2}" =~ ^[a-z0-9=(),\ -]+$ ]] || { echo "usage: ci/longest.sh RUN DETECTOR METRIC WORKLOAD FAULT..." >&2; exit 2; }
culprit=${OUT:-out}/culprit run=$1 detector=$2 metric=$3 workload=$4
shift 4
faults=$(printf ", '%s'" "$@")
{
	"$culprit" query --csv "$run" "SELECT 'cell', cell, fault, wrong FROM scores WHERE detector = '$detector' AND metric = 'any'
		AND substr(workload, 1, instr(workload || '(', '(') - 1) = '$workload' AND fault IN (${faults#, }) ORDER BY cell" | sed 1d
	"$culprit" query --samples "$run" | grep ",$metric,"
} | awk -F, '
	$1 == "cell" { list[++n] = $2; fault[$2] = $3; wrong[$2] = $4; next }
	$1 in fault { calls[$1] += $6; sum[$1] += $7; if ($8 > longest[$1]) longest[$1] = $8 }
	END {
		print "| cell | fault | calls | mean (ms) | longest (ms) | wrong server |"
		print "|--:|---|--:|--:|--:|---|"
		for (i = 1; i <= n; i++) {
			c = list[i]
			printf "| %d | %s | %d | %.3f | %.1f | %s |\n", c, fault[c], calls[c], 1e3 * sum[c] / calls[c], 1e3 * longest[c], wrong[c] ? "named" : ""
		}
	}'
