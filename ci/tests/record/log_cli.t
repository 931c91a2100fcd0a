#!/bin/bash
# culprit trace and culprit log on the command line.
cd "$(dirname "$0")/../../.." || exit 1
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
	says "read\(fd=[0-9]+<$dir/file>, buf=0x[0-9a-f]+, count=[0-9]+\) = 6 <0\.[0-9]{9}>" "$culprit" log "$dir/log"
check "the last line counts what was lost" says '^# end at .* records, 0 lost$' "$culprit" log "$dir/log"
check "--json prints JSON lines" json_lines
check "--errors prints failed calls only" errors_only
check "--summary sums up" says ' 100.00 .* total$' "$culprit" log --summary "$dir/log"
check "--call refuses an unknown call" ends 2 "$culprit" log --call frobnicate "$dir/log"
check "a log can be read from standard input" says '^# end at' "$culprit" log - <"$dir/log"
check "without -o the log is printed" says 'execve|\+\+\+ process true' "$culprit" trace -- true
check "a missing program: exit code 127" ends 127 "$culprit" trace -o "$dir/log2" -- "$dir/no-such-program"
check "and leaves no log" test ! -e "$dir/log2"
check "a missing process: exit code 2" ends 2 "$culprit" trace -o "$dir/log3" -p 4194303
check "neither process nor command is a usage error" ends 2 "$culprit" trace -o "$dir/log3"
# What a user of strace would look for.
"$culprit" trace -o "$dir/files" --tracer ptrace -- sh -c "echo more >>$dir/file; grep more $dir/file; mv $dir/file '$dir/a b'; rm $dir/none" >"$dir/err" 2>&1
check "paths are printed as strings" says "rename(at2?)?\(.*\"$dir/file\".*\"$dir/a b\".*\) = 0 <" "$culprit" log "$dir/files"
check "with the name of the process" says "^[0-9:.]+ +[0-9]+ +mv +rename" "$culprit" log "$dir/files"
only_path() { # every call shown is about that file
	"$culprit" log --path "$dir/file" "$dir/files" >"$dir/said" && grep -q ' grep .* read(fd=' "$dir/said" &&
		grep ' = ' "$dir/said" | grep -v "$dir/file" | not_any
}
not_any() { ! grep .; }
check "--path shows the records of one file" only_path
check "--tags tells files apart" says "<$dir/file [0-9]+:[0-9]+\|$(stat -c %i "$dir/a b")\|[0-9:.]{15}>" "$culprit" log --tags "$dir/files"
only_name() { "$culprit" log --name mv "$dir/files" >"$dir/said" && grep -q ' mv ' "$dir/said" && grep -v '^#' "$dir/said" | grep -v ' mv ' | not_any; }
check "--name shows a program's records" only_name
check "-c --errors counts failures by call and errno" says ' unlink(at)?  ENOENT$' "$culprit" log -c --errors "$dir/files"
check "--by path names the files" says " [1-9][0-9]* +0  ENOENT  $dir/none\$" "$culprit" log -c --errors --by error,path "$dir/files"
check "--by process names the programs" says ' [0-9]+ grep$' "$culprit" log -c --by process "$dir/files"
check "--by refuses an unknown key" ends 2 "$culprit" log -c --by colour "$dir/files"
json_paths() {
	"$culprit" log --json "$dir/files" | python3 -c 'import json, sys
calls = [r for r in map(json.loads, sys.stdin) if r["type"] == "call"]
mv = [r for r in calls if r["call"].startswith("rename") and r["result"] == 0]
assert [r["paths"] for r in mv] == [[sys.argv[1] + "/file", sys.argv[1] + "/a b"]], mv
assert mv[0]["name"] == "mv"
read = [r for r in calls if r["call"] == "read" and r.get("path") == sys.argv[1] + "/file"]
assert read[0]["tag"]["inode"] == int(sys.argv[2]) and read[0]["tag"]["first_ns"] > 0
' "$dir" "$(stat -c %i "$dir/a b")"
}
check "--json has paths, names and tags" json_paths
only_calls() { # EXPECTED calls: no others
	"$culprit" trace --tracer ptrace --call close -- true | sed -n 's/^[0-9:.]* *[0-9]* *[a-z]* *\([a-z0-9_]*\)(.*/\1/p' | sort -u >"$dir/said"
	[ "$(cat "$dir/said")" = close ]
}
check "trace --call records these calls only" only_calls
check "trace -c sums a command up" says ' 100.00 .* total$' "$culprit" trace --tracer ptrace -c -- true
check "trace --path wants an absolute path" ends 2 "$culprit" trace --path x -- true
check "help has examples" says 'culprit trace -p 1234 --mode sums' "$culprit" trace --help

# Live: the calls of a process are printed while it runs; who stops reading stops the tracer, not the process.
mkfifo "$dir/fifo"
cat "$dir/fifo" >/dev/null 2>&1 &
cat=$!
exec 9>"$dir/fifo"
mkfifo "$dir/lines"
"$culprit" trace --tracer ptrace -p $cat >"$dir/lines" 2>"$dir/err" &
trace=$!
live() {
	local line
	exec 8<"$dir/lines"
	while read -r -t 60 line <&8; do
		case $line in
		*'+++ process cat'*) echo more >&9 ;;
		*'write(fd=1'*) exec 8<&-; return 0 ;;
		esac
	done
	return 1
}
check "trace -p prints as it goes" live
gone() { # nothing reads any more: the next lines end it
	for _ in $(seq 300); do
		kill -0 $trace 2>/dev/null || return 0
		echo more >&9
		sleep 0.2
	done
	return 1
}
check "and ends when its reader ends" gone
check "the process goes on" kill -0 $cat
exec 9>&-
wait $cat
check "to its own end" test $? = 0
unprivileged() { # one's own processes can be traced by anybody
	[ -d /proc/sys/kernel ] && setpriv --reuid 65534 --regid 65534 --clear-groups "$culprit" trace -c -- true 2>&1 | grep -q 'total$'
}
if setpriv --reuid 65534 --regid 65534 --clear-groups "$culprit" help >/dev/null 2>&1; then
	check "without privilege, a command can be traced" unprivileged
	check "and another's process cannot, with a reason" says 'not permitted' setpriv --reuid 65534 --regid 65534 --clear-groups "$culprit" trace -p 1
fi
gunzip -c ci/tests/data/lab-ddw.s1.samples.gz >"$dir/samples"
check "readings are shown by second, with peer and unit" \
	says '^18:15:[0-9]{2} tcp_received_bytes from 10\.81\.0\.31 = [0-9]+ bytes$' "$culprit" log "$dir/samples"
check "with the number of things and the largest" \
	says '^18:15:[0-9]{2} cpu_busy_s = [0-9.]+ s \(of 2, most [0-9.]+\)$' "$culprit" log "$dir/samples"
check "and summed up: seconds, mean, least, most" \
	says '^ +11 +33\.0909 +0 +116  requests  disk_writes$' "$culprit" log -c "$dir/samples"
check "the sampler needs no privilege for the user's own processes" says 'process_cpu_s = ' \
	setpriv --reuid 65534 --regid 65534 --clear-groups "$culprit" trace --tracer sampler -- sleep 5.5
head -c 1000 "$dir/log" >"$dir/cut"
check "a log that was cut short is reported" ends 2 "$culprit" log "$dir/cut"
check "with the offset" says "cut short at byte 1000" "$culprit" log "$dir/cut"
printf 'X' | dd of="$dir/log" bs=1 seek=600 conv=notrunc status=none
check "damage is reported with its offset" says "damaged at byte 192" "$culprit" log "$dir/log"
done_testing
