#!/bin/bash
# What the rule of 'culprit slow' says of made-up cells (ci/tests/slow/slow_rule_test.c), as a table.
cd "$(dirname "$0")/../.." || exit 1
echo '| made-up cells | right | a healthy server named |'
echo '|---|--:|--:|'
"${OUT:-out}/tests/slow/slow_rule_test" |
	sed -n 's/^# \(.*\): of \([0-9]*\) cells \([0-9]*\) right, \([0-9]*\) with.*/| \1 | \3 of \2 | \4 |/p'
