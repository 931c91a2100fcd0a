#!/bin/bash
# The workloads that run real programs, on a lab: again and again in a cell with a length, and once to their end under
# strace and sysstat. What they report is kept with the run; nothing is left.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/lab_lib.sh
for program in iozone postmark sqlite3 strace sar; do command -v $program >/dev/null || skip_all "there is no $program"; done
tmp=$(mktemp -d)
trap 'down >/dev/null 2>&1; rm -rf "$tmp"' EXIT
workloads='{ "iozonew", file = "128KiB", record = "64KiB" }, { "iozoner", file = "128KiB", record = "64KiB" },
	{ "postmark", transactions = 10, files = 8 }'
run() { "$culprit" run --quiet --inventory "$dir/inventory.lua" -o "$tmp/$1" "$tmp/$1.lua" 2>&1; }
result() { # RUN WORKLOAD CONDITION: it holds for every client's result, in every cell
	sqlite3 "$tmp/$1/run.db" "SELECT count(*), sum($3) FROM attempt, json_each(attempt.detail, '$.results') AS r
		WHERE outcome = 'confirmed' AND cell IN (SELECT number FROM cell WHERE workload LIKE '$2%')"
}
lingering() { inside c1 sh -c 'ls -A /mnt/fs; ps -e -o comm=' | grep -E 'iozone|postmark|strace|sadc|fixed|once'; }
number() { echo "json_extract(r.value, '\$.$1')"; }

check "a lab" up
cat >"$tmp/fixed.lua" <<L
return { name = "fixed", workloads = { $workloads }, faults = { "none" }, detectors = { "always-healthy" },
         phases = { before = "1s", fault = "6s", after = "1s" } }
L
check "a run with cells of a length" run fixed
is "iozone writes, pass after pass" "$(result fixed iozonew "$(number bytes) = 2 * 131072 * $(number passes) AND $(number passes) >= 0")" "2|2"
is "iozone reads" "$(result fixed iozoner "$(number bytes) = 2 * 131072 * $(number passes) AND $(number passes) >= 0")" "2|2"
is "postmark begins anew" "$(result fixed postmark "$(number passes) >= 0 AND $(number errors) = 0")" "2|2"
is "nothing is left" "$(lingering)" ""

cat >"$tmp/once.lua" <<L
return { name = "once", measure = "runtime", tracers = { "none", { "strace", workloads = { "iozoner" } }, { "sysstat", workloads = { "postmark" } } },
         workloads = { $workloads }, repeats = 1, limit = "2min" }
L
check "a run with cells that end with the work" run once
is "one pass of iozone's writing" "$(result once iozonew "$(number passes) = 1 AND $(number write_bytes_per_second) > 0")" "2|2"
is "one of its reading" "$(result once iozoner "$(number passes) = 1 AND $(number reread_bytes_per_second) > 0")" "4|4"
is "one of postmark, files made and removed" "$(result once postmark "$(number passes) = 1 AND $(number created_files) = $(number deleted_files)
	AND $(number created_files) >= 8")" "4|4"
is "traces of strace and sysstat are whole" "$(sqlite3 "$tmp/once/run.db" "SELECT count(*), sum(json_extract(r.value, '$.whole')),
	sum(json_extract(r.value, '$.records') IS NULL) FROM attempt, json_each(attempt.detail, '$.traces') AS r")" "10|10|10"
is "nothing is left" "$(lingering)" ""
done_testing
