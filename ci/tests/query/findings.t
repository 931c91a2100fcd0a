#!/bin/bash
# Programs with one bad habit each, traced: 'culprit findings' names it, and says nothing of the program's twin that does the same well.
# What it prints, how it ends, and a finding of one's own.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/schema.sh
out=$PWD/${OUT:-out}
culprit=$out/culprit
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache ASAN_OPTIONS=detect_leaks=0

record() { # TRACER WHAT
	rm -f "$dir/log"
	"$culprit" trace --tracer "$1" -o "$dir/log" -- "$out/helpers/habits" "$2" "$dir"
}
finds() { # CODE PATTERN COMMAND...: ends so, and each line of the findings matches
	local code=$1 pattern=$2 got
	shift 2
	"$@" >"$dir/said" 2>"$dir/errors"
	got=$?
	[ $got = "$code" ] && { [ -z "$pattern" ] || grep -Eq -- "$pattern" "$dir/said"; } || { echo "exit code $got"; cat "$dir/said" "$dir/errors"; return 1; }
}
only() { # NAME: of the findings that were printed
	[ "$(sed -n 's/^\(error\|warning\|note\): \([a-z-]*\): .*/\2/p' "$dir/said" | sort -u)" = "$1" ]
}
evidence_shows() { # the query behind the finding, as it is printed, has rows
	local sql
	sql=$(sed -n '/^  see: /,/^\(error\|warning\|note\): /{s/^  see: //;/^\(error\|warning\|note\): /d;p}' "$dir/said")
	"$culprit" query "$dir/log" "$sql" >"$dir/rows" && [ "$(wc -l <"$dir/rows")" -gt 1 ]
}

for tracer in ${TRACERS:-ptrace ebpf}; do
	if ! "$culprit" trace --tracer "$tracer" -o "$dir/probe" -- true 2>"$dir/why"; then
		ok "$tracer # SKIP $(head -n 1 "$dir/why")"
		continue
	fi
	rm -f "$dir/probe"
	while read -r what name words; do
		check "$tracer: '$what' is recorded" record "$tracer" "$what"
		check "$tracer: it is found: $name" finds 1 "^[a-z]*: $name: habits \([0-9]*\) on .*$words" "$culprit" findings "$dir/log"
		check "$tracer: ... and nothing else" only "$name"
		check "$tracer: ... with the events behind it" evidence_shows
		check "$tracer: its twin is recorded" record "$tracer" "$what-well"
		check "$tracer: of the twin nothing is said" finds 0 '' "$culprit" findings "$dir/log"
	done <<'L'
rename unsynced-rename renamed .*/new to .*/conf
small small-io [0-9]+ calls of 100 bytes
scattered scattered-io 4194304 bytes of .*/data \(read\) in 1024 pieces
reopen repeated-open /data was opened [0-9]+ times
lost lost-write at byte 10000: cut short, and the 6384 bytes
L
done

# Forms of output, and one's own.
check "a program with a habit" record ptrace rename
as_json() {
	"$culprit" findings --json "$dir/log" | python3 -c '
import json, sys
[f] = map(json.loads, sys.stdin)
assert f["finding"] == "unsynced-rename" and f["severity"] == "warning" and f["number"] > 0 and f["t_s"] > 0, f
assert set(f) == {"finding", "severity", "about", "text", "todo", "evidence", "log", "node", "number", "t_s"}, f'
}
check "as JSON" as_json
"$culprit" findings --json "$dir/log" >"$dir/findings.json"
fits findings "$dir/findings.json"
check "one finding by its name" finds 0 '' "$culprit" findings --finding small-io "$dir/log"
check "a name that there is not: the nearest" finds 2 '' "$culprit" findings --finding smal-io "$dir/log"
check "... is told" grep -q 'small-io' "$dir/errors"
check "a table that only runs have is said when its finding is asked for" finds 3 '' "$culprit" findings --finding swallowed-error "$dir/log"
check "... with the reason" grep -q 'failures: only runs that were recorded with flows' "$dir/errors"
# A recorded run: the file of its load lies on one server as a whole.
tar -xzf ci/tests/data/lab-flow.tar.gz -C "$dir"
check "a run: one file makes one server busy" finds 1 '^warning: hot-file: cell 2: s3 moved .* MB' "$culprit" findings "$dir/tiny"
check "... and nothing else" only hot-file
check "... with the cell's timeline" grep -q "^  timeline: culprit timeline $dir/tiny --cell 2" "$dir/said"
check "its servers' failed calls are a table" finds 0 '^s3 .* ENODATA .* read ' "$culprit" query "$dir/tiny" "select node, call, errno, request, app_call, count(*) from failures group by 1, 2, 3, 4, 5"

check "all are listed" [ "$("$culprit" list findings | grep -c '^  [a-z-]* .*\(error\|warning\|note\): ')" = "$(ls diag/findings/*.lua | wc -l)" ]
each_is_documented() { for f in diag/findings/*.lua; do grep -q "^| \`$(basename "$f" .lua)\` |" diag/query/README.md || { echo "$f is not in diag/query/README.md"; return 1; }; done; }
check "all are in the README" each_is_documented

# The template, and a finding that is written from it: twenty lines.
cd "$dir" || exit 1
check "a template" finds 0 'try it with culprit findings --finding ./slow-calls.lua LOG' "$culprit" new finding slow-calls
check "it runs as it stands" finds 0 '' "$culprit" findings --finding ./slow-calls.lua log
cat >renames.lua <<'L'
return {
	about = "a file was renamed",
	severity = "note",
	sql = "select log, number, process, path2 from events where call like 'rename%' and result = 0",
	text = "{process} made {path2}",
	todo = "nothing",
	evidence = "select * from events where log = {log} and number = {number}",
}
L
check "one's own finds what it asks for" finds 1 'note: renames: habits made .*/conf' "$culprit" findings --finding ./renames.lua log
sed -i 's/path2}/path3}/' renames.lua
check "what is wrong in it is said" finds 2 '' "$culprit" findings --finding ./renames.lua log
check "... with its file" grep -q "renames.lua: 'path3' is not a column of the finding's query" errors
done_testing
