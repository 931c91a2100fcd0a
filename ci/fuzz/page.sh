#!/bin/bash
# Prints the page of what was fuzzed: ci/fuzz/page.sh FOLDER >results/fuzz-DATE.md (FOLDER holds figures.csv, to which
# FUZZ_FIGURES=... ci/fuzz/long.sh appends, and may hold notes.md, the page's last section).
set -euo pipefail
[[ $# -eq 1 ]] || { echo "usage: ci/fuzz/page.sh FOLDER" >&2; exit 2; }
figures=$1/figures.csv
[[ -r $figures ]] || { echo "ci/fuzz/page.sh: cannot read '$figures'" >&2; exit 2; }
awk -F, -v file="$figures" '
	function bad(why) { printf "%s:%d: %s\n", file, NR, why >"/dev/stderr"; failed = 1; exit 2 }
	NR == 1 { if ($0 != "date,build,machine,note,fuzzer,seconds,executions,edges,inputs,bytes,finds") bad("its first line names other columns"); next }
	NF != 11 { bad("a row of 11 columns is expected") }
	{
		for (i = 6; i <= 11; i++) if ($i !~ /^[0-9]+$/ && !(i == 8 && $i == "?")) bad("\"" $i "\" is no number")
		name = $5; sitting = $1 "," $2 "," $3 "," $4
		if (!(sitting in at)) { at[sitting] = ++sittings; said[sittings] = sitting }
		if (!(name in seconds)) names[++n] = name
		seconds[name] += $6; executions[name] += $7; edges[name] = $8; inputs[name] = $9; bytes[name] = $10; finds[name] += $11
		spent[at[sitting]] += $6; done[at[sitting]] += $7; found[at[sitting]] += $11
		last = $1; t += $6; e += $7; f += $11
	}
	END {
		if (failed) exit 2
		printf "# Fuzzers, %s\n\n", last
		print "Each fuzzer of `ci/fuzz`, one after the other, under ASan and UBSan (clang). `make fuzz-long` gives each an hour; sittings here were"
		print "shorter and begin from the corpus of the one before. Coverage is in edges, of the last sitting; the corpus is what is left of it after"
		print "minimising, kept in `ci/fuzz/corpus` as far as 64 KB each reach. The figures are in `results/fuzz`; this page is the output of"
		print "`ci/fuzz/page.sh`.\n"
		print "| sitting | build | machine | beside | time (s) | executions | finds |\n|---|---|---|---|---:|---:|---:|"
		for (i = 1; i <= sittings; i++) {
			split(said[i], s, ",")
			printf "| %s | %s | %s | %s | %d | %d | %d |\n", s[1], s[2], s[3], s[4], spent[i], done[i], found[i]
		}
		print "\n| fuzzer | time (s) | executions | edges | corpus (inputs) | corpus (bytes) | finds |\n|---|---:|---:|---:|---:|---:|---:|"
		for (i = 1; i <= n; i++) {
			k = names[i]
			printf "| %s | %d | %d | %s | %d | %d | %d |\n", k, seconds[k], executions[k], edges[k], inputs[k], bytes[k], finds[k]
		}
		printf "| all | %d | %d | | | | %d |\n", t, e, f
	}' "$figures"
[[ ! -r $1/notes.md ]] || { echo; cat "$1/notes.md"; }
