#!/bin/bash
# Runs the tests of a build with sanitizers (make sanitize): the C tests, then shell tests that bring up no lab. One finding fails
# its test. Says what each cost. As root; with arguments, only tests whose path holds one of them.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
out=${OUT:-out-asan}
export OUT=$out UBSAN_OPTIONS=print_stacktrace=1
[[ -x $out/culprit ]] || { echo "ci/sanitize.sh: there is no $out/culprit: run 'make sanitize'" >&2; exit 2; }

# Shell tests that neither bring up a lab, nor install, draw in a browser, need another program's server, or bound the address
# space, of which ASan reserves terabytes.
shell=()
for t in ci/tests/*/*.t; do
	grep -qE 'lab up|lab_lib|hosts_lib|browser_start|clickhouse_|apt-get|debootstrap|make .*install|dpkg|ulimit -v' "$t" || shell+=("$t")
done
tests=("$out"/tests/*/*_test "${shell[@]}")

said=$(mktemp)
trap 'rm -f "$said"' EXIT
bad=() n=0
TIMEFORMAT='%U %S %R'
for t in "${tests[@]}"; do
	if [[ $# -gt 0 ]]; then
		chosen=
		for word in "$@"; do [[ $t == *"$word"* ]] && chosen=yes; done
		[[ $chosen ]] || continue
	fi
	n=$((n + 1))
	# Leaks are not looked for where a process cannot stop its own threads: under ptrace, in namespaces without their /proc.
	leaks=1
	[[ $t != */agent/* && $t != */primitives/* && $t != */capture/* ]] || leaks=0
	spent=$({ time ASAN_OPTIONS=detect_leaks=$leaks "$t" >"$said" 2>&1; } 2>&1)
	code=$?
	how=ok
	# Findings in a program that the test started do not always end the test.
	if grep -qE 'runtime error:|ERROR: (Address|Leak|Thread)Sanitizer|WARNING: ThreadSanitizer' "$said"; then how=FOUND
	elif [[ $code -ne 0 ]] || grep -q '^not ok' "$said"; then how=FAILED
	elif grep -q '^1\.\.0 # SKIP' "$said"; then how=skipped
	fi
	printf '%-8s %s user system real s  %s\n' "$how" "$spent" "${t#"$out"/}"
	[[ $how == ok || $how == skipped ]] || { bad+=("$t"); grep -v '^ok ' "$said" | head -n 80 | sed 's/^/    /'; }
done
echo "$n tests, ${#bad[@]} with findings${bad[*]:+: ${bad[*]}}"
[[ ${#bad[@]} -eq 0 && $n -gt 0 ]]
