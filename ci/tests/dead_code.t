#!/bin/bash
# No function of the product is without a caller. Checked in the built objects: a global function must be used by another object, of the
# product or of the tests, or in its own source. No root.
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh
command -v nm >/dev/null || skip_all "there is no nm"
out=${OUT:-out}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
find "$out"/diag "$out"/faults "$out"/harness -name '*.o' >"$tmp/objects"
check "objects are built" [ "$(wc -l <"$tmp/objects")" -gt 300 ]
xargs nm -A --undefined-only <"$tmp/objects" | awk '{ print $NF }' | sort -u >"$tmp/used"
xargs nm -A --defined-only <"$tmp/objects" | awk '$(NF - 1) == "T" { sub(/:.*/, "", $1); print $NF, $1 }' |
	awk 'FNR == NR { used[$1]; next } !($1 in used) && $1 != "main"' "$tmp/used" - >"$tmp/unused"
check "most functions are used by other objects" [ "$(wc -l <"$tmp/unused")" -lt 300 ]
# uses NAME OBJECT: its source has the name more than once, or a test has it.
uses() {
	local source=${2#"$out"/}
	source=${source%.o}.c
	[ ! -f "$source" ] || [ "$(grep -cw -- "$1" "$source")" -gt 1 ] || grep -rqw --include='*.[ch]' -- "$1" ci/tests ci/bench ci/fuzz
}
dead=$(while read -r name object; do uses "$name" "$object" || echo "$name (${object#"$out"/})"; done <"$tmp/unused" | xargs)
check "each of the others has a caller${dead:+: not $dead}" [ -z "$dead" ]
done_testing
