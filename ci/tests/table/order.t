#!/bin/bash
# Tables and tests of two runs of one scenario can be put side by side by diff: rows, columns and names follow the scenario,
# not the plan, whose order and victims are drawn from a seed.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
command -v sqlite3 >/dev/null || skip_all "no sqlite3"
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The same run, as if its plan had been drawn the other way round, with other victims.
mkdir "$tmp/a" "$tmp/b"
gunzip -c results/runs/errors-orangefs-directio-20261122/run.db.gz >"$tmp/a/run.db"
cp "$tmp/a/run.db" "$tmp/b/run.db"
check "the plan is turned round" sqlite3 "$tmp/b/run.db" "
	UPDATE cell SET number = -number;
	UPDATE attempt SET cell = -cell;
	UPDATE cell SET number = number + 1000;
	UPDATE attempt SET cell = cell + 1000"
cells() { sqlite3 "$1/run.db" "SELECT group_concat(fault) FROM (SELECT fault FROM cell ORDER BY number)"; }
check "the second plan has another order" [ "$(cells "$tmp/a")" != "$(cells "$tmp/b")" ]
for format in text markdown csv; do
	check "$format: the tables are the same" bash -c "diff <('$culprit' table '$tmp/a' --format $format | grep -v '^run ') <('$culprit' table '$tmp/b' --format $format | grep -v '^run ')"
done
faults() { "$culprit" table "$1" --format csv | awk -F, 'NR > 1 && !seen[$2]++ { print $2 }' | xargs; }
check "older runs: faults in the order of the scenario's text" [ "$(faults "$tmp/a")" = \
	"none err-inodes(spare=4) err-files err-remount err-space(size=24 MiB) err-fsize(limit=2 MiB) kill hang" ]
sqlite3 "$tmp/b/run.db" "UPDATE fact SET value = json_set(value, '\$.faults', json('[\"none\", \"hang\", \"kill\", \"err-files\"]')) WHERE key = 'axes'"
check "newer runs: in the order that the run records, others after them" [ "$(faults "$tmp/b" | cut -d' ' -f1-6)" = \
	"none hang kill err-files err-inodes(spare=4) err-remount" ]

names() { "$culprit" table "$1" --tap | grep '^\(not \)\?ok' | sed 's/^not //'; }
gunzip -c results/runs/errors-orangefs-directio-20261122/run.db.gz >"$tmp/b/run.db"
sqlite3 "$tmp/b/run.db" "UPDATE cell SET victims = '[\"s9\"]' WHERE victims IS NOT NULL AND victims <> 'null'"
check "TAP: names and numbers do not depend on plan and victims" bash -c "diff <('$culprit' table '$tmp/a' --tap | grep -o ' - .*' | sed 's/ # TODO.*//') \
	<('$culprit' table '$tmp/b' --tap | grep -o ' - .*' | sed 's/ # TODO.*//')"
check "TAP: no name twice" [ -z "$(names "$tmp/a" | sed 's/ok [0-9]* - //' | sort | uniq -d)" ]
check "TAP: who was guilty and what was said stand below" grep -q '^# cell [0-9]*, guilty s[0-9]*: said ' <("$culprit" table "$tmp/a" --tap)
junit() { "$culprit" table "$1" --junit "$tmp/junit" >/dev/null; grep -o '<testsuite [^>]*\|classname="[^"]*" name="[^"]*"' "$tmp/junit"; }
check "JUnit: the suite is the scenario, its tests have the same names" [ "$(junit "$tmp/a")" = "$(junit "$tmp/b")" ]
check "JUnit: the run is a property" grep -q '<property name="run" value="b"/>' "$tmp/junit"
done_testing
