#!/bin/bash
# A case of Esteves et al. 2023 (figure 2): a log file is removed and recreated under the same inode number, and a reader continues at its
# offset in the old file. The trace distinguishes the two files and shows the unread bytes; for a correct reader there are none.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
out=${OUT:-out}
culprit="$out/culprit"
[ "$(id -u)" = 0 ] || skip_all "needs root, to mount a file system that reuses inode numbers"
# A separate mount namespace: the kernel removes mount and loop device with its last process.
[ "${1:-}" = inside ] || exec unshare -m --propagation private "$0" inside
export ASAN_OPTIONS=detect_leaks=0
dir=$(mktemp -d)
trap 'umount "$dir/fs" 2>/dev/null; rm -rf "$dir"' EXIT
mkdir "$dir/fs"
truncate -s 4M "$dir/image"
mkfs.ext4 -q -N 16 "$dir/image" && mount -o loop "$dir/image" "$dir/fs" || skip_all "no loop device here"

record() { # TRACER MODE: repeats the run until the inode number is the same (nearly always the first time)
	for _ in $(seq 50); do
		rm -f "$dir/log" "$dir/fs/app.log"
		"$culprit" trace --tracer "$1" -o "$dir/log" -- "$out/helpers/stale_tail" "$2" "$dir/fs" && return 0
	done
	return 1
}

# From the records: bytes written to the second file and never read, and the reader's offset in it.
judge() {
	"$culprit" log --json --path "$dir/fs/app.log" "$dir/log" | python3 -c '
import json, sys
lost, resumed = int(sys.argv[1]), int(sys.argv[2])
calls = [r for r in map(json.loads, sys.stdin) if r["type"] == "call" and "tag" in r]
tag = lambda r: (r["tag"]["device"], r["tag"]["inode"], r["tag"]["first_ns"])
files = sorted({tag(r) for r in calls}, key=lambda t: t[2])
assert len(files) == 2, "not two files: %s" % files
assert files[0][:2] == files[1][:2], "not one inode: %s" % files
of = lambda call, file: [r for r in calls if r["call"] == call and tag(r) == file]
written = [sum(r["result"] for r in of("write", f)) for f in files]
read = [sum(r["result"] for r in of("read", f)) for f in files]
assert len({r["pid"] for f in files for r in of("write", f)} & {r["pid"] for f in files for r in of("read", f)}) == 0
assert written == [26, 16], written
assert [w - r for w, r in zip(written, read)] == [0, lost], read
seek = of("lseek", files[1])
assert [r["offset"] for r in seek] == [resumed], seek
assert of("read", files[1])[0]["offset"] == resumed
assert [r["offset"] for f in files for r in of("write", f)] == [0, 0]
' "$@"
}

summary() { # one row for each file and call: the second file was written, but not read
	"$culprit" log -c --by call,file --path "$dir/fs/app.log" "$dir/log" >"$dir/said"
	[ "$(grep -c '  read  [0-9:]*|[0-9]*|' "$dir/said")" = 2 ] && grep -Eq ' 26  read  ' "$dir/said" && grep -Eq ' 0  read  ' "$dir/said"
}

finding() { # EXIT-CODE: culprit findings names the reader, or nothing
	"$culprit" findings "$dir/log" >"$dir/said"
	[ $? = "$1" ] && { [ "$1" = 0 ] || grep -Eq '^error: stale-offset: stale_tail \([0-9]*\) on .* went on at byte 26 of a new .*/app.log' "$dir/said"; }
}

for tracer in ${TRACERS:-ptrace ebpf}; do
	if ! "$culprit" trace --tracer $tracer -o "$dir/probe" -- true 2>"$dir/why"; then
		ok "$tracer # SKIP $(head -n 1 "$dir/why")"
		continue
	fi
	rm -f "$dir/probe"
	check "$tracer: a stale reader is recorded" record $tracer stale
	check "$tracer: two files have one inode number; 16 bytes of the second are lost" judge 16 26
	check "$tracer: culprit findings names it" finding 1
	check "$tracer: a summary by file also shows it" summary
	check "$tracer: a correct reader is recorded" record $tracer correct
	check "$tracer: it loses nothing" judge 0 0
	check "$tracer: culprit findings does not name it" finding 0
done
done_testing
