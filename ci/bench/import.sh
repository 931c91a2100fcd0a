#!/bin/bash
# Samples a second that one core reads from CSV, by form and number of series, and peak memory; next to 'wc -l' on the same
# file, as the floor. Goal: 20 million samples a second in the wide form. Each time is the least processor time of five.
set -eu
cd "$(dirname "$0")/../.."
import=${OUT:-out}/bench/import
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
TIMEFORMAT='%U %S'

echo "| form | series | samples | bytes a sample | million samples a second | MB a second | time over wc -l | memory, MiB |"
echo "|---|--:|--:|--:|--:|--:|--:|--:|"
for what in "wide 2000 2000" "wide 100000 40" "columns 2000 1000" "long 2000 1000" "long-by-series 2000 1000" "long-random 2000 1000" \
	"long 100000 20" "long-random 100000 20"; do
	# shellcheck disable=SC2086
	"$import" make $what >"$tmp/file"
	for _ in 1 2 3 4 5; do "$import" read "$tmp/file"; done | sort -n -k2 | head -1 >"$tmp/best"
	for _ in 1 2 3 4 5; do { time wc -l <"$tmp/file" >/dev/null; } 2>&1; done | awk '{ print $1 + $2 }' | sort -n | head -1 >"$tmp/floor"
	read -r samples took rss <"$tmp/best"
	awk -v what="$what" -v bytes="$(stat -c %s "$tmp/file")" -v n="$samples" -v took="$took" -v rss="$rss" -v floor="$(cat "$tmp/floor")" 'BEGIN {
		split(what, w, " ")
		ratio = floor > 0 ? sprintf("%.1f", took / floor) : "-"
		printf "| %s | %d | %d | %.1f | %.1f | %.0f | %s | %.0f |\n", w[1], w[2], n, bytes / n, n / took / 1e6, bytes / took / 1e6,
			ratio, rss }'
done
