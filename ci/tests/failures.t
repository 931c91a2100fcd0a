#!/bin/bash
# ci/failures.py on recorded outputs of failed programs: every way in which cmocka, a sanitizer or a shell test says so. No root.
# ci/tests/output/failed: NAME.txt was printed by a program, NAME.shown is what a reader gets.
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh
command -v python3 >/dev/null || skip_all "there is no python3"
logs=ci/tests/output/failed

# as_shown NAME [STATUS]: what is printed is NAME.shown.
as_shown() { diff -u "$logs/$1.shown" <(ci/failures.py flow/sample_test "$logs/$1.txt" "${2:-1}"); }
check "cmocka: each assertion with its values and line; skips are no failures" as_shown cmocka
check "cmocka: a signal in a check" as_shown crash
check "cmocka: the setup of a group" as_shown group-setup
check "cmocka: the teardown of a group" as_shown group-teardown
check "a program that was aborted: after which check" as_shown abort 134
check "ASan: the report, and our line" as_shown asan
check "UBSan, in the second group of a program; a negative number in decimal" as_shown ubsan
check "a shell test: lines, values, the end of long outputs" as_shown shell
check "a shell test that did not end in time" as_shown shell-cut 124
check "at most three lines for each failed check" bash -c "! cat $logs/*.shown | awk '/^[^ ]/ { n = 0 } ++n > 3' | grep ."

tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT
printf '1..1\nok 1 - x\n# ok - group\n' >"$tmp"
check "a program whose status alone says that it failed" grep -q 'ended with 3, though no check failed' <(ci/failures.py x "$tmp" 3)
: >"$tmp"
check "a program that said nothing" grep -q 'ended early, after no check' <(ci/failures.py x "$tmp" 1)
check "a log that is not there is named" bash -c "ci/failures.py x $tmp.gone 1 2>&1 | grep -F $tmp.gone"
done_testing
