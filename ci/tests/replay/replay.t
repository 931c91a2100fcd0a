#!/bin/bash
# 'culprit replay' and the workload 'replay' refuse invalid traces and options before they touch a node. No root, no cluster.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
home=$PWD
out=$PWD/${OUT:-out}
culprit=$out/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$out/bench/replay_trace" sync 4 4 4096 10 "$tmp/fine.app" || exit 1
cd "$tmp" || exit 1
# 192.0.2.0/24 is nobody's: a replay that contacted a node would end with 3.
cat >inventory.lua <<'L'
return { file_system = { type = "glusterfs" }, nodes = {
  { name = "s1", role = "server", address = "192.0.2.1", storage = "/b", service_port = 1 },
  { name = "c1", role = "client", address = "192.0.2.4", mount = "/m" } } }
L
refused() { # NAME PATTERN COMMAND...: exit code 2 and one line that matches
	local name=$1 pattern=$2 said code
	shift 2
	said=$("$@" 2>&1 >/dev/null)
	code=$?
	if [ $code = 2 ] && grep -q -- "$pattern" <<<"$said" && [ "$(wc -l <<<"$said")" = 1 ]; then
		ok "$name"
	else
		not_ok "$name" "exit code $code: $said"
	fi
}
replay() { "$culprit" replay --inventory inventory.lua "$@"; }
refused "a trace that is not there" "no.app" replay no.app
head -c 300 fine.app >cut.app
refused "one that is cut short" "cut.app" replay cut.app
head -c 500 /dev/urandom >noise.app
refused "one that is none" "noise.app" replay noise.app
"$out/bench/replay_trace" cycle 2 1 1 0 cycle.app
refused "one whose ranks wait for each other" "'cycle.app' has a cycle: .* of rank 0 .* waits for operation 1 of rank 1" replay cycle.app
if command -v python3 >/dev/null; then
	# changed FILE: fine.app after the Python on standard input has changed 'data'; its checks are mended.
	changed() { python3 -c 'import struct, sys, zlib
data = bytearray(open("fine.app", "rb").read())
at = struct.unpack_from("<Q", data, 16)[0]
exec(sys.stdin.read())
struct.pack_into("<I", data, at + 4, zlib.crc32(data[at + 8:]))
open(sys.argv[1], "wb").write(data)' "$1"; }
	changed version.app <<<'struct.pack_into("<I", data, 8, 7)'
	refused "one of another version" "version.app. is of version 7; this culprit reads version 1: capture it again" replay version.app
	changed above.app <<<'data[at:] = data[at:].replace(b"data", b"../d")'
	refused "one with a path that leaves the folder" "above.app' has the path '../d', which is not below the folder of the replay" replay above.app
	changed absolute.app <<<'data[at:] = data[at:].replace(b"data", b"/etc")'
	refused "one with a path from the root" "the path '/etc', which" replay absolute.app
	for command in "log" "log -c" "timeline -o x.html"; do
		# shellcheck disable=SC2086 # words
		refused "culprit ${command%% -o*} refuses it, too" "absolute.app" "$culprit" $command absolute.app
	done
	changed same.app <<<''
	check "what was not changed is as it was" cmp fine.app same.app
fi
refused "no copies" "scale-ranks" replay --scale-ranks 0 fine.app
refused "more copies than a trace can hold" "80000 processes, and a trace holds 65536" replay --scale-ranks 20000 fine.app
refused "a result that cannot be written" "cannot write 'none/r.json'" replay -o none/r.json fine.app
refused "a folder in its place" "is a folder" replay -o / fine.app
refused "an unknown mode" "mode" replay --mode fast fine.app
refused "no speed" "speed" replay --speed 0 fine.app
refused "no inventory" "inventory" "$culprit" replay fine.app
refused "one that is not there" "none.lua" "$culprit" replay --inventory none.lua fine.app

scenario() { # WORKLOAD
	echo "return { name = 'x', workloads = { $1 }, detectors = { 'always-healthy' }, faults = { 'none' } }" >scenario.lua
}
plan() { "$culprit" run --inventory inventory.lua --dry-run scenario.lua; }
scenario '"replay"'
check "a workload with a trace of ours is planned" plan
scenario '{ "replay", trace = "" }'
refused "without one it is not" 'needs a trace' plan
scenario '{ "replay", trace = "./no.app" }'
refused "with one that is not there" "scenario.lua:1:.*no.app" plan
scenario '{ "replay", trace = "no-such-trace" }'
refused "with a name that is none of ours" "scenario.lua:1:.*no-such-trace" plan
scenario '{ "replay", trace = "./fine.app", mode = "fast" }'
refused "with an unknown mode" "causal, afap, think or wall" plan
scenario '{ "replay", trace = "./fine.app", speed = 2, cpu = "50%" }'
check "with a trace it is planned" plan

# The traces that come with culprit, done again here: all their calls succeed, twice.
for trace in "$home"/workloads/traces/*.app; do
	name=$(basename "$trace" .app)
	said=$("$out/agent/culprit-agent" replay --root "$tmp/$name" --do 2 "$trace" 2>&1)
	if [ "$(grep -c '"whole":true.*"short":0,"errors":{}' <<<"$said")" = 2 ]; then ok "$name is replayed"; else not_ok "$name is replayed" "$said"; fi
done
done_testing
