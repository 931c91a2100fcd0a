#!/bin/bash
# Runs each of the tests N times in a row on a machine that is kept busy, and says how often it failed and how long it took:
#     ci/steady.sh N TEST...
# TEST is a shell test (ci/tests/ROOM/NAME.t), a C test's source (ci/tests/ROOM/NAME_test.c) or its program (OUT/tests/ROOM/NAME_test).
# What is not built yet is built. What a test that failed has printed is kept in OUT/failures/. Ends with 1 if one failed; OUT is the
# build's folder, as for make. As root.
set -euo pipefail
cd "$(dirname "$0")/.."
export OUT=${OUT:-out} LC_ALL=C
refuse() {
	echo "ci/steady.sh: $1" >&2
	exit 2
}
[[ $# -ge 2 ]] || refuse "usage: ci/steady.sh N TEST..."
[[ $1 =~ ^[1-9][0-9]*$ ]] || refuse "'$1' is no number of runs; write it like 20"
command -v stress-ng >/dev/null || refuse "there is no stress-ng, which keeps the machine busy: apt-get install stress-ng"
runs=$1
shift

# As the machine is before it is busy, so that a build is no part of it.
programs=() tests=()
for t in "$@"; do
	case $t in
	*.t) [[ -f $t ]] || refuse "there is no test '$t'" ;;
	*_test.c)
		[[ -f $t ]] || refuse "there is no test '$t'"
		t=$OUT/tests/${t#ci/tests/}
		t=${t%.c}
		programs+=("$t")
		;;
	*_test) programs+=("$t") ;;
	*) refuse "'$t' is no test: a .t, a _test.c or a program OUT/tests/ROOM/NAME_test" ;;
	esac
	tests+=("$t")
done
# Tests also start the programs and those of ci/tests/helpers.
helpers=(ci/tests/helpers/*.c)
helpers=("${helpers[@]/#ci\/tests/$OUT}")
make -s --no-print-directory -j"$(nproc)" OUT="$OUT" programs "${helpers[@]%.c}" "${programs[@]}"

stress-ng --quiet --cpu 8 --io 4 &
stress=$!
said=$(mktemp)
trap 'kill $stress 2>/dev/null || :; wait $stress 2>/dev/null || :; rm -f "$said"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$OUT/failures"

# TEST N: the seconds of run N go to $seconds, why it is skipped to $note; fails if the test does.
once() {
	local begin=$EPOCHREALTIME rc=0 name
	case $1 in
	*.t) timeout --foreground -k 60 2400 bash "$1" >"$said" 2>&1 || rc=$? ;;
	*) timeout --foreground -k 10 1800 "$1" >"$said" 2>&1 || rc=$? ;;
	esac
	seconds=$(awk -v begin="$begin" -v end="$EPOCHREALTIME" 'BEGIN { printf "%.3f", end - begin }')
	! grep -q '^1\.\.0 # SKIP' "$said" || note="  ($(grep -m 1 -o 'SKIP.*' "$said"))"
	[[ $rc -ne 0 ]] || return 0
	name=${1##*tests/}
	name=${name#/}
	{
		echo "# ended with $rc after $seconds s"
		cat "$said"
	} >"$OUT/failures/${name//\//.}.$2"
	return 1
}

bad=0
printf '%4s %8s %8s %8s %8s  %s\n' runs failures min median max test
for t in "${tests[@]}"; do
	failures=0 all=() note=
	for ((i = 1; i <= runs; i++)); do
		kill -0 $stress 2>/dev/null || refuse "stress-ng has ended"
		once "$t" "$i" || failures=$((failures + 1))
		all+=("$seconds")
	done
	mapfile -t all < <(printf '%s\n' "${all[@]}" | sort -g)
	printf '%4d %8d %8.1f %8.1f %8.1f  %s%s\n' "$runs" "$failures" "${all[0]}" "${all[runs / 2]}" "${all[-1]}" "$t" "$note"
	[[ $failures -eq 0 ]] || bad=1
done
[[ $bad -eq 0 ]] || echo "what they printed: $OUT/failures/" >&2
exit $bad
