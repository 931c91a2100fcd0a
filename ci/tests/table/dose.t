#!/bin/bash
# 'culprit table --by strength' of a run: a recorded one whose faults are given strengths. No root, no cluster.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The run's disk hogs of the first two repeats become those of a weak one.
mkdir "$tmp/run"
zcat results/corpora/ci/run.db.gz >"$tmp/run/run.db"
sqlite3 "$tmp/run/run.db" "
	UPDATE cell SET fault = 'disk-hog(share=25%)' WHERE fault = 'disk-hog' AND repeat <= 2;
	INSERT OR REPLACE INTO fact VALUES ('inputs', '{\"fault disk-hog\": {\"params\": {\"block\": 268435456, \"share\": 100}},
		\"fault disk-hog: file\": \"sha256:0\", \"fault disk-hog(share=25%)\": {\"params\": {\"block\": 268435456, \"share\": 25}}}')"
"$culprit" rescore "$tmp/run" --detector peer-threshold --by strength >"$tmp/text" 2>"$tmp/err"
check "it is printed" [ $? = 0 ]
check "the fault by its parameter" grep -qx 'disk-hog, share' "$tmp/text"
check "one row per strength, weak to strong" diff <(grep -o '^  [0-9]*%' "$tmp/text" | head -n 2) <(printf '  25%%\n  100%%\n')
check "faults with one strength have no sweep" lacks '^receive-pktloss' "$tmp/text"
check "the counts are the run's" [ "$("$culprit" rescore "$tmp/run" --detector peer-threshold --by strength --json |
	perl -MJSON::PP -0777 -ne 'my @s = grep { $_->{detector} eq "peer-threshold" } @{decode_json($_)->{sweeps}};
		print scalar @s, map { " $_->{scores}{all}{n}" } @{$s[0]{strengths}}')" = "1 4 4" ]
check "a run without strengths says so" bash -c "'$culprit' table results/corpora/ci --by strength 2>&1 | grep -q 'several strengths'"
"$culprit" table results/corpora/ci --by strength >"$tmp/none" 2>/dev/null
check "and ends with 2, nothing printed" [ "$? $(stat -c %s "$tmp/none")" = "2 0" ]
"$culprit" table results/corpora/ci --by day 2>/dev/null
check "--by accepts nothing else" [ $? = 2 ]
for level in 0 1.5 x; do
	"$culprit" table results/corpora/ci --by strength --level $level 2>/dev/null
	check "no level is $level" [ $? = 2 ]
done
done_testing
