#!/bin/bash
# Runs the tests of a build with sanitizers (make sanitize): the C tests, then shell tests that bring up no lab; two at a time, but for
# those that measure the kernel or act on it. One finding fails its test; a test that fails without one is run once more, alone. Says
# what each cost. As root; with arguments, only tests whose path holds one of them.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
out=${OUT:-out-asan}
export OUT=$out UBSAN_OPTIONS=print_stacktrace=1
[[ -x $out/culprit ]] || { echo "ci/sanitize.sh: there is no $out/culprit: run 'make sanitize'" >&2; exit 2; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export tmp

one() { # TEST: a line; its name goes to $tmp/found or $tmp/failed
	local said spent code how=ok leaks=1
	said=$(mktemp "$tmp/said.XXXXXX")
	# Leaks are not looked for where a process cannot stop its own threads: under ptrace, in namespaces without their /proc.
	[[ $1 != */agent/* && $1 != */primitives/* && $1 != */capture/* ]] || leaks=0
	TIMEFORMAT='%U %S %R'
	spent=$({ time ASAN_OPTIONS=detect_leaks=$leaks timeout --foreground -k 10 1200 "$1" >"$said" 2>&1; } 2>&1)
	code=$?
	# Findings in a program that the test started do not always end the test.
	if grep -qE 'runtime error:|ERROR: (Address|Leak|Thread)Sanitizer|WARNING: ThreadSanitizer' "$said"; then
		how=FOUND
		echo "$1" >>"$tmp/found"
	elif [[ $code -ne 0 ]] || grep '^not ok' "$said" | grep -qv '# SKIP'; then # cmocka: "not ok N # SKIP"
		how=FAILED
		echo "$1" >>"$tmp/failed"
	elif grep -q '^1\.\.0 # SKIP' "$said"; then how=skipped
	fi
	{
		printf '%-8s %s user system real s  %s\n' "$how" "$spent" "${1#"$OUT"/}"
		[[ $how == ok || $how == skipped ]] || grep -v '^ok ' "$said" | head -n 80 | sed 's/^/    /'
	} >"$said.line"
	cat "$said.line" # in one write, as a rule
	rm -f "$said" "$said.line"
}
export -f one
all() { [[ $# -eq 0 ]] || printf '%s\0' "$@" | xargs -0 -P "$jobs" -n 1 bash -c 'one "$1"' one; }

# Of the shell tests those that neither bring up a lab, nor install, draw in a browser, need another program's server or the benches, or
# bound the address space, of which ASan reserves terabytes.
alone=() others=()
for t in "$out"/tests/*/*_test ci/tests/*/*.t; do
	[[ $t != *.t ]] || ! grep -qE 'lab up|lab_lib|hosts_lib|browser_start|clickhouse_|apt-get|debootstrap|make .*install|dpkg|ulimit -v|\bbench\b' "$t" || continue
	if [[ $# -gt 0 ]]; then
		chosen=
		for word in "$@"; do [[ $t == *"$word"* ]] && chosen=yes; done
		[[ $chosen ]] || continue
	fi
	case $t in */capture/* | */primitives/* | */agent/* | */remote/* | */lab/*) alone+=("$t") ;; *) others+=("$t") ;; esac
done
n=$((${#alone[@]} + ${#others[@]}))
touch "$tmp/found" "$tmp/failed"
jobs=1 && all "${alone[@]}"
jobs=2 && all "${others[@]}"
mapfile -t again <"$tmp/failed"
if [[ ${#again[@]} -gt 0 && ${#again[@]} -le 3 ]]; then
	echo "once more, alone:"
	: >"$tmp/failed"
	jobs=1 && all "${again[@]}"
fi
echo "$n tests, with findings: $(wc -l <"$tmp/found"), failed otherwise: $(wc -l <"$tmp/failed")"
cat "$tmp/found" "$tmp/failed"
[[ $n -gt 0 && ! -s $tmp/found && ! -s $tmp/failed ]]
