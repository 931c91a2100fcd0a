#!/bin/bash
# What runs on a node never ends because memory ran out: harness/base/alloc.h, whose functions end the program, is not linked into
# it. No root.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
command -v nm >/dev/null || skip_all "there is no nm"
out=${OUT:-out}
mapfile -t ends < <(nm --defined-only "$out/harness/base/alloc.o" | awk '$2 == "T" { print $3 }')
check "alloc.h has functions that end the program" [ "${#ends[@]}" -ge 5 ]
linked() { nm --defined-only "$1" | awk '{ print $3 }' | grep -Fxf <(printf '%s\n' "${ends[@]}") | xargs; }
check "they are linked into culprit" [ -n "$(linked "$out/culprit")" ]
there=$(linked "$out/agent/culprit-agent")
check "... and not into its agent${there:+, but $there}" [ -z "$there" ]
done_testing
