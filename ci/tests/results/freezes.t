#!/bin/bash
# Lines of results/freezes.tsv are well-formed, and each SHA-256 is of the detector's text at the commit that the line names. No root.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
file=results/freezes.tsv
check "the head names five columns" [ "$(head -1 $file)" = $'date\tdetector\tsha256\tcommit\tpurpose' ]
check "each line is well-formed" bash -c "! tail -n +2 $file | grep -vP '^\d{4}-\d\d-\d\d\t[a-z-]+\t[0-9a-f]{64}\t([0-9a-f]{7,40}|-)\t[^\t]+\$'"
check "a line without a commit says why" bash -c "! grep -P '\t-\t' $file | grep -v 'no longer exists'"
whole=$(git rev-parse --is-shallow-repository 2>/dev/null)
while IFS=$'\t' read -r _ detector sha commit _; do
	[ "$commit" != - ] || continue
	if [ "$whole" != false ]; then
		ok "$detector at $commit # SKIP the history is missing or shallow"
		continue
	fi
	text() { git show "$commit:diag/detectors/$detector.lua" | sha256sum | cut -d' ' -f1; }
	check "$detector at $commit is ${sha:0:8}" [ "$(text 2>&1)" = "$sha" ]
done < <(tail -n +2 $file)
done_testing
