#!/bin/bash
# harness/MAP.md lists the folders from top to bottom, and no header is included upwards. What the map names exists, every
# folder with C in it is on the map, and *_impl.h is included in its own folder only. No root, no build.
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh
map=${MAP:-harness/MAP.md}
mapfile -t rooms < <(sed -n 's/^| `\([a-z/]*\)` | .*/\1/p' "$map")
check "the map lists folders" [ "${#rooms[@]}" -ge 15 ]
missing=$(for room in "${rooms[@]}"; do [ -d "$room" ] || echo "$room"; done)
check "each of them exists${missing:+: not $missing}" [ -z "$missing" ]

# upwards FILES...: "FILE includes HEADER" for each include that points up the map, to a folder that is not on it, or to another
# folder's *_impl.h.
upwards() {
	printf '%s\n' "${rooms[@]}" | awk '
	FNR == NR { place[$0] = NR; next }
	FNR == 1 { own = room(FILENAME) }
	/^[ \t]*#[ \t]*include[ \t]*"/ {
		split($0, part, "\""); other = room(part[2])
		if (part[2] !~ /\//) next                            # generated: the skeleton of the BPF program, call names
		if (!own || !other || place[other] < place[own] || (part[2] ~ /_impl\.h$/ && other != own))
			print FILENAME " includes " part[2]
	}
	function room(path,  dir) {
		for (dir = path; sub(/\/[^\/]*$/, "", dir);) if (dir in place) return dir
		return ""
	}' - "$@"
}
mapfile -t sources < <(find harness faults diag -name '*.[ch]' | sort)
check "there are sources" [ "${#sources[@]}" -gt 200 ]
up=$(upwards "${sources[@]}")
if [ -z "$up" ]; then ok "includes point down the map"; else not_ok "includes point down the map" "$up"; fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/harness/base" && cd "$tmp" || exit 1
echo '#include "harness/store/store.h"' >harness/base/up.c
check "an include that points up is found" [ "$(upwards harness/base/up.c)" = "harness/base/up.c includes harness/store/store.h" ]
cd - >/dev/null || exit 1

gone=$(sed -n '/^## Where is/,$s/^| [^|]* | `\(.*\)` |$/\1/p' "$map" | while read -r file; do [ -f "$file" ] || echo "$file"; done)
check "every file that the map names exists${gone:+: not $gone}" [ -z "$gone" ]
gone=$(grep -rhoE '\]\([^)#: ]+\.md' --include='*.md' README.md | sed 's/](//' | sort -u | while read -r page; do [ -f "$page" ] || echo "$page"; done)
check "every page that the README names exists${gone:+: not $gone}" [ -z "$gone" ]
check "the README can be read to its end: 150 lines, 100 columns" bash -c \
	'[ "$(wc -l <README.md)" -le 150 ] && [ "$(expand README.md | wc -L)" -le 100 ]'
done_testing
