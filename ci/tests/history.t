#!/bin/bash
# ci/history.sh: commits that are too large, or without a reason, are refused; moves, data and old commits are not. No root.
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh
command -v git >/dev/null || skip_all "there is no git"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
script=$PWD/ci/history.sh
unset GIT_DIR GIT_WORK_TREE
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.org GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.org

# lines FILE FROM TO: a file of numbered lines, so that no two files are alike.
lines() { mkdir -p "${1%/*}" && seq -f "$1 line %g" "$2" "$3" >"$1"; }
# commit SUBJECT [BODY]: everything that is in the folder.
commit() { git add -A && git commit -q -m "$1" ${2:+-m "$2"}; }
why="The old one could not be measured."
# history WHAT BASE: the script as a part of the repository, in $said and $rc.
history() { said=$(bash ci/history.sh "$1" 2>&1); rc=$?; }
# refused NAME PATTERN: the last commit alone is refused, in one line that matches.
refused() {
	history HEAD~1
	if [ "$rc" = 1 ] && [ "$(grep -c . <<<"$said")" = 1 ] && grep -qE -- "$2" <<<"$said"; then ok "$1"; else not_ok "$1" "ended with $rc: $said"; fi
}
accepted() {
	history HEAD~1
	if [ "$rc" = 0 ]; then ok "$1"; else not_ok "$1" "ended with $rc: $said"; fi
}

mkdir -p "$tmp/new/ci" && cd "$tmp/new" && cp "$script" ci/ && git init -q -b main || exit 1
lines harness/huge.c 1 3000
lines diag/other.c 1 3000
commit "everything at once"
lines harness/a.c 1 50 && commit "harness: fifty lines"
accepted "50 lines need no body"
first=$(git rev-parse HEAD)
lines harness/b.c 1 51 && commit "harness: fifty-one lines"
refused "51 lines do" '^history: [0-9a-f]+ "harness: fifty-one lines" changes 51 lines without a body'
lines harness/c.c 1 51 && commit "harness: with trailers" $'Signed-off-by: t <t@example.org>\nChange-Id: I0123 is no reason'
refused "trailers are no body" 'changes 51 lines without a body'
lines harness/c.c 2 53 && commit "harness: with a reason" "$why"
accepted "51 lines with a body"
lines harness/d.c 1 2000 && commit "harness: as much as may be" "$why"
accepted "2,000 lines of product with a body"
lines faults/d.lua 1 1000 && lines results/e.c 1 1001 && commit "harness: one line more" "$why"
refused "2,001 are too many, in two files, with a body" 'changes 2001 lines of product; at most 2000'
lines harness/d.c 5001 7001 && commit "harness: every line another" "$why"
refused "removed and added lines count once" 'changes 2001 lines of product'
git rm -q harness/huge.c && commit "harness: what is not used goes" "$why"
refused "removed lines count" 'changes 3000 lines of product'
mkdir -p harness/store && git mv diag/other.c harness/store/other.c && commit "store: the other moves"
accepted "a move of 3,000 lines needs no body"
git mv harness/store/other.c harness/store/o.c && seq -f "more %g" 51 >>harness/store/o.c && commit "store: moved and changed"
refused "a move counts with the lines that differ" 'changes 51 lines without'
cp harness/store/o.c harness/store/o2.c && echo end >>harness/store/o.c && commit "store: one from another"
accepted "a copy of a changed file counts with the lines that differ"
for f in results/runs/r/log.json results/big.svg ci/tests/data/x.c ci/tests/output/y.txt ci/fuzz/seeds/f/1 workloads/traces/t.app harness/web/kit/vendor/v.js; do
	lines "$f" 1 3000
done
head -c 9000 /dev/urandom >results/picture.png && commit "results: recorded data"
accepted "recorded data, binary files, foreign code: not by hand"
lines ci/tests/x.t 1 3000 && lines harness/README.md 1 3000 && commit "tests: many, and a page" "$why"
accepted "tests and pages are not product"
lines ci/tests/x2.t 1 51 && commit "tests: without a reason"
refused "but need a reason" 'changes 51 lines without'
lines harness/web/report/page.js 1 2001 && commit "report: a page" "$why"
refused "the code of pages is product" 'changes 2001 lines of product'
echo 1 >x && commit "no area here"
refused "a subject without an area" '"no area here" its subject does not begin with an area'
echo 2 >x && commit "x: $(printf 'ä%.0s' $(seq 70))"
refused "a subject of 73 characters" 'its subject has 73 characters, at most 72'
echo 3 >x && commit "x/y, README: $(printf 'ä%.0s' $(seq 59))"
accepted "72 characters, though more bytes"
git revert --no-edit HEAD >/dev/null
accepted "a revert keeps git's subject"
git checkout -q -b side HEAD~1 && lines side/a.txt 1 3 && commit "side: three lines" && git checkout -q main &&
	git merge -q --no-ff -m "Merge branch 'side'" side
accepted "a merge needs no area"

history "$first"
check "all of them, one line for each offence (not $(grep -c . <<<"$said"))" [ "$rc" = 1 -a "$(grep -c . <<<"$said")" = 10 ]
history HEAD
check "nothing new is fine" [ "$rc" = 0 ]
history "$(printf '0%.0s' {1..40})"
check "a history without the base is skipped, with the reason" [ "$rc" = 0 -a -n "$(grep 'SKIP 0000000000 is not in this history' <<<"$said")" ]
git clone -q --depth 1 "file://$tmp/new" "$tmp/shallow" && cd "$tmp/shallow" && history "$first"
check "a shallow clone too" [ "$rc" = 0 -a -n "$(grep 'SKIP this clone is shallow' <<<"$said")" ]
mkdir -p "$tmp/none/ci" && cp "$script" "$tmp/none/ci/" && cd "$tmp/none" && history "$first"
check "and a folder without git" [ "$rc" = 0 -a -n "$(grep 'SKIP this is not a git repository' <<<"$said")" ]
mkdir -p "$tmp/new/inner/ci" && cp "$script" "$tmp/new/inner/ci/" && cd "$tmp/new/inner" && history "$first"
check "and one in another's repository" [ "$rc" = 0 -a -n "$(grep 'SKIP this folder is part of another repository' <<<"$said")" ]
done_testing
