#!/bin/bash
# Runs a test program, for half an hour at most, and passes its output on; if it fails, the output's end goes to $CULPRIT_FAILURES, too.
set -uo pipefail
[[ -n ${CULPRIT_FAILURES:-} ]] || exec "$@"
said=$(mktemp)
trap 'rm -f "$said"' EXIT
# cmocka calls a skipped test "not ok N # SKIP", which prove takes for a failure.
timeout --foreground -k 10 1800 "$@" 2>&1 | sed -u 's/^not ok \([0-9]* # SKIP\)/ok \1/' | tee "$said"
rc=${PIPESTATUS[0]}
[[ $rc -eq 0 ]] || { echo "$1 ended with $rc:"; grep -v '^ok ' "$said" | tail -n 60; } >>"$CULPRIT_FAILURES"
exit "$rc"
