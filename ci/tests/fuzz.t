#!/bin/bash
# What comes from outside is fuzzed: scenarios, inventories, time series, traces, the in-kernel tracer's events, what
# agents are told and what they say. Each fuzzer of ci/fuzz takes the same inputs each time: so many, from its seeds and one seed of
# chance. FUZZ_RUNS=N: N times as many. 'make fuzz' builds them.
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh
fuzzers=$PWD/${OUT:-out}/fuzz
[ -x "$fuzzers/log_fuzz" ] || skip_all "no fuzzers are built ('make fuzz', with clang and libclang-rt-dev)"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

mkdir "$tmp/log" "$tmp/none"
for log in lab-kill.s2.fs lab-none.c1.app; do zcat ci/tests/data/$log.log.gz | head -c 6000 >"$tmp/log/$log"; done

# FUZZER RUNS SEEDS [OPTION ...]
fuzz() {
	local name=$1 runs=$(($2 * ${FUZZ_RUNS:-1})) seeds=$3
	shift 3
	mkdir "$tmp/found.$name"
	"$fuzzers/${name}_fuzz" -seed=1 -runs=$runs -timeout=30 -rss_limit_mb=2048 -verbosity=1 -print_final_stats=1 -artifact_prefix="$tmp/" \
		"$@" "$tmp/found.$name" "$seeds" >"$tmp/said" 2>&1
	local code=$?
	sed -n "s/^stat::number_of_executed_units: */# $name: inputs /p" "$tmp/said"
	if [ $code -eq 0 ] && [ "$(sed -n 's/^stat::number_of_executed_units: *//p' "$tmp/said")" -ge $runs ]; then
		ok "$name: nothing breaks it"
	else
		not_ok "$name: nothing breaks it" "$(tail -n 40 "$tmp/said"; for f in "$tmp"/crash-* "$tmp"/timeout-* "$tmp"/oom-* "$tmp"/leak-*; do
			[ ! -e "$f" ] || { echo "$f:"; base64 "$f"; }; done)"
	fi
}
fuzz scenario 4000 scenarios -dict=ci/fuzz/lua.dict -max_len=4000
fuzz inventory 4000 ci/fuzz/seeds/inventory -dict=ci/fuzz/lua.dict -max_len=2000
fuzz csv 20000 ci/fuzz/seeds/csv
fuzz import 20000 ci/fuzz/seeds/import -max_len=4000
fuzz fleet 4000 "$tmp/none" -max_len=1000
fuzz log 4000 "$tmp/log"
fuzz ebpf 20000 "$tmp/none" -max_len=1000
fuzz agent 20000 ci/fuzz/seeds/agent
fuzz node 10000 ci/fuzz/seeds/node -max_len=1000
known=$(for f in ci/fuzz/*_fuzz.c; do basename "$f" _fuzz.c; done | sort | xargs)
check "every fuzzer is run" [ "$known" = "$(sed -n 's/^fuzz \([a-z]*\) [0-9].*/\1/p' "$0" | sort | xargs)" ]
done_testing
