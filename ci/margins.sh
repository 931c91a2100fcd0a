#!/bin/bash
# How far a run's victims were from peer-threshold's thresholds: ci/margins.sh RUN [DETECTOR]. For each fault and workload the metric that
# came nearest to its threshold or went farthest beyond it; medians over the cells, in milliseconds. For results/*.md.
set -euo pipefail
[[ $# -ge 1 && $# -le 2 && ${2-peer-threshold} =~ ^[a-z=(),-]+$ ]] || { echo "usage: ci/margins.sh RUN [DETECTOR] (of scenarios/table1.lua)" >&2; exit 2; }
"${OUT:-out}/culprit" query --csv "$1" "
	SELECT fault, substr(workload, 1, instr(workload || '(', '(') - 1), metric, json_extract(s.value, '\$.representative_s'),
		json_extract(s.value, '\$.deviation_s'), json_extract(s.value, '\$.threshold_s')
	FROM verdicts JOIN attempts ON attempt = attempts.id JOIN cells ON cell = cells.number,
		json_each(verdict, '\$.evidence.servers') s
	WHERE detector = '${2-peer-threshold}' AND NOT training AND victims IS NOT NULL AND s.key = json_extract(victims, '\$[0]')" |
	sed 1d | tr ',' ' ' |
	awk '
	function median(list,   v, n, i, j, t) {
		n = split(list, v, " ")
		for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
		return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
	}
	{
		if (!($3 in metrics)) { metrics[$3]; metric[++nm] = $3 }
		k = $1 FS $2 FS $3; n[k]++; peers[k] = peers[k] " " $4 * 1e3; off[k] = off[k] " " $5 * 1e3; threshold[k] = threshold[k] " " $6 * 1e3
	}
	function abs(x) { return x < 0 ? -x : x }
	END {
		print "| fault | workload | metric | n | peers (ms) | the victim beyond them | threshold |"
		print "|---|---|---|--:|--:|--:|--:|"
		split("disk-hog disk-busy write-network-hog read-network-hog receive-pktloss send-pktloss", fs, " ")
		split("ddr iozoner postmark ddw iozonew", ws, " ")
		for (f = 1; f <= 6; f++) for (w = 1; w <= 5; w++) {
			best = ""; most = -1
			for (m = 1; m <= nm; m++) {
				k = fs[f] FS ws[w] FS metric[m]
				if (!(k in n)) continue
				share = abs(median(off[k])) / median(threshold[k])
				if (share > most) { most = share; best = k; name = metric[m] }
			}
			if (best != "") printf "| %s | %s | %s | %d | %.2f | %.2f | %.2f |\n", w == 1 ? fs[f] : "", ws[w], name, n[best], median(peers[best]), median(off[best]), median(threshold[best])
		}
	}'
