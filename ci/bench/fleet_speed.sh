#!/bin/bash
# What one core takes to read and judge a fleet's samples, and the memory for it; then how both times grow when series or
# samples double, which should be twofold. Each time is the least processor time of three. Goals: 20 million samples a
# second parsed and judged, 500 MB, 100,000 series. FULL=1 adds a thousand million samples, 100,000 metrics more, and the
# whole command on 2,000 series of 40,000 samples (goal: 30 s); it takes some minutes.
set -eu
cd "$(dirname "$0")/../.."
out=${OUT:-out}
speed=$out/bench/fleet_speed
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
repeat=3

# Prints: samples, s to take, s to judge, MiB. Arguments: of fleet_speed, or "csv FORM SERIES TIMES".
measure() {
	local n

	[[ $1 != csv ]] || "$speed" make "$2" "$3" "$4" >"$tmp/file"
	for ((n = 0; n < repeat; n++)); do
		if [[ $1 == csv ]]; then "$speed" file "$tmp/file"; else "$speed" "$@"; fi
	done | awk 'NR == 1 { n = $1; a = $2; b = $3 } { if ($2 < a) a = $2; if ($3 < b) b = $3; if ($4 > m) m = $4 }
		END { print n, a, b, m }'
}

row() { # name series measured
	awk -v name="$1" -v series="$2" '{ printf "| %s | %d | %.0f | %.1f | %.1f | %.1f | %.0f |\n", name, series, $1,
		$2 / $1 * 1e9, $3 / $1 * 1e9, $1 / ($2 + $3) / 1e6, $4 }'
}

echo "| samples from | series | samples | ns to take one | ns to judge one | million a second | memory, MiB |"
echo "|---|--:|--:|--:|--:|--:|--:|"
measure sink 2000 5000 | row "memory, by time" 2000
measure series 2000 5000 | row "memory, by series" 2000
measure sink 100000 100 | row "memory, by time" 100000
measure sink 25000 100 4 | row "memory, four metrics" 100000
measure csv wide 2000 2000 | row "CSV, wide" 2000
measure csv columns 2000 2000 | row "CSV, columns" 2000
measure csv long 2000 2000 | row "CSV, long" 2000
if [[ ${FULL:-} ]]; then
	repeat=1
	measure sink 100000 10000 | row "memory, by time" 100000
	measure sink 100000 2500 4 | row "memory, four metrics" 400000
	measure sink 1000000 1000 | row "memory, by time" 1000000
	"$speed" make wide 100000 1000 | "$speed" file - | row "CSV, wide" 100000
	"$speed" make columns 100000 1000 | "$speed" file - | row "CSV, columns" 100000
	repeat=3
fi

growth() { # what, before, after: as from measure
	awk -v what="$1" '{ t[NR] = $2; j[NR] = $3; m[NR] = $4 } END { printf "| %s | %.2f | %.2f | %.2f |\n", what,
		t[2] / t[1], j[2] / j[1], m[2] / m[1] }'
}

echo
echo "| doubled | time to take | time to judge | memory |"
echo "|---|--:|--:|--:|"
for series in 4000 16000; do
	{ measure sink $series 500; measure sink $((2 * series)) 500; } | growth "series: $series to $((2 * series)), 500 samples each"
done
for times in 1000 4000; do
	{ measure sink 2000 $times; measure sink 2000 $((2 * times)); } | growth "samples: $times to $((2 * times)), 2000 series"
done
[[ ${FULL:-} ]] || exit 0

echo
"$speed" make columns 2000 40000 | {
	TIMEFORMAT='%R s elapsed, %U s user, %S s system'
	time "$out/culprit" diagnose --csv - --rank --report "$tmp/page.html" >"$tmp/said"
} 2>&1 | sed 's/^/culprit diagnose --csv - --rank --report, 2000 series of 40000 samples through a pipe: /'
