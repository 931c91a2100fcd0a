#!/bin/bash
# scenarios/TUTORIAL.md as a reader follows it: every command runs in one shell and in its order, in a home of the test's own, and every Lua file
# is the page's. What differs is where the program is installed and which lab is up. Key lines of what the page shows are those that
# the commands print here; figures may differ.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/lab_lib.sh
command -v cc >/dev/null || skip_all "there is no compiler"
page=$PWD/scenarios/TUTORIAL.md
tmp=$(mktemp -d)
trap '"$culprit" lab down --dir "$dir" >/dev/null 2>&1; rm -rf "$tmp"' EXIT
mkdir "$tmp/home" "$tmp/at"
cat >"$tmp/config.lua" <<L
return { ["lab up"] = { dir = "$dir", subnet = "$subnet" }, ["lab down"] = { dir = "$dir" }, ["lab status"] = { dir = "$dir" },
	run = { inventory = "$dir/inventory.lua" } }
L

# A shell script of all that PAGE says. A fence of sh is a step: its output goes to said.N, its exit code to code.N. A fence of lua is
# written to the file that its first line names.
script() { # PAGE
	awk '
	$0 == "```" && on { print on == "sh" ? "} </dev/null >\"$at/said." n "\" 2>&1\necho $? >\"$at/code." n "\"" : "END_OF_FILE"; on = ""; next }
	$0 == "```sh" { on = "sh"; n++; print "{"; next }
	$0 == "```lua" { on = "lua"; getline; sub(/:$/, "", $2); print "cat >" $2 " <<\"END_OF_FILE\"" }
	on' "$1"
}
# What PAGE shows as the output of step N.
shown() { # PAGE N
	awk -v want="$2" '$0 == "```" { on = 0 } on; $0 == "```sh" { n++ } $0 == "```text" { on = n == want }' "$1"
}
both() { # NAME N PATTERN: a line of what the page shows for step N matches, and one of what the step printed
	check "$1" bash -c 'grep -E -- "$3" <<<"$1" && grep -E -- "$3" "$2"' - "$(shown "$page" "$2")" "$tmp/at/said.$2" "$3"
}

script "$page" >"$tmp/script"
steps=$(grep -c '^```sh$' "$page")
check "the page has commands, files and outputs" [ "$steps $(grep -c '^```lua$' "$page") $(grep -c '^```text$' "$page")" = "9 3 6" ]
check "it can be read to its end: 200 lines" [ "$(wc -l <"$page")" -le 200 ]
check "README and the scenarios' page lead to it" bash -c 'grep -q scenarios/TUTORIAL.md README.md && grep -q "(TUTORIAL.md)" scenarios/README.md'
check "its pictures are there" bash -c 'ls -- $(sed -n "s/^!.*(\.\.\/\(.*\.png\))$/\1/p" "$1") && [ "$(grep -c ^! "$1")" = 2 ]' - "$page"

at=$tmp/at HOME=$tmp/home PREFIX=$tmp/prefix PATH=$tmp/prefix/bin:$PATH CULPRIT_CONFIG=$tmp/config.lua OUT=${OUT:-out} \
	timeout 900 bash "$tmp/script" >"$tmp/said" 2>&1
is "a shell runs it to its end" "$? $(cat "$tmp/said")" "0 "
for ((n = 1; n <= steps; n++)); do
	is "step $n ends with 0" "$(cat "$tmp/at/code.$n" 2>&1)" 0
	[ "$(cat "$tmp/at/code.$n" 2>&1)" = 0 ] || sed 's/^/# /' "$tmp/at/said.$n"
done
cd "$tmp/home/tutorial" || exit 1

both "the lab is up" 1 '^the lab is up: glusterfs, 4 servers, 2 clients'
both "the first run's fault is confirmed" 2 '^\[[12]/2\] cell [0-9]+ ddw\(records=4\) x disk-hog on s1: confirmed'
both "so is its control" 2 '^\[[12]/2\] cell [0-9]+ ddw\(records=4\) x none: confirmed'
both "the table has peer-robust" 2 '^peer-robust  .*\[.*\]'
both "and null detectors" 2 '^  always-same  .*\[.*\]'
both "too few cells are called too few" 2 '^1 faulty cells are few'
check "the report is one page" grep -q '<html' first.html
both "the reader's fault is confirmed" 5 '^\[[1-4]/4\] cell [0-9]+ ddw\(records=4\) x commits on s1: confirmed'
is "in both cells" "$(grep -c '^\[./4\] cell .* x commits on s1: confirmed' "$tmp/at/said.5")" 2
both "its evidence is bytes written" 5 '\{"s1":\{"write_bytes":[0-9]+\}\} +\{"s1":\{"write_bytes":[0-9]+\}\}'
both "the table has the row of the reader's detector" 6 '^small-writes  .*\[.*\]'
both "next to peer-robust's" 6 '^peer-robust  .*\[.*\]'
both "next to those of null detectors" 6 '^  seeded-random  .*\[.*\]'
both "its evidence is what it returned" 7 '^ +severity: \{"s1": '
# The corpus and the detector are fixed, so are their scores.
first_table() { sed -E '/^(null detectors|\.\.\.)$/,$d'; }
is "the scores on recorded cells are the page's" "$(first_table <"$tmp/at/said.8")" "$(shown "$page" 8 | first_table)"
check "... which are some" grep -q '^small-writes(least=40)$' "$tmp/at/said.8"
check "the second report has the reader's detector" grep -q small-writes mine.html
check "the lab leaves nothing" clean
done_testing
