#!/bin/bash
# Runs a test, a C program for half an hour at most or a shell test (.t) for 40 minutes, and passes its output on. A test that hangs
# fails; told to end, it takes its lab down. The name of a test that fails goes to $CULPRIT_FAILED, and what it said to
# $CULPRIT_FAILURES (a shell test writes that itself, by ci/tests/tap.sh).
set -uo pipefail
failed() { [[ -z ${CULPRIT_FAILED:-} ]] || echo "$1" >>"$CULPRIT_FAILED"; }
if [[ $1 == *.t ]]; then
	timeout --foreground -k 60 2400 bash "$@" || { rc=$?; failed "$1"; exit "$rc"; }
	exit 0
fi
said=$(mktemp)
trap 'rm -f "$said"' EXIT
# cmocka calls a skipped test "not ok N # SKIP", which prove takes for a failure.
timeout --foreground -k 10 1800 "$@" 2>&1 | sed -u 's/^not ok \([0-9]* # SKIP\)/ok \1/' | tee "$said"
rc=${PIPESTATUS[0]}
[[ $rc -eq 0 ]] || failed "$1"
[[ $rc -eq 0 || -z ${CULPRIT_FAILURES:-} ]] || { echo "$1 ended with $rc:"; grep -v '^ok ' "$said" | tail -n 60; } >>"$CULPRIT_FAILURES"
exit "$rc"
