#!/bin/bash
# Runs one test for prove and passes its output on: a C program or a shell test (.t). A test that hangs fails, and takes its
# lab down when it is ended. For ci/check.sh:
#
#   CULPRIT_RESULTS    a file that gets a line: part, program, checks, failed, skipped, seconds, exit code, seconds of processor
#                      time (of what it waited for), separated by tabs
#   CULPRIT_FAILURES   a folder that gets the whole output of a test that failed, as FOLDER_NAME.log
#   CULPRIT_TIMES      a folder that gets each line of a shell test with the second at which it came, as FOLDER_NAME.log
#   CULPRIT_TEST_PATIENCE   multiplies limits that bound a hang
#   CI=true            a test that skips fails, unless may_skip.txt lists it
set -uo pipefail
here=$(dirname "$0")
program=$1
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH # Debian's programs: a version manager's stand-in for python3 takes 0.8 s a call
said=$(mktemp)
trap 'rm -f "$said" "$said.times"' EXIT
limit() { awk -v s="$1" -v p="${CULPRIT_TEST_PATIENCE:-1}" 'BEGIN { printf "%d", s * (p > 5 ? 5 : p) }'; }

timed() {
	[[ -n ${CULPRIT_TIMES:-} ]] || exec cat
	local line
	while IFS= read -r line; do
		printf '%s\n' "$line"
		printf '%4d %s\n' $SECONDS "$line" >&3
	done 3>"$CULPRIT_TIMES/$log"
}
name=${program#*tests/}
[[ $program == *.t ]] || name=${name%_test}_test.c
log=${name//\//_}.log
began=$(date +%s%N)
if [[ $program == *.t ]]; then
	CULPRIT_KEEP=${CULPRIT_FAILURES:+$CULPRIT_FAILURES/${log%.log}} timeout --foreground -k 60 "$(limit 600)" bash "$program" 2>&1 | timed | tee "$said"
	rc=${PIPESTATUS[0]}
else
	leaks=1
	# Leaks are not looked for where a process cannot stop its own threads: under ptrace, in namespaces without their /proc.
	[[ $program != */agent/* && $program != */primitives/* && $program != */capture/* ]] || leaks=0
	# cmocka calls a skipped test "not ok N # SKIP", which prove takes for a failure.
	ASAN_OPTIONS=detect_leaks=$leaks UBSAN_OPTIONS=print_stacktrace=1 timeout --foreground -k 10 "$(limit 300)" "$program" 2>&1 |
		sed -u 's/^not ok \([0-9]* # SKIP\)/ok \1/' | tee "$said"
	rc=${PIPESTATUS[0]}
fi
ended=$(date +%s%N)

# Findings of sanitizers in a program that the test started do not always end the test.
if [[ $rc -eq 0 ]] && grep -qE 'runtime error:|ERROR: (Address|Leak)Sanitizer' "$said"; then
	echo "# a sanitizer found something: this test fails"
	rc=99
fi
read -r checks failed skipped < <(awk '/^(not )?ok/ { n++ } /^not ok/ && !/# (SKIP|TODO)/ { f++ } /^ok.*# [Ss][Kk][Ii][Pp]/ || /^1\.\.0 *# *[Ss][Kk][Ii][Pp]/ { s++ }
	END { print n + 0, f + 0, s + 0 }' "$said")
[[ $rc -eq 124 || $rc -eq 137 ]] && echo "# ended after $(((ended - began) / 1000000000)) s: it hung" | tee -a "$said"
if [[ $rc -eq 0 && $skipped -gt 0 && ${CI:-} == true ]]; then
	# A line of the list: a test, a space, and a pattern of what it may skip, with the reason.
	while IFS= read -r line; do
		awk -v name="ci/tests/$name" -v line="$line" '$1 == name { p = $0; sub(/^[^ ]* /, "", p); sub(/ *# .*/, "", p); if (line ~ p) found = 1 } END { exit !found }' \
			"$here/may_skip.txt" && continue
		echo "# this must not be skipped in CI (ci/tests/may_skip.txt): $line" | tee -a "$said"
		rc=98
	done < <(grep -iE '^ok.*# SKIP|^1\.\.0 *# *SKIP' "$said")
fi
[[ $rc -ne 0 || $failed -eq 0 ]] || rc=1
if [[ -n ${CULPRIT_RESULTS:-} ]]; then
	times >"$said.times" # in a pipe they would be another shell's
	spent=$(awk -F'[ms ]+' 'NR == 2 { printf "%.1f", $1 * 60 + $2 + $3 * 60 + $4 }' "$said.times")
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "${CULPRIT_PART:-test}" "ci/tests/$name" "$checks" "$failed" "$skipped" \
		"$(awk -v ns=$((ended - began)) 'BEGIN { printf "%.1f", ns / 1e9 }')" "$rc" "$spent" >>"$CULPRIT_RESULTS"
fi
[[ $rc -eq 0 || -z ${CULPRIT_FAILURES:-} ]] || cp "$said" "$CULPRIT_FAILURES/$log"
exit "$rc"
