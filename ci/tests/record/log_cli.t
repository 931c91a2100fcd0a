#!/bin/bash
# culprit trace and culprit log on the command line.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
out=${OUT:-out}
culprit="$out/culprit"
[ "$(id -u)" = 0 ] || skip_all "needs root, to trace"
export ASAN_OPTIONS=detect_leaks=0
dir=$(mktemp -d)
trap '{ fsfreeze -u "$dir/frozen"; umount "$dir/frozen"; } 2>/dev/null; rm -rf "$dir"' EXIT

says() { # PATTERN COMMAND...: a line of the output matches
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
errors_only() { # failed calls, and no others
	"$culprit" log --errors "$dir/log" >"$dir/said" && grep -q ' = -1 ENOENT (No such file or directory) <' "$dir/said" &&
		! grep -Ev '^#| = -1 E| = -51[0-9] ' "$dir/said"
}

echo hello >"$dir/file"
check "the tracer exits with the traced command's exit code" ends 7 \
	"$culprit" trace -o "$dir/log" -- sh -c "cat $dir/file $dir/none | cat; exit 7"
check "a log is never overwritten" ends 2 "$culprit" trace -o "$dir/log" -- true
check "reads are shown with path, result and time" \
	says "read\(fd=[0-9]+<$dir/file>, buf=0x[0-9a-f]+, count=[0-9]+\) = 6 <0\.[0-9]{9}>" "$culprit" log "$dir/log"
check "the last line counts what was lost" says '^# end at .* records, 0 lost$' "$culprit" log "$dir/log"
check "--json prints JSON lines" json_lines
"$culprit" trace -o "$dir/asked" -- python3 -c 'import socket; a, b = socket.socketpair(); a.send(b"x" * 6); b.recvmsg(100)' 2>"$dir/said"
check "a call with a list of buffers shows its asked length" says 'recvmsg\(.*\) = 6 <[0-9.]+> asked=100$' "$culprit" log "$dir/asked"
check "... also with --json" says '"asked": ?100' "$culprit" log --json "$dir/asked"
if "$culprit" trace -o "$dir/flow" --mode flow --heads -- python3 -c 'import socket
l = socket.create_server(("127.0.0.1", 0)); a = socket.create_connection(l.getsockname()); b = l.accept()[0]
a.send(b"hello"); b.recv(100)' 2>"$dir/said"; then
	check "a log of flows shows positions and heads" \
		says 'recvfrom\(.*\) = 5 <[0-9.]+> position=[0-9]+ head=68656c6c6f$' "$culprit" log "$dir/flow"
	check "... also with --json" says '"position": ?[0-9]+, ?"head": ?"68656c6c6f"' "$culprit" log --json "$dir/flow"
	check "... with the same position at both ends" \
		test "$("$culprit" log --call sendto,recvfrom "$dir/flow" | grep -o 'position=.*' | uniq | wc -l)" = 1
else
	ok "a log of flows # SKIP $(tail -n 1 "$dir/said")"
fi
check "--errors prints failed calls only" errors_only
check "--summary sums up" says ' 100.00 .* total$' "$culprit" log --summary "$dir/log"
check "--call refuses an unknown call" ends 2 "$culprit" log --call frobnicate "$dir/log"
check "a log can be read from standard input" says '^# end at' "$culprit" log - <"$dir/log"
check "without -o the log is printed" says 'execve|\+\+\+ process true' "$culprit" trace -- true
check "a missing program: exit code 127" ends 127 "$culprit" trace -o "$dir/log2" -- "$dir/no-such-program"
check "... without a log" test ! -e "$dir/log2"
check "a missing process: exit code 2" ends 2 "$culprit" trace -o "$dir/log3" -p 4194303
# A command blocked in the kernel, here in a write to a frozen file system, cannot be killed: the tracer detaches.
stuck() { # TRACER
	truncate -s 16M "$dir/image" && mkfs.ext4 -q "$dir/image" && mkdir -p "$dir/frozen" && mount -o loop "$dir/image" "$dir/frozen" || return 1
	fsfreeze -f "$dir/frozen"
	"$culprit" trace --tracer "$1" -o "$dir/stuck" -- dd if=/dev/zero of="$dir/frozen/file" bs=1 count=1 2>"$dir/said" &
	local pid=$! dd code
	until_true 60 eval "dd=\$(pgrep -P $pid -x dd) && grep -q ') D ' /proc/\$dd/stat" || cat "$dir/said"
	kill -KILL "$dd"
	kill -QUIT $pid
	until_true 60 eval "! grep -q '(culprit' /proc/$pid/stat 2>/dev/null"
	grep -q ') D ' "/proc/$dd/stat"
	local still=$?
	fsfreeze -u "$dir/frozen"
	wait $pid
	code=$?
	until_true 60 eval "[ ! -e /proc/$dd ]" && umount "$dir/frozen"
	[ $still$code = 00 ] || { echo "gone: $still, exit code $code"; cat "$dir/said"; return 1; }
}
check "a tracer detaches from a command that cannot be killed" stuck ebpf
check "... and its log is complete, with the call that did not return" bash -c "'$culprit' log '$dir/stuck' | grep -q 'openat.* = ?' && '$culprit' log '$dir/stuck' | tail -1 | grep -q ' 0 lost'"
check "neither process nor command is a usage error" ends 2 "$culprit" trace -o "$dir/log3"
# Features that users of strace expect.
"$culprit" trace -o "$dir/files" --tracer ptrace -- sh -c "echo more >>$dir/file; grep more $dir/file; mv $dir/file '$dir/a b'; rm $dir/none" >"$dir/err" 2>&1
check "paths are printed as strings" says "rename(at2?)?\(.*\"$dir/file\".*\"$dir/a b\".*\) = 0 <" "$culprit" log "$dir/files"
check "... with the name of the process" says "^[0-9:.]+ +[0-9]+ +mv +rename" "$culprit" log "$dir/files"
only_path() { # every call shown is about that file
	"$culprit" log --path "$dir/file" "$dir/files" >"$dir/said" && grep -q ' grep .* read(fd=' "$dir/said" &&
		grep ' = ' "$dir/said" | grep -v "$dir/file" | not_any
}
not_any() { ! grep .; }
check "--path shows the records of one file" only_path
check "--tags distinguishes files" says "<$dir/file [0-9]+:[0-9]+\|$(stat -c %i "$dir/a b")\|[0-9:.]{15}>" "$culprit" log --tags "$dir/files"
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

# Live: the calls of a process are printed while it runs; closing the output stops the tracer, not the process.
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
check "trace -p prints calls as they happen" live
gone() { # the reader has ended: the next lines end the tracer
	for _ in $(seq 300); do
		kill -0 $trace 2>/dev/null || return 0
		echo more >&9
		sleep 0.2
	done
	return 1
}
check "... and ends when its reader ends" gone
check "... and the process continues" kill -0 $cat
exec 9>&-
wait $cat
check "... until its own end" test $? = 0
unprivileged() { # any user can trace their own processes
	[ -d /proc/sys/kernel ] && setpriv --reuid 65534 --regid 65534 --clear-groups "$culprit" trace -c -- true 2>&1 | grep -q 'total$'
}
if setpriv --reuid 65534 --regid 65534 --clear-groups "$culprit" help >/dev/null 2>&1; then
	check "without privilege, a command can be traced" unprivileged
	check "... another user's process cannot, with a reason" says 'not permitted' setpriv --reuid 65534 --regid 65534 --clear-groups "$culprit" trace -p 1
fi
gunzip -c ci/tests/data/lab-ddw.s1.samples.gz >"$dir/samples"
check "readings are shown by second, with peer and unit" \
	says '^18:15:[0-9]{2} tcp_received_bytes from 10\.81\.0\.31 = [0-9]+ bytes$' "$culprit" log "$dir/samples"
check "... with the number of things and the largest" \
	says '^18:15:[0-9]{2} cpu_busy_s = [0-9.]+ s \(of 2, most [0-9.]+\)$' "$culprit" log "$dir/samples"
check "... and summed up: seconds, mean, minimum, maximum" \
	says '^ +11 +33\.0909 +0 +116  requests  disk_writes$' "$culprit" log -c "$dir/samples"
check "the sampler needs no privilege for the user's own processes" says 'process_cpu_s = ' \
	setpriv --reuid 65534 --regid 65534 --clear-groups "$culprit" trace --tracer sampler -- sleep 5.5
"$culprit" trace --tracer sampler -o "$dir/own" -- sleep 5.5
check "memory is shown by use" says '^[0-9:]{8} memory_free_bytes = [0-9.e+]+ bytes$' "$culprit" log "$dir/own"
if [ "$(grep -c '^cpu[0-9]' /proc/stat)" -gt 1 ] && says 'cpu_busy_s = .*\(of [0-9]+, most' "$culprit" log "$dir/own"; then
	check "each of several processors has its name" says '^[0-9:]{8} cpu_busy_s of cpu0 = [0-9.e-]+ s$' "$culprit" log "$dir/own"
	check "... also in JSON" says '"reading":"cpu_busy_s","unit":"s","thing":"cpu0","count":1,' "$culprit" log --json "$dir/own"
	check "... and in the summary" says ' s +cpu_busy_s of cpu0$' "$culprit" log -c "$dir/own"
fi
# A path may contain any byte.
hostile=$dir/$'x\e]0;owned\a\nok 999 - injected'
: >"$hostile"
"$culprit" trace -o "$dir/hostile" -- cat "$hostile" >/dev/null
plain() { "$culprit" "$@" >"$dir/said" && grep -q 'owned' "$dir/said" && ! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]\|^ok 999' "$dir/said"; }
check "a hostile path does nothing to the terminal" plain log "$dir/hostile"
check "... also in the summary by path" plain log -c --by path "$dir/hostile"
check "... also in JSON" plain log --json "$dir/hostile"
# Output on a terminal, for a name with one-character forms of escape sequences and an override of text direction.
on_terminal() { # COMMAND...: its output on a terminal has no control characters except newlines
	python3 - "$@" <<'PY'
import os, pty, sys
pid, fd = pty.fork()
if not pid:
    os.execv(sys.argv[1], sys.argv[1:])
said = b""
try:
    while part := os.read(fd, 65536): said += part
except OSError: pass
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
text = said.replace(b"\r\n", b"\n").decode()
bad = [c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c in "\u202e\u2066"]
assert code == 0 and b"name" in said and not bad, (code, bad, said[:2000])
PY
}
turned=$dir/$'name\xc2\x9b31m\xc2\x9d0;owned\xe2\x80\xae'
: >"$turned"
"$culprit" trace -o "$dir/turned" -- cat "$turned" >/dev/null
asked="select distinct path from events where path like '%name%'"
for form in "log $dir/turned" "log --json $dir/turned" "log -c --by path $dir/turned"; do
	# shellcheck disable=SC2086 # words
	check "on a terminal: ${form% *}" on_terminal "$culprit" $form
done
for form in "" --json --csv; do
	# shellcheck disable=SC2086
	check "on a terminal: query $form" on_terminal "$culprit" query $form "$dir/turned" "$asked"
done
check "... also in a query's answer" plain query "$dir/hostile" "select distinct path from events where path like '%owned%'"
head -c 1000 "$dir/log" >"$dir/cut"
check "a log that was cut short is reported" ends 2 "$culprit" log "$dir/cut"
check "... with the offset" says "cut short at byte 1000" "$culprit" log "$dir/cut"
printf 'X' | dd of="$dir/log" bs=1 seek=600 conv=notrunc status=none
check "damage is reported with its offset" says "damaged at byte 192" "$culprit" log "$dir/log"
done_testing
