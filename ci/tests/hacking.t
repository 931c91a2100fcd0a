#!/bin/bash
# harness/HACKING.md: every file and folder that it names exists, and every kind that it writes a template of. No root, no build.
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh
page=${PAGE:-harness/HACKING.md}

# gone PAGE: the files named in the page that are not there; words in capitals stand for a name, as in faults/NAME.lua.
gone() {
	grep -oE '`[^` ]+`' "$1" | tr -d '`' | grep -E '^(ci|diag|faults|harness|results|scenarios|workloads)/' | sed -E 's/[^/]*(NAME|FOLDER|\*).*$//' |
		sort -u | while read -r file; do [ -e "$file" ] || echo "$file"; done
	grep -oE '\]\([^)#: ]+' "$1" | sed 's/](//' | sort -u | while read -r file; do [ -e "harness/$file" ] || echo "harness/$file"; done
}
named=$(grep -oE '`(ci|diag|faults|harness|results|scenarios|workloads)/[^` ]+`' "$page" | sort -u | wc -l)
check "it names files ($named)" [ "$named" -ge 25 ]
bad=$(gone "$page")
if [ -z "$bad" ]; then ok "all of them exist"; else not_ok "all of them exist" "$bad"; fi
bad=$(grep -oE 'culprit new [a-z-]+ NAME' "$page" | cut -d' ' -f3 | sort -u | while read -r kind; do
	[ -f "harness/lua/templates/$kind.lua" ] || echo "$kind"
done)
check "there is a template of each kind${bad:+: not $bad}" [ -z "$bad" ]
check "README and map lead to it" bash -c 'grep -q harness/HACKING.md README.md && grep -q HACKING.md harness/MAP.md'
check "it can be read to its end: 200 lines" [ "$(wc -l <"$page")" -le 200 ]

tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT
printf 'see `harness/gone.c`, `faults/NAME.lua`, `ci/tests/cli/cli.t` and [this](NOWHERE.md)\n' >"$tmp"
check "(a file that is not there is found)" [ "$(gone "$tmp" | tr '\n' ' ')" = "harness/gone.c harness/NOWHERE.md " ]
done_testing
