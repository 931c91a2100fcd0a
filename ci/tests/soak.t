#!/bin/bash
# The pages of the soak and of the fuzzers are made of their figures, and say which row is bad; the soak's settings are checked
# before anything is begun.
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh
command -v python3 >/dev/null || skip_all "there is no python3"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

refused() { # NAME SAID COMMAND ...: ends with 2 and says so
	local name=$1 wanted=$2 said rc
	shift 2
	said=$("$@" 2>&1)
	rc=$?
	if [ $rc -eq 2 ] && grep -q -- "$wanted" <<<"$said"; then ok "$name"; else not_ok "$name" "exit code $rc: $said"; fi
}
page() { ci/soak/page.py 2026-11-23 "$tmp" >"$tmp/page"; }

cat >"$tmp/kills.csv" <<'C'
seed,run,kill,what,node,event,delay_ms,fault,on_victim,held,clean_s,outcome,quarantined
7,1,1,agent,s1,inject,10,hang,1,1,0.50,clean,0
7,1,2,agent,s2,onset,20,kill,1,1,2.25,clean,0
7,1,3,"agent, guard and standby",s2,onset,20,kill,1,1,,mended,0
7,2,4,network,s3,undo,20,err-space,1,1,,mended,1
8,1,1,guard,c1,begin,700,none,0,0,,left,0
8,1,2,guard,c1,begin,9,none,0,0,6.10,late,0
C
printf 'seed,run,cells,once,given_up,kills\n7,1,18,1,0,3\n7,2,18,0,2,1\n' >"$tmp/runs.csv"
check "the page is made" page
check "kinds of death in a row each" grep -qx '| agent | 2 | 2 | 2 | 0 | 2.2 | 0 | 0 | 0 |' "$tmp/page"
check "that need a contact" grep -qx '| agent, guard and standby | 1 | 1 | 0 | 0 | - | 1 | 0 | 0 |' "$tmp/page"
check "that are quarantined" grep -qx '| network | 1 | 1 | 0 | 0 | - | 1 | 1 | 0 |' "$tmp/page"
check "that are late, or leave something" grep -qx '| guard | 2 | 0 | 0 | 1 | 6.1 | 0 | 0 | 1 |' "$tmp/page"
check "with their sum, and the faults too" [ "$(grep -cx '| \*\*all\*\* | 6 | 4 | 2 | 1 | 6.1 | 2 | 1 | 1 |' "$tmp/page")" = 2 ]
check "the limit of what is left is exact" grep -q '1 of 6; at 95 % confidence at most 58.2 % of kills' "$tmp/page"
check "the runs without a cell twice" grep -q 'completed: 2, of them without .*: 1\. Cells:$' "$tmp/page"
check "the cells of the runs that were completed" grep -q '^36, of them given up, .*: 2\.$' "$tmp/page"
check "the seeds" grep -q '^Seeds 7, 8;' "$tmp/page"

sed -i '3s/clean/clear/' "$tmp/kills.csv"
refused "an unknown outcome is refused, with its line" 'kills.csv:3: .*agent, clear' page
sed -i '3s/,0$//' "$tmp/kills.csv"
refused "a short row" 'kills.csv:3: a row of 13 columns' page
sed -i '1s/what/who/' "$tmp/kills.csv"
refused "a missing column" "kills.csv: there is no column 'what'" page
rm "$tmp/runs.csv" && sed -i '1s/who/what/; 3d' "$tmp/kills.csv"
refused "a missing file" "cannot read '.*runs.csv'" page
for page in results/soak-*.md; do
	date=$(basename "$page" .md)
	check "$page is that of its figures" diff <(ci/soak/page.py "${date#soak-}" results/soak | tail -n +3) <(tail -n +3 "$page")
done
for page in results/fuzz-*.md; do
	check "$page is that of its figures" diff <(ci/fuzz/page.sh results/fuzz) "$page"
done
cp results/fuzz/figures.csv "$tmp"
sed -i '3s/,[^,]*$/,none/' "$tmp/figures.csv"
refused "figures of fuzzers that are no numbers, with their line" 'figures.csv:3: "none" is no number' ci/fuzz/page.sh "$tmp"
sed -i '3d; 4s/,[^,]*$//' "$tmp/figures.csv"
refused "... or too few" 'figures.csv:3: a row of 11 columns' ci/fuzz/page.sh "$tmp"
refused "a number of kills that is none" 'SOAK_KILLS must be a whole number' env SOAK_KILLS=many ci/soak/kills.py
done_testing
