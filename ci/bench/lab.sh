#!/bin/bash
# Time until the lab is up, and time of a cell outside its phases. Goals: 4+2 nodes 10 s, 10+10 nodes
# 30 s, a cell 6 s. Needs root.
set -euo pipefail
cd "$(dirname "$0")/../.."
culprit=$PWD/${OUT:-out}/culprit
[[ $EUID -eq 0 ]] || { echo "the lab needs root" >&2; exit 2; }
tmp=$(mktemp -d)
trap '"$culprit" lab down --dir "$tmp/lab" >/dev/null; rm -rf "$tmp"' EXIT
lab() { "$culprit" lab "$1" --dir "$tmp/lab" "${@:2}" >/dev/null; }
seconds() { # of a command
	local begin end
	begin=$(date +%s.%N)
	"$@"
	end=$(date +%s.%N)
	awk "BEGIN { printf \"%.2f\", $end - $begin }"
}
for size in "4 2" "10 10"; do
	read -r servers clients <<<"$size"
	took=()
	for _ in 1 2 3; do
		took+=("$(seconds lab up --subnet 10.73.0.0/24 --servers "$servers" --clients "$clients")")
		lab down
	done
	echo "lab up, $servers+$clients nodes: ${took[*]} s"
done
cat >"$tmp/cells.lua" <<'L'
return { name = "cells", workloads = { { "ddr", records = 1 } }, faults = { "none", "receive-pktloss" }, repeats = 3,
         detectors = { "always-healthy" }, phases = { before = "2s", fault = "3s", after = "1s" } }
L
lab up --subnet 10.73.0.0/24
"$culprit" run --quiet --inventory "$tmp/lab/inventory.lua" -o "$tmp/run" "$tmp/cells.lua" >/dev/null
sqlite3 "$tmp/run/run.db" "SELECT printf('a cell outside its phases (6 s): %.2f s at the median, %.2f s at most, %d cells', avg(x) FILTER
	(WHERE r IN ((n + 1) / 2, (n + 2) / 2)), max(x), n) FROM (SELECT (ended_ns - started_ns) / 1e9 - 6 AS x, count(*) OVER () AS n,
	row_number() OVER (ORDER BY ended_ns - started_ns) AS r FROM attempt WHERE outcome = 'confirmed')"
