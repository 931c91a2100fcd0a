#!/bin/bash
# Scale of captures by simulation: 1,024 ranks of 10,000 calls are merged in 60 s and 2 GB. RANKS, CALLS: other sizes.
cd "$(dirname "$0")/../.." || exit 1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
ranks=${RANKS:-1024} calls=${CALLS:-10000}
said=$("${OUT:-out}/bench/causal_scale" "$tmp" "$ranks" "$calls") || exit
echo "$said"
value() { sed -n "s/.*\b$1=\([0-9.]*\).*/\1/p" <<<"$said"; }
[ "$(value operations)" = $((ranks * calls)) ] && [ "$(value forced)" = 0 ] || { echo "causal: not all operations are in the trace"; exit 1; }
awk -v s="$(value merge_s)" -v mb="$(value merge_mb)" 'BEGIN { ok = s <= 60 && mb <= 2048
	printf "causal: merged in %.1f s and %d MB (goal: 60 s, 2048 MB): %s\n", s, mb, ok ? "ok" : "missed"; exit !ok }'
