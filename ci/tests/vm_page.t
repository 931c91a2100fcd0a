#!/bin/bash
# ci/vm/page.py: the page of 'make check-vm' says what was tested, when, and on which kernels. No root, no build.
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/tracers.tap" <<'LOG'
# build: culprit 0.1.0 (0123456789), tested on 2026-11-28, on Linux 6.18.0
# s1: up after 63 s
# bookworm: Linux 6.1.0-41-amd64
ok 1 - bookworm: ebpf --mode sums: loads and runs
not ok 2 - bookworm: ebpf --mode sums: its calls are strace's
# 3c3
ok 3 - bookworm: ptrace # SKIP not here
1..3
# seconds: 12
LOG
ci/vm/page.py "$tmp/tracers.tap" >"$tmp/page"
has() { check "$1" grep -qxF -- "$2" "$tmp/page"; }
has "build, date and the machine's kernel" '- culprit 0.1.0 (0123456789), tested on 2026-11-28, on Linux 6.18.0'
has "kernels, counts and seconds" '| Tracers, kernel by kernel | 6.1.0-41-amd64 | 1 | 1 | 1 | 12 |'
has "what failed, with what the test printed" '  3c3'
sed -i /^1../d "$tmp/tracers.tap"
ci/vm/page.py "$tmp/tracers.tap" >"$tmp/page"
check "a log that was cut short is named" grep -q 'Tracers, kernel by kernel (cut short)' "$tmp/page"
done_testing
