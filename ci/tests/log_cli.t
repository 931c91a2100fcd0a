#!/bin/bash
# culprit trace and culprit log, as a person uses them.
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh
out=${OUT:-out}
culprit="$out/culprit"
[ "$(id -u)" = 0 ] || skip_all "needs root, to trace"
export ASAN_OPTIONS=detect_leaks=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

says() { # PATTERN COMMAND...: the output has a line like that
	local pattern=$1
	shift
	"$@" 2>&1 | grep -Eq -- "$pattern"
}
ends() { # CODE COMMAND...
	local code=$1
	shift
	"$@" >"$dir/said" 2>&1
	local got=$?
	[ $got = "$code" ] || { echo "exit code $got"; cat "$dir/said"; return 1; }
}
json_lines() { # every line of the log is a JSON object
	"$culprit" log --json "$dir/log" | python3 -c 'import json, sys
for line in sys.stdin: assert "type" in json.loads(line)'
}
errors_only() { # calls that failed, and nothing else
	"$culprit" log --errors "$dir/log" >"$dir/said" && grep -q ' = -1 ENOENT (No such file or directory) <' "$dir/said" &&
		! grep -Ev '^#| = -1 E| = -51[0-9] ' "$dir/said"
}

echo hello >"$dir/file"
check "a traced command's exit code is the tracer's" ends 7 \
	"$culprit" trace -o "$dir/log" -- sh -c "cat $dir/file $dir/none | cat; exit 7"
check "a log is never overwritten" ends 2 "$culprit" trace -o "$dir/log" -- true
check "reads are shown with path, result and time" \
	says "read\(fd=[0-9]+<$dir/file>, buf=0x[0-9a-f]+, count=[0-9]+\) = 6 <0\.[0-9]{6}>" "$culprit" log "$dir/log"
check "the last line counts what was lost" says '^# end at .* records, 0 lost$' "$culprit" log "$dir/log"
check "--json prints JSON lines" json_lines
check "--errors prints failed calls only" errors_only
check "--summary sums up" says ' 100.00 .* total$' "$culprit" log --summary "$dir/log"
check "--call refuses what is no call" ends 2 "$culprit" log --call frobnicate "$dir/log"
check "a log comes from standard input, too" says '^# end at' "$culprit" log - <"$dir/log"
check "without -o the log is printed" says 'execve|\+\+\+ process true' "$culprit" trace -- true
check "a program that is not there: exit code 127" ends 127 "$culprit" trace -o "$dir/log2" -- "$dir/no-such-program"
check "and leaves no log" test ! -e "$dir/log2"
check "a process that is not there: exit code 2" ends 2 "$culprit" trace -o "$dir/log3" -p 4194303
check "neither process nor command is a usage error" ends 2 "$culprit" trace -o "$dir/log3"
head -c 1000 "$dir/log" >"$dir/cut"
check "a cut log is told from a whole one" ends 2 "$culprit" log "$dir/cut"
check "with the place" says "cut short at byte 1000" "$culprit" log "$dir/cut"
printf 'X' | dd of="$dir/log" bs=1 seek=600 conv=notrunc status=none
check "damage is told with its place" says "damaged at byte 192" "$culprit" log "$dir/log"
done_testing
