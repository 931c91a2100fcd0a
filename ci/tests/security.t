#!/bin/bash
# harness/SECURITY.md: every promise names a test, and every test that it names exists. No root, no build.
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh
page=${PAGE:-harness/SECURITY.md}

# has FILE NAME: the test program runs a test of that name, or the shell test checks something called so.
has() {
	case $1 in
	*.c) grep -qE "(cmocka_unit_test|WIRED|RUN|TEST)[a-z_]*\($2[,)]" "$1" ;;
	fuzz.t | */fuzz.t) grep -qE "^${2%:} [0-9]" ci/fuzz/fuzzers ;;
	*) grep -F -- "\"$2\"" "$1" | grep -qE '(^|[[:space:];])(check|ok|is|says|damaged) "' ;;
	esac
}
# wrong FILE...: a line for each promise without a test, and each test that does not exist.
wrong() {
	local promise tests test file name
	while IFS='|' read -r _ promise tests _; do
		[ "$promise" != " promise " ] && [[ $promise != ---* ]] || continue
		grep -q '`' <<<"$tests" || { echo "no test holds:$promise"; continue; }
		while IFS= read -r test; do
			[[ $test =~ ^\ *\`([^\`]+)\`\ (.+[^ ])\ *$ ]] || { echo "not FILE and NAME: $test"; continue; }
			file=ci/tests/${BASH_REMATCH[1]} name=${BASH_REMATCH[2]}
			if [ ! -e "$file" ]; then echo "there is no $file"; elif ! has "$file" "$name"; then echo "$file has no test '$name'"; fi
		done < <(sed 's/; *`/\n`/g' <<<"$tests")
	done < <(grep '^|' "$1")
}
promises=$(grep '^|' "$page" | grep -cvE '^\|(---| promise )')
check "there are promises ($promises)" [ "$promises" -ge 30 ]
bad=$(wrong "$page")
if [ -z "$bad" ]; then ok "each has tests, which exist"; else not_ok "each has tests, which exist" "$bad"; fi
check "the map leads to the page" grep -q 'SECURITY.md' harness/MAP.md

tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT
printf '| promise | held by |\n|---|---|\n| a | |\n| b | `store/store_test.c` no_such_test |\n| c | `no/such.t` x |\n| d | `store/damage.t` a view that never |\n| e | hope |\n' >"$tmp"
check "(a promise without a test is found, and a test that is not there)" [ "$(wrong "$tmp" | wc -l)" = 5 ]
printf '| a promise | `store/damage.t` a view that never ends; `base/text_test.c` names_are_refused |\n' >"$tmp"
check "(and one with two tests is not)" [ -z "$(wrong "$tmp")" ]
done_testing
