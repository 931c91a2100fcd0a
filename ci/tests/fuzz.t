#!/bin/bash
# What comes from outside is fuzzed: scenarios, inventories, time series, traces, the in-kernel tracer's events, filters, views,
# what agents are told and what they say, what stores answer. Each fuzzer of ci/fuzz takes the same inputs each time: so
# many, from its seeds and one seed of chance. FUZZ_RUNS=N: N times as many. 'make fuzz' builds them.
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh
. ci/fuzz/lib.sh
built=$PWD/${OUT:-out}/fuzz
[ -x "$built/log_fuzz" ] || skip_all "no fuzzers are built ('make fuzz', with clang and libclang-rt-dev)"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# A line of ci/fuzz/fuzzers.
fuzz() {
	local name=$1 runs=$(($2 * ${FUZZ_RUNS:-1})) seeds
	mapfile -t seeds < <(seeds_of "$name" "$3" "$tmp/$name")
	shift 3
	mkdir "$tmp/found.$name"
	"$built/${name}_fuzz" -seed=1 -runs=$runs -timeout=30 -rss_limit_mb=2048 -verbosity=1 -print_final_stats=1 -artifact_prefix="$tmp/" \
		"$@" "$tmp/found.$name" "${seeds[@]}" >"$tmp/said" 2>&1
	local code=$?
	sed -n "s/^stat::number_of_executed_units: */# $name: inputs /p" "$tmp/said"
	if [ $code -eq 0 ] && [ "$(sed -n 's/^stat::number_of_executed_units: *//p' "$tmp/said")" -ge $runs ]; then
		ok "$name: nothing breaks it"
	else
		not_ok "$name: nothing breaks it" "$(tail -n 40 "$tmp/said"; for f in "$tmp"/crash-* "$tmp"/timeout-* "$tmp"/oom-* "$tmp"/leak-*; do
			[ ! -e "$f" ] || { echo "$f:"; base64 "$f"; }; done)"
	fi
}
fuzzers fuzz
known=$(for f in ci/fuzz/*_fuzz.c; do basename "$f" _fuzz.c; done | sort | xargs)
check "every fuzzer is run" [ "$known" = "$(sed -n 's/^\([a-z0-9]*\) [0-9].*/\1/p' ci/fuzz/fuzzers | sort | xargs)" ]
done_testing
