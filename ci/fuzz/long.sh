#!/bin/bash
# Each fuzzer for FUZZ_SECONDS (an hour), one after the other; with arguments only those named. 'make fuzz-long' builds them first.
# Inputs that reach something new are kept in OUT/fuzz/corpus, from which the next time begins; inputs that break something in
# OUT/fuzz/finds: mend what they break, and put them into ci/fuzz/seeds/NAME. Ends with a table, and with 1 if anything was found.
#   FUZZ_FIGURES=FILE  appends the figures to it (CSV), for ci/fuzz/page.sh; FUZZ_NOTE="..." says what continued next to
#   FUZZ_KEEP=1     replaces ci/fuzz/corpus/NAME.tar.gz by what covers the same, as far as 64 KB reach, smallest first
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
. ci/fuzz/lib.sh
seconds=${FUZZ_SECONDS:-3600}
built=$PWD/${OUT:-out}/fuzz
corpus=$built/corpus finds=$built/finds
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "ci/fuzz/long.sh: FUZZ_SECONDS is '$seconds'; it takes a number of seconds" >&2; exit 2; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$finds"
only=" $* "
for name in "$@"; do
	grep -q "^$name " ci/fuzz/fuzzers || { echo "ci/fuzz/long.sh: there is no fuzzer '$name' in ci/fuzz/fuzzers" >&2; exit 2; }
done

stat_of() { sed -n "s/^stat::$1: *//p" "$tmp/said" | tail -1; }
found_of() { find "$finds" -name "$1-*" | wc -l; }

# One fuzzer: begins again after a find, until its time has ended.
run() {
	local name=$1 seeds=$3 begun=$SECONDS left executed=0 units code cov=0 before
	shift 3
	[[ $only == "  " || $only == *" $name "* ]] || return 0
	[[ -x $built/${name}_fuzz ]] || { echo "ci/fuzz/long.sh: there is no ${name}_fuzz: run 'make fuzz'" >&2; exit 2; }
	mkdir -p "$corpus/$name"
	mapfile -t folders < <(seeds_of "$name" "$seeds" "$tmp/$name")
	before=$(found_of "$name")
	while left=$((seconds - (SECONDS - begun))) && [[ $left -gt 0 ]]; do
		"$built/${name}_fuzz" -max_total_time=$left -timeout=30 -rss_limit_mb=2048 -verbosity=1 -print_final_stats=1 \
			-artifact_prefix="$finds/$name-" "$@" "$corpus/$name" "${folders[@]}" >"$tmp/said" 2>&1
		code=$?
		units=$(stat_of number_of_executed_units)
		executed=$((executed + ${units:-0}))
		cov=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$tmp/said" | tail -1)
		[[ $code -ne 0 ]] || break
		tail -n 30 "$tmp/said"
		# Nothing was executed: it does not start at all.
		[[ ${units:-0} -gt 0 ]] || { found_more=1; break; }
	done
	keep "$name" "$@"
	printf '%s\t%d\t%d\t%s\t%d\t%d\t%d\n' "$name" $((SECONDS - begun)) "$executed" "${cov:-?}" \
		"$(find "$tmp/least.$name" -type f | wc -l)" "$(find "$tmp/least.$name" -type f -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }')" \
		$(($(found_of "$name") - before)) | tee -a "$tmp/table"
}

# What covers the same as the corpus, in $tmp/least.NAME.
keep() {
	local name=$1 total=0 size file
	shift
	mkdir "$tmp/least.$name"
	"$built/${name}_fuzz" -merge=1 -timeout=30 -rss_limit_mb=2048 -verbosity=0 "$@" "$tmp/least.$name" "$corpus/$name" >"$tmp/said" 2>&1 ||
		tail -n 20 "$tmp/said"
	rm -rf "${corpus:?}/$name" && cp -r "$tmp/least.$name" "$corpus/$name"
	[[ -n ${FUZZ_KEEP:-} ]] || return 0
	while read -r size file; do
		total=$((total + size))
		[[ $total -le 65536 ]] || break
		echo "$file"
	done < <(find "$tmp/least.$name" -type f -printf '%s %f\n' | sort -n) >"$tmp/chosen"
	mkdir -p ci/fuzz/corpus
	tar -C "$tmp/least.$name" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 -cf - -T "$tmp/chosen" |
		gzip -9n >"ci/fuzz/corpus/$name.tar.gz"
}

figures() {
	local cpu build note=${FUZZ_NOTE:-}
	cpu="$(nproc) x $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1 | tr -d ',')"
	build=$(git describe --always --dirty --exclude='*')
	[[ -s $1 ]] || echo date,build,machine,note,fuzzer,seconds,executions,edges,inputs,bytes,finds >"$1" || return
	awk -F'\t' -v OFS=, -v head="$(date -u +%Y-%m-%d),$build,$cpu,${note//,/;}" '{ $1 = $1; print head, $0 }' "$tmp/table" >>"$1"
}

found_more=0
printf 'fuzzer\tseconds\texecutions\tedges\tinputs\tbytes\tfinds\n'
fuzzers run
[[ -z ${FUZZ_FIGURES:-} ]] || figures "$FUZZ_FIGURES"
found=$(awk -F'\t' '{ n += $7 } END { print n + 0 }' "$tmp/table")
[[ $found -eq 0 ]] || echo "$found inputs that break something are in $finds"
[[ $found -eq 0 && $found_more -eq 0 ]]
