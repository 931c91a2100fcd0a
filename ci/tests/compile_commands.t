#!/bin/bash
# ci/compile_commands.py: what it prints is what make would run, and clangd can read a source with it. No root.
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh
for program in python3 make gcc; do
	command -v $program >/dev/null || skip_all "there is no $program"
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
out=${OUT:-out}

# entry FILE: the entry of FILE, its arguments joined.
entry() {
	python3 -c 'import json, sys
for e in json.load(open(sys.argv[1])):
    if e["file"] == sys.argv[2]: print(e["directory"], e["output"], " ".join(e["arguments"]))' "$tmp/compile_commands.json" "$1"
}
# made: two objects, as two kinds of commands: one on its own line, one with a compiler for BPF over two lines.
made() { ci/compile_commands.py "$out/harness/base/text.o" "$out/gen/ebpf.bpf.o" "$out/fuzz/harness/base/text.o" >"$tmp/compile_commands.json"; }
check "commands are printed" made
check "a source has the flags of the Makefile" grep -q "^$PWD $out/harness/base/text.o .*-std=c17 .* -c " <(entry harness/base/text.c)
check "its first command only: the fuzzers' is left out" [ "$(entry harness/base/text.c | grep -c .)" = 1 ]
check "a command over two lines is one" grep -q -- "-target bpf .*-c -o $out/gen/ebpf.bpf.o" <(entry diag/capture/ebpf/trace.bpf.c)
if command -v clangd >/dev/null; then
	check "clangd reads a source with them" clangd --compile-commands-dir="$tmp" --check=harness/base/text.c
else
	echo "# no clangd: not tried"
fi
said=$(ci/compile_commands.py no-such-target 2>&1 >/dev/null)
rc=$?
check "a target that make does not know is an error that names it" [ $rc = 1 -a -n "$(grep -F "no-such-target" <<<"$said")" ]
said=$(ci/compile_commands.py deps 2>&1 >/dev/null)
check "no compiler's command at all is an error, not an empty list" grep -q 'no compiler' <<<"$said"
done_testing
