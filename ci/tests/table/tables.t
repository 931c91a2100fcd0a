#!/bin/bash
# Tables for people: as wide as the terminal, in colour there, with every label in full; several runs side by side and
# added up.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
runs=results/runs
one=$runs/table1-20261121 other=$runs/table1-again-20261122

# on COLUMNS COMMAND...: what it prints on a terminal of that width.
on() {
	local columns=$1
	shift
	script -qec "stty cols $columns; $(printf '%q ' env TERM=xterm "$@")" /dev/null | tr -d '\r'
}
widest() { sed 's/\x1b\[[0-9]*m//g' | awk '{ if (length > n) n = length } END { print n }'; }
if command -v script >/dev/null && [ "$(on 100 echo terminal)" = terminal ]; then
	on 200 "$culprit" table $one >"$tmp/wide"
	check "a wide terminal: all workloads side by side" [ "$(grep -c 'ddw(per_server=1 MiB).*postmark(files=20' "$tmp/wide")" = 2 ]
	check "... in 200 columns" [ "$(widest <"$tmp/wide")" -le 200 ]
	check "... sentences as wide" grep -q '^right server: peer-robust is above .*seeded-random' "$tmp/wide"
	on 120 "$culprit" table $one >"$tmp/middle"
	check "120 columns: three of them" grep -q 'ddw(per_server=1 MiB).*iozonew' "$tmp/middle"
	check "... in 120 columns" [ "$(widest <"$tmp/middle")" -le 120 ]
	on 60 "$culprit" table $one >"$tmp/narrow"
	check "60 columns: one of them at a time" [ "$(sed '1,/^$/d' "$tmp/narrow" | widest)" -le 60 ]
	check "... and every one" [ "$(grep -c 'ddw(per\|ddr(per\|iozonew(\|iozoner(\|postmark(' "$tmp/narrow")" = 10 ]
	check "what is right is green, what is wrong is red" bash -c "
		grep -q \$'\\033\\[32m1.00 \\[.69,1\\]\\033\\[0m' '$tmp/wide' && grep -q \$'\\033\\[31m0.10 \\[0,.45\\]\\033\\[0m' '$tmp/wide'"
	check "NO_COLOR is obeyed" prints_without $'\033' 0 on 120 env NO_COLOR=1 "$culprit" table $one
	check "but for colours and width it is the same table" bash -c "diff <(sed 's/\\x1b\\[[0-9]*m//g' '$tmp/wide' | tr -s ' \\n' '\\n' | sort -u) \
		<('$culprit' table $one | tr -s ' \\n' '\\n' | sort -u)"
else
	ok "a wide terminal # SKIP script (bsdutils) makes no terminal here"
fi
"$culprit" table $one >"$tmp/plain"
check "elsewhere 80 columns" [ "$(widest <"$tmp/plain")" -le 80 ]
check "a table for a file has no colour" lacks $'\033' "$tmp/plain"
check "a long label continues in the next line" grep -A1 -q '^ *postmark(files=20,$' "$tmp/plain"
check "... to its end" grep -q '^ *transactions=50)$' "$tmp/plain"

# Pairs.
check "detectors that judged the same cells are compared cell by cell" bash -c "xargs <'$tmp/plain' |
	grep -q 'of 300 faulty cells that both judged, peer-robust alone is right in 262, peer-threshold alone in 0 (p = 2.7e-79)'"
json() { "$culprit" table "$@" --json | perl -MJSON::PP -0777 -ne "my \$v = decode_json(\$_); $jq"; }
jq='print join " ", map { "$_->{only_detector} $_->{only_other} $_->{right_server}" } grep { $_->{detector} eq "peer-robust" && $_->{other} eq "peer-threshold" } @{$v->{summary}{comparisons}}'
check "... in JSON, too" [ "$(json $one)" = "262 0 above" ]
check "if too few cells distinguish detectors, the number needed is printed" bash -c "'$culprit' table results/corpora/ci | xargs |
	grep -q '20 faulty cells are few: a detector that is right in 0.30 of them, as peer-threshold is here, needs 37 to be distinguished from one that never is (with a probability of 80 %); --repeats makes more'"
check "... and what the controls leave possible" bash -c "'$culprit' table results/corpora/ci | xargs |
	grep -q '8 controls, with a false alarm in 0 of them, leave a rate of up to 0.37 possible (95 %); 72 with none would leave no more than 0.05'"
jq='my $p = $v->{summary}{power}; print "$p->{detector} $p->{faulty} $p->{faulty_needed} $p->{controls} $p->{controls_needed}"'
check "... both in JSON, too" [ "$(json results/corpora/ci)" = "peer-threshold 20 37 8 72" ]
check "a run with enough cells is not called too small" lacks 'are few' "$tmp/plain"

# In words. Cell 11 of matrix: onset at 4.26 s, offset at 16.77 s, indicted at 9 s; cell 15 is the next disk-hog.
"$culprit" table results/corpora/matrix --words >"$tmp/words"
words() { xargs <"$tmp/words" | grep -qF "$1"; }
check "a cell in words: what happened, who was named, when" words "cell 11: s2 was under disk-hog from 0:04 to 0:17 (ddw; throughput 0.26 [0.21,0.32] of the controls): peer-threshold named s2, disk, 4.7 s after the onset cell "
check "... who was not" words "cell 43: s3 was under disk-hog from 0:04 to 0:17 (ddr; throughput 1.05 [1.02,1.09] of the controls): peer-threshold named nobody: a miss cell "
check "... and controls" words "nothing was wrong (ddw): peer-threshold named nobody, which is right cell "
check "every scored cell is there once" [ "$(grep -c '^cell ' "$tmp/words")" = 42 ]
printf 'return { name = "first", summary = "s", diagnose = function(run) return { { metric = "any", indicted = { run.servers[1] }, time_s = 1 } } end }' >"$tmp/first.lua"
mkdir "$tmp/mx" && gunzip -c results/corpora/matrix/run.db.gz >"$tmp/mx/run.db"
"$culprit" rescore "$tmp/mx" --detector "$tmp/first.lua" --save >/dev/null
texts() { sqlite3 "$tmp/mx/run.db" "SELECT group_concat(key || ' ' || (value ->> 'file'), ' ') FROM json_each((SELECT value FROM fact WHERE key = 'detector_texts'))"; }
check "--save replaces the texts with the verdicts: the run names the file that made them" [ "$(texts)" = "$tmp/first.lua sha256:$(sha256sum <"$tmp/first.lua" | cut -d' ' -f1)" ]
"$culprit" table "$tmp/mx" --words >"$tmp/words"
check "a false alarm is called one" grep -q "first named s[1-4]: a false alarm" <(xargs <"$tmp/words")
check "an accusation before the onset, too" grep -q 's before the onset' <(xargs <"$tmp/words")
check "and a healthy server" words "a healthy server is among them"
check "--words goes with no other form" bash -c "'$culprit' table results/corpora/matrix --words --json 2>&1 | grep -q '^culprit table: --words prints sentences'"

# Several runs.
"$culprit" table $one $other >"$tmp/two"
check "two runs stand side by side" grep -q '^ *table1-20261121  *table1-again-20261122$' "$tmp/two"
check "... with each run's cells" bash -c "grep -q '^  table1-20261121  *300 0.99 ' '$tmp/two' && grep -q '^  table1-again-20261122  *60 1.00 ' '$tmp/two'"
check "... and whether they differ" bash -c "xargs <'$tmp/two' |
	grep -q 'peer-threshold, all faults, right server: 35 of 300 in table1-20261121, 11 of 60 in table1-again-20261122: not distinguishable (p = 0.23)'"
check "what differs by more than chance is named" bash -c "'$culprit' table $one $runs/table1-orangefs-20261122 | xargs |
	grep -q 'peer-threshold, all faults, right server: 35 of 300 in table1-20261121, 112 of 150 in table1-orangefs-20261122: they differ'"
jq='print join " ", map { "$_->{first_count}/$_->{first_n} $_->{other_count}/$_->{other_n}" } grep { $_->{detector} eq "peer-robust" && !$_->{fault} && $_->{what} eq "right server" } @{$v->{comparisons}}'
check "... in JSON" [ "$(json $one $other)" = "297/300 60/60" ]
check "Markdown of two runs" bash -c "'$culprit' table $one $other --format markdown | grep -q '^| fault | metric | table1-20261121 n | TP | FP | table1-again-20261122 n |'"

jq='print join " ", map { "$_->{faulty}{n} $_->{controls}{n} $_->{faulty}{right_server}{count}" } grep { $_->{detector} eq "peer-robust" } @{$v->{summary}{detectors}}'
check "--merge adds cells up" [ "$(json --merge $one $other)" = "360 120 357" ]
jq='my $n = 0; $n += $_->{n} + $_->{fp}{count} for @{$v->{scores}}; print $n'
check "... in every row" [ "$(json --merge $one $other)" = $(($(json $one) + $(json $other))) ]
jq='print "$v->{run} $v->{cells}{planned} $v->{cells}{confirmed}"'
check "... and says whose they are" [ "$(json --merge $one $other)" = "table1-20261121 + table1-again-20261122 808 488" ]
jq='print join " ", map { "$_->{cells}" } grep { $_->{detector} eq "peer-robust" && $_->{other} eq "peer-threshold" } @{$v->{summary}{comparisons}}'
check "... and pairs stay pairs" [ "$(json --merge $one $other)" = 360 ]

refuses() { # PATTERN ARGUMENT...
	local want=$1 said
	shift
	said=$("$culprit" table "$@" 2>&1 >/dev/null)
	[ $? = 2 ] && [ "$(wc -l <<<"$said")" = 1 ] && grep -q -- "$want" <<<"$said" || { echo "$said"; return 1; }
}
check "other scenarios do not add up" refuses "the scenario of '$runs/errors-20261121' is not that of '$one'" --merge $one $runs/errors-20261121
check "other detectors neither" refuses "the detectors of" --merge $runs/errors-20261121 $runs/errors-orangefs-directio-20261122
check "one run twice is refused" refuses "'$one' is given twice" $one $one
check "--merge of one run is refused" refuses "at least two runs" --merge $one
check "run times are refused" refuses "measured run times" $one $runs/overhead-20261121
for option in --tap '--junit x' '--against hotdep09-table1' '--by strength' '--write-baseline x' '--cells 1-5'; do
	# shellcheck disable=SC2086 # words
	check "$option of two runs is refused" refuses "${option%% *} is for one run" $one $other $option
done
check "CSV of two runs is refused" refuses "--format csv is for one run" $one $other --format csv

# A tracer that was replaced.
if command -v sqlite3 >/dev/null; then
	cp -r results/runs/errors-20261121 "$tmp/replaced"
	sqlite3 "$tmp/replaced/run.db" "INSERT INTO fact VALUES ('tracer_replaced', 'traced with ptrace in place of ebpf: s1: refused')"
	check "a table says that another tracer was used" bash -c "'$culprit' table '$tmp/replaced' | grep -q '^traced with ptrace in place of ebpf: s1: refused$'"
	jq='print join "|", @{$v->{run}{remarks} || $v->{remarks} || []}'
	check "... in JSON, too" [ "$(json "$tmp/replaced")" = "traced with ptrace in place of ebpf: s1: refused" ]
	"$culprit" report "$tmp/replaced" -o "$tmp/replaced.html" >/dev/null
	check "... and so does a report" grep -q '"tracer_replaced":"traced with ptrace in place of ebpf: s1: refused"' "$tmp/replaced.html"
else
	ok "a table says that another tracer was used # SKIP there is no sqlite3"
fi
done_testing
