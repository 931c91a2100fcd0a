#!/bin/bash
# One concept, one home: a name that is defined twice misleads readers, and a compiler does not notice. No root, no build.
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh

# twice FILES...: "TAG in HEADER HEADER ..." for each struct that several of these headers define. kernel.h has the kernel's own, by
# architecture.
twice() {
	grep -HoE '^struct [a-z_0-9]+ \{' "$@" | grep -v '^diag/capture/ebpf/kernel\.h:' | sort -u | awk -F: '
	{ split($2, word, " "); n[word[2]]++; where[word[2]] = where[word[2]] " " $1 }
	END { for (tag in n) if (n[tag] > 1) print tag " in" where[tag] }' | sort
}
mapfile -t headers < <(find harness faults diag -name '*.h' | sort)
check "there are headers" [ "${#headers[@]}" -gt 200 ]
found=$(twice "${headers[@]}")
if [ -z "$found" ]; then ok "a struct is defined in one header"; else not_ok "a struct is defined in one header" "$found"; fi

# elsewhere PATTERN HOME: the product's C that has it outside of its home.
elsewhere() { grep -rlE --include='*.[ch]' "$1" harness diag faults | grep -vxF "$2" | xargs; }
found=$(elsewhere '0xcbf29ce484222325|0x100000001b3|14695981039346656037|1099511628211|0x811c9dc5|2166136261' harness/base/hash.h)
check "FNV is in base/hash.h${found:+: not in $found}" [ -z "$found" ]
check "... where it is" grep -q 0x100000001b3 harness/base/hash.h

# A hash table is a struct map, so the numbers that spread keys are in two files. Programs in the kernel have their own.
found=$(elsewhere '0x9e3779b9|0xff51afd7|0xc4ceb9fe|0xc2b2ae3d|2654435769' 'harness/base/hash.h
harness/base/map.h
diag/capture/ebpf/files.h')
check "keys are spread in base/hash.h and base/map.h${found:+: not in $found}" [ -z "$found" ]

found=$(elsewhere 'EVP_Digest\(' harness/base/sha256.h)
check "SHA-256 is in base/sha256.h${found:+: not in $found}" [ -z "$found" ]
found=$(elsewhere 'gsl_stats_median|gsl_stats_quantile|[^a-z_]by_(size|float)\(' harness/base/stat.h)
check "medians are in base/stat.h${found:+: not in $found}" [ -z "$found" ]

found=$(elsewhere '\(v \| 0x80|& 0x7f\) <<|<< 1 \^|le32toh|htole32' 'harness/base/bytes.h
diag/ship/rowbinary.c')
check "varints and byte order are in base/bytes.h${found:+: not in $found}" [ -z "$found" ]

# Arrays grow by alloc_room or vec_room. Those that do not are rings, share their room with others, or belong to SQLite: no more of them.
grown=$(grep -rhE --include='*.[ch]' 'room \* 2|2 \* [a-z_>.-]*room' harness diag faults | wc -l)
check "few arrays grow by hand: $grown, at most 20" [ "$grown" -le 20 ]

found=$(elsewhere 'MHD_start_daemon' harness/web/loopback.c)
check "HTTP is served by web/loopback.c${found:+: not in $found}" [ -z "$found" ]

found=$(elsewhere 'strftime\(' harness/base/clock.h)
check "dates are written by base/clock.h${found:+: not in $found}" [ -z "$found" ]

# common FILES...: "NAME in N files" for a static function's name that too many files have: a debugger cannot tell them apart.
common() {
	grep -HoE '^static [^(=;]*[ *][a-z_0-9]+\(' "$@" | sed -E 's/^([^:]*):.*[ *]([a-z_0-9]+)\($/\2 \1/' | sort -u | awk '
	{ n[$1]++ } END { for (name in n) if (n[name] > 4) print name " in " n[name] " files" }' | sort
}
found=$(find harness faults diag -name '*.c' -print0 | xargs -0 bash -c "$(declare -f common); common \"\$@\"" -)
if [ -z "$found" ]; then ok "static functions have names of their own"; else not_ok "static functions have names of their own" "$found"; fi

small=$(find harness faults diag -name '*.h' -exec awk 'END { if (NR < 40) print FILENAME }' {} \; | wc -l)
check "few headers are small: $small with fewer than 40 lines, at most 114" [ "$small" -le 114 ]

# unguarded HEADERS...: those whose guard is not their path.
unguarded() {
	awk 'FNR == 1 { want = FILENAME; sub(/\.h$/, "_h", want); gsub(/[^A-Za-z0-9]/, "_", want); want = "CULPRIT_" toupper(want); n[FILENAME] = 0 }
	$1 == "#ifndef" && $2 == want { n[FILENAME]++ }
	END { for (f in n) if (!n[f]) print f }' "$@" | sort | xargs
}
found=$(unguarded "${headers[@]}")
check "a header's guard is its path${found:+: not of $found}" [ -z "$found" ]

# headless FILES...: those whose first line is no comment.
headless() { awk 'FNR == 1 && !/^\/\*/ { print FILENAME }' "$@" | xargs; }
mapfile -t sources < <(find harness faults diag -name '*.c' | sort)
found=$(headless "${sources[@]}")
check "a source file begins with what it is for${found:+: not $found}" [ -z "$found" ]

# over: "FOLDER has N lines, at most M" for each folder of the map (of the file MAP) that has more than its budget.
over() {
	sed -n 's/^| `\([a-z/]*\)` | \([0-9]*\) | .*/\1 \2/p' "$1" | awk '
	FNR == NR { budget[$1] = $2; next }
	{ for (dir = $2; sub(/\/[^\/]*$/, "", dir);) if (dir in budget) { n[dir] += $1; break } }
	END { for (dir in budget) if (n[dir] > budget[dir]) print dir " has " n[dir] " lines, at most " budget[dir] }' - "$2" | sort
}
lines=$(mktemp) # a name that a pipeline sets is gone with its subshell
find harness faults diag \( -name '*.[ch]' -o -name '*.js' -o -name '*.css' -o -name '*.html' \) ! -path '*/vendor/*' -exec wc -l {} + |
	grep -v ' total$' >"$lines"
check "there are lines to count" [ "$(wc -l <"$lines")" -gt 500 ]
found=$(over harness/MAP.md "$lines")
check "each folder of the map has a budget" [ "$(grep -c '^| `[a-z/]*` | [0-9]* | ' harness/MAP.md)" -ge 30 ]
if [ -z "$found" ]; then ok "no folder has more lines than its budget"; else not_ok "no folder has more lines than its budget" "$found"; fi

# Data and prose; figures are drawn by scripts there.
found=$(find results -name '*.[ch]' -o -name '*.js' -o -name '*.css' -o -name '*.html' | tr '\n' ' ')
check "results/ holds no code of the product${found:+: not $found}" [ -z "$found" ]

tmp=$(mktemp -d)
trap 'rm -rf "$tmp" "$lines"' EXIT
printf 'struct event {\n\tint x;\n};\n' | tee "$tmp/a.h" >"$tmp/b.h"
check "a struct in two headers is found" [ "$(twice "$tmp/a.h" "$tmp/b.h")" = "event in $tmp/a.h $tmp/b.h" ]
for i in 1 2 3 4 5; do printf 'static int run(void)\n{\n}\nstatic struct x *of_%s(int a)\n' $i >"$tmp/$i.c"; done
check "a name in five files is found" [ "$(common "$tmp"/[1-5].c)" = "run in 5 files" ]
check "a guard of another name is found" [ "$(unguarded "$tmp/a.h")" = "$tmp/a.h" ]
printf '#include <stdio.h>\n' >"$tmp/x.c"
check "a file without is found" [ "$(headless "$tmp/x.c" "$tmp/a.h")" = "$tmp/x.c $tmp/a.h" ]
printf '| `harness/x` | 10 | what it does |\n| `harness/x/y` | 5 | more |\n' >"$tmp/map.md"
printf '     8 harness/x/a.c\n     3 harness/x/b.h\n     5 harness/x/y/c.c\n' >"$tmp/lines"
check "a folder that is too large is found" [ "$(over "$tmp/map.md" "$tmp/lines")" = "harness/x has 11 lines, at most 10" ]
done_testing
