#!/bin/bash
# Doctor looks for the programs of workloads, and says how to get what is missing.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
workload() { # FILE NEEDS PACKAGES
	echo "return { summary = '', needs = $2, packages = $3, command = function() return { argv = { 'true' } } end }" >$1.lua
}
doctor() { "$culprit" doctor --json "$@" 2>&1 | tr -s '\n ' ' '; return "${PIPESTATUS[0]}"; }

workload one "{ 'sh', 'no-such-program' }" "{ ['no-such-program'] = 'no-such-package, from non-free' }"
workload two "{ 'no-such-program', 'nor-this' }" "{ sh = 'dash' }"
echo 'return { name = "x", workloads = { "./one.lua", "./two.lua" }, faults = { "none" }, detectors = { "always-same" } }' >x.lua
said=$(doctor x.lua)
check "a missing program makes doctor fail for the scenario" [ $? = 3 ]
check "it says who needs it, and how to get it" grep -q \
	'"bad", "text": "there is no no-such-program (workloads one, two); on Debian: apt-get install no-such-package, from non-free"' <<<"$said"
check "without a package it names the program and its workload" grep -q '"bad", "text": "there is no nor-this (workload two)"' <<<"$said"
check "installed programs are not reported" eval '! grep -q "there is no sh " <<<"$said"'
workload one "{ 'sh' }" "nil"
workload two "{ 'sh' }" "{}"
said=$(doctor x.lua)
check "nothing is missing" grep -q '"ok", "text": "workloads have all theirs: sh"' <<<"$said"
workload two "{ 'sh', 3 }" "{}"
said=$(doctor x.lua)
check "needs are programs" [ "$?$(grep -c "two.lua: 'needs' must be a list of programs" <<<"$said")" = 21 ]
workload two "{ 'sh' }" "{ sh = {} }"
said=$(doctor x.lua)
check "packages are names" [ "$?$(grep -c "two.lua: 'packages' must give a package's name for each program" <<<"$said")" = 21 ]
doctor >all
# Named as missing exactly if it is: machines have one, both or neither.
named() { if command -v "$1" >/dev/null; then ! grep -q "there is no $1 " all; else grep -q "there is no $1 (workload" all; fi; }
check "without a scenario, workloads of culprit's own: iozone" named iozone
check "... and postmark" named postmark
said=$(doctor no.lua)
check "a missing scenario" [ $? = 2 ]
done_testing
