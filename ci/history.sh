#!/bin/bash
# Checks the new commits: a commit does one thing, and its message says why.
#
#   ci/history.sh [BASE]    the commits after BASE; ends with 1 if one must be changed
#
# A commit is refused if
#   - it changes more than 2,000 lines of product by hand;
#   - it changes more than 50 lines of anything by hand, and its message has no body;
#   - its subject has more than 72 characters or does not name an area ("flow: bind a receive to two sends").
# A changed line counts once: the size is the larger of the lines added and the lines removed. Moves and copies that git finds
# (-M -C) count with the lines that differ. Recorded data and foreign code do not count. Merges are not examined.
set -euo pipefail
cd "$(dirname "$0")/.."
# Commits up to this one are older than the rules. A maintainer who accepts an offence that was published moves it forward.
base=${1:-3b868430acb4d3e23f81f9015985cfc93520d23b}

skip() {
	echo "history: SKIP $1"
	exit 0
}
top=$(git rev-parse --show-toplevel 2>/dev/null) || skip "this is not a git repository"
[[ $top -ef . ]] || skip "this folder is part of another repository"
if ! git merge-base --is-ancestor "$base" HEAD 2>/dev/null; then
	[[ $(git rev-parse --is-shallow-repository) = false ]] || skip "this clone is shallow and ends before ${base:0:10}: git fetch --unshallow"
	skip "${base:0:10} is not in this history"
fi

git -c core.quotePath=off log --no-merges --reverse -M -C --numstat --format='%x01%h%x02%s%x02%b%x02' "$base..HEAD" |
	LC_ALL=C awk -v base="${base:0:10}" '
	BEGIN { RS = "\001"; FS = "\002" }
	NR == 1 { next }
	{
		commits++
		size($4)
		if (product > 2000)
			refuse("changes " product " lines of product; at most 2000: split it, moves apart from changes")
		if (hand > 50 && !body($3))
			refuse("changes " hand " lines without a body that says why: git rebase -i, reword")
		if ($2 ~ /^Revert "/) next                         # as git writes it
		characters = $2
		gsub(/[\200-\277]/, "", characters)              # all but the first byte of each character
		if (length(characters) > 72)
			refuse("its subject has " length(characters) " characters, at most 72: git rebase -i, reword")
		if ($2 !~ /^[A-Za-z0-9_.\/*, -]+: [^ ]/)
			refuse("its subject does not begin with an area, as \"flow: ...\": git rebase -i, reword")
	}
	END {
		if (!bad) printf "history: %d commits after %s, none too large or without a reason\n", commits, base
		exit bad
	}

	function refuse(why) { printf "history: %s \"%s\" %s\n", $1, $2, why; bad = 1 }

	# Some words that are not a trailer.
	function body(text,  lines, n, i, words, rest) {
		n = split(text, lines, "\n")
		for (i = 1; i <= n; i++)
			if (lines[i] !~ /^[A-Z][A-Za-z-]*-(by|Id): /) words += split(lines[i], rest, " ")
		return words >= 3
	}

	# Sets "product" and "hand" from lines of numstat: ADDED REMOVED PATH, "-" for a binary file.
	function size(stat,  lines, part, n, i, path, added, removed, more, less) {
		n = split(stat, lines, "\n")
		for (i = 1; i <= n; i++) {
			if (split(lines[i], part, "\t") != 3 || part[1] == "-") continue
			path = part[3]
			if (sub(/\{[^{}]* => /, "", path)) { sub(/\}/, "", path); gsub(/\/\//, "/", path) }
			else sub(/^.* => /, "", path)
			if (recorded(path)) continue
			more += part[1]; less += part[2]
			if (is_product(path)) { added += part[1]; removed += part[2] }
		}
		product = 0 + (added > removed ? added : removed)
		hand = 0 + (more > less ? more : less)
	}
	function is_code(path) { return path ~ /\.(c|h|js|css|html|view|py|sh)$/ }
	function recorded(path) {
		return path ~ /^ci\/tests\/(data|output)\// || path ~ /^ci\/fuzz\/seeds\// || path ~ /^workloads\/traces\// || path ~ /\/vendor\// ||
		       path ~ /\.(svg|csv|tsv)$/ ||
		       path ~ /^results\// && path !~ /\.md$/ && path !~ /^results\/schemas\// && !is_code(path)
	}
	function is_product(path) {
		return path ~ /^(harness|faults|workloads|diag|scenarios)\// && path !~ /\.md$/ || path ~ /^results\// && is_code(path)
	}'
