#!/bin/bash
# Lines of results/freezes.tsv are well-formed, and each SHA-256 is of the detector's text at the commit that the line names. Each
# committed run names detector texts that are here today or listed there, and pages cite commits that exist. No root.
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

# What judged each committed run: today's text, or a listed one.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
runs=0 texts=0 unknown=
for run in results/runs/*; do
	db=$run/run.db
	[ -f "$db" ] || { gzip -dc "$db.gz" >"$tmp/run.db"; db=$tmp/run.db; }
	runs=$((runs + 1))
	while IFS='|' read -r name sha; do
		texts=$((texts + 1))
		[ "$(sha256sum <"diag/detectors/$name.lua" | cut -d' ' -f1)" = "$sha" ] ||
			grep -q "$(printf '\t%s\t%s\t' "$name" "$sha")" $file || unknown="$unknown $name ${sha:0:8} (${run##*/})"
	done < <(sqlite3 "$db" "SELECT each.key, replace(each.value->>'file', 'sha256:', '') FROM fact, json_each(fact.value) each WHERE fact.key = 'detector_texts'")
done
check "committed runs name the texts of their detectors ($texts in $runs runs)" [ $texts -gt $runs ]
check "each is today's, or listed in $file${unknown:+: not$unknown}" [ -z "$unknown" ]

# Pages cite commits by seven hexadecimal digits.
if [ "$whole" != false ]; then
	ok "pages cite commits that exist # SKIP the history is missing or shallow"
else
	cited=$(grep -ohP '(?<![\w.:/-])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7}(?![\w.:/-])' README.md results/*.md | sort -u)
	missing=$(for commit in $cited; do
		git cat-file -e "$commit^{commit}" 2>/dev/null || grep -qE "no commit $commit|commit $commit nor|nor $commit" results/*.md || echo "$commit"
	done | xargs)
	check "pages cite commits that exist, or say that they do not${missing:+: not $missing}" [ -z "$missing" ]
	check "and they cite some" [ "$(wc -w <<<"$cited")" -gt 10 ]
fi
done_testing
