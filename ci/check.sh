#!/bin/bash
# Builds and runs tests, and ends with one table.
#
#   ci/check.sh PART...   lint, unit, kernel, pages, lab: see PARTS below
#   ci/check.sh FOLDER|ci/tests/FOLDER/NAME_test.c|ci/tests/FOLDER/NAME.t
#
# OUT: the build; ASAN: the build of the C tests, under ASan and UBSan; JOBS: for make. CI=true: nothing may be skipped that
# ci/tests/may_skip.txt does not list. Exit codes: 0 all passed, 1 a test failed, 2 usage or build.
#
# PARTS
#   lint    static checks
#   unit    C tests that need neither root nor lab nor network
#   kernel  C tests of the agent, the primitives and the tracers, and of what they trace; as root
#   pages   shell tests that look at pages in a browser
#   lab     all other shell tests, most of them on labs; as root
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
out=${OUT:-out} asan=${ASAN:-${OUT:-out}-asan} jobs=${JOBS:-$(nproc)}
work=$out/check
began=$SECONDS
unset MAKEFLAGS MFLAGS MAKELEVEL # of the make that called: this one's jobs are its own

die() { # also in a part that runs beside others: what it could not build ends the run with 2
	echo "ci/check.sh: $*" >&2
	[[ ! -d $work ]] || echo "$*" >>"$work/broken"
	exit 2
}
build() { # GOAL...: of the plain build
	make -s --no-print-directory -j"$jobs" OUT="$out" WERROR="${WERROR:-}" "$@" || die "cannot build: $*"
}
build_asan() { make -s --no-print-directory -j"$jobs" OUT="$out" ASAN="$asan" WERROR="${WERROR:-}" "asan-$1" || die "cannot build the tests under sanitizers: $1"; }

# ---- which programs belong to which part

# Those that take longest come first: their seconds in a whole run are in ci/tests/seconds.txt.
longest_first() { awk 'FILENAME != "-" { s[$2] = $1; next } { print ($0 in s ? s[$0] : 5), $0 }' ci/tests/seconds.txt - | sort -k1,1nr -k2 | cut -d' ' -f2-; }
kernel_dirs=$(sed -n 's/^KERNEL_DIRS *:= *//p' Makefile | tr ' ' '|')
[[ $kernel_dirs == *'|'* ]] || die "the Makefile has no KERNEL_DIRS"
unit() { printf '%s\n' ci/tests/*/*_test.c | grep -vE "^ci/tests/($kernel_dirs)/" | longest_first; }
kernel() { printf '%s\n' ci/tests/*/*_test.c | grep -E "^ci/tests/($kernel_dirs)/" | longest_first; }
pages() { grep -lE 'browser_start|chromium' ci/tests/*/*.t | longest_first; }
# A test for which this machine itself is a node: disks of labs must not come and go, so it runs alone.
machine=ci/tests/replay/replay_ssh.t
lab() { printf '%s\n' ci/tests/*.t ci/tests/*/*.t | grep -vxF -e "$(pages)" -e "$machine" -e ci/tests/fuzz.t | longest_first; }

# ---- running them

# One factor for all limits that bound a hang: how much longer than its processor time a fixed piece of work takes now. It
# is doubled, since the suite loads the machine itself.
patience() {
	local TIMEFORMAT='%R %U %S' spent
	spent=$({ time for ((i = 0; i < 100; i++)); do /bin/true; done; } 2>&1)
	awk '{ r = $1 / ($2 + $3 + 0.001); r = r < 1 ? 1 : r; r *= 2; if (r > 20) r = 20; print r }' <<<"$spent"
}

# pass PART BUILD JOBS TEST...: through prove. What each program did goes to $work/results (run_test.sh).
pass() {
	local part=$1 build=$2 n=$3 t log programs=()
	shift 3
	[[ $# -gt 0 ]] || return 0
	log=$work/$part.$BASHPID.$#.prove
	for t in "$@"; do
		case $t in
		*_test.c) t=$build/tests/${t#ci/tests/} && programs+=("${t%.c}") ;;
		*) programs+=("$t") ;;
		esac
	done
	"${as_root[@]}" env CULPRIT_PART="$part" OUT="$build" prove -Q --merge --jobs "$n" --exec ci/tests/run_test.sh "${programs[@]}" \
		>"$log" 2>&1 || cat "$log" >>"$work/prove-failed"
}
run_lint() {
	local goal rc said TIMEFORMAT='%R %U %S'
	build "$out/flags.mk"
	for goal in format lint-shell lint-lua history headers lint-c; do
		{ time said=$(make -s --no-print-directory -j"$jobs" OUT="$out" $goal 2>&1); } 2>"$work/lint-time"
		rc=$?
		awk -v goal=$goal -v rc=$rc '{ printf "lint\tmake %s\t1\t%d\t0\t%.1f\t%d\t%.1f\n", goal, rc != 0, $1, rc, $2 + $3 }' "$work/lint-time" >>"$work/results"
		[[ $rc -eq 0 ]] || printf '%s\n' "$said" >"$CULPRIT_FAILURES/make_$goal.log"
	done
}
# Some C tests compute so much that under sanitizers they take minutes; others ask more of memory without them.
plain_only='judge/(peer_robust|peer_threshold|detector)|experiment/resume'
sanitized() { grep -vE "/($plain_only)_test.c$"; }
unsanitized() { grep -E "/($plain_only)_test.c$|$(grep -l __SANITIZE_ADDRESS__ ci/tests/*/*_test.c | paste -sd'|')"; }
build_unsanitized() { # PART: those of its programs that run without sanitizers
	local goals=() t
	mapfile -t list < <($1 | unsanitized)
	for t in "${list[@]}"; do t=$out/${t#ci/} && goals+=("${t%.c}"); done
	build programs "${goals[@]}"
}
c_tests() { # PART JOBS: its programs, in both builds
	local list
	mapfile -t list < <($1 | unsanitized)
	pass "$1" "$out" "$2" "${list[@]}"
	mapfile -t list < <($1 | sanitized)
	pass "$1" "$asan" "$2" "${list[@]}"
}
run_unit() {
	build_asan unit-programs
	build_unsanitized unit
	c_tests unit "$jobs"
}
build_kernel() {
	build_asan test-programs
	build_unsanitized kernel
}
# Programs that measure the kernel, and act on it, run one at a time; so do those of remote/, whose leases last a second.
run_kernel() {
	c_tests kernel 1
}
run_pages() {
	mapfile -t list < <(pages)
	pass pages "$out" 1 "${list[@]}"
}
run_fuzz() {
	pass lab "$out" 1 ci/tests/fuzz.t
}
run_lab() {
	mapfile -t list < <(lab)
	pass lab "$out" "${LABS:-3}" "${list[@]}"
}
run_machine() { pass lab "$out" 1 "$machine"; }

# Lines of programs as they end, with how many there are and about how long the others take.
shown=0
show() {
	local total ended
	[[ -e $work/results ]] || return 0
	total=$(wc -l <"$work/all")
	ended=$(wc -l <"$work/results")
	awk -F'\t' -v from="$shown" -v to="$ended" -v total="$total" -v gone=$((SECONDS - began)) '
		FILENAME ~ /seconds.txt$/ { split($0, w, " "); s[w[2]] = w[1]; next }
		FILENAME ~ /all$/ { all[$1] = 1; expected += ($1 in s) ? s[$1] : 5; next }
		FNR > to { exit }
		{ source = $2 } # some C tests run in both builds
		!seen[source]++ { n++; done += (source in s) ? s[source] : 5 }
		FNR > from {
			left = done > 0 ? gone * (expected - done) / done : 0
			if (left < 0) left = 0
			how = ($4 > 0 || $7 != 0) ? "FAILED" : "ok"
			skipped = ($5 > 0) ? "  (" $5 " skipped)" : ""
			printf("%-6s %-6s %6.1f s  %3d of %d  about %d:%02d left  %s%s\n", how, $1, $6, n, total, left / 60, left % 60, source, skipped)
		}' ci/tests/seconds.txt "$work/all" "$work/results"
	shown=$ended
}
wait_all() {
	while [[ $(jobs -r) ]]; do show; sleep 1; done
	wait
	show
}
# Shells ignore SIGINT in what they start in the background, so an interrupt is passed on as SIGTERM, children first.
end_tree() { local c; for c in $(pgrep -P "$1"); do end_tree "$c"; done; [[ $1 == "$$" ]] || kill -TERM "$1" 2>/dev/null; }
trap 'trap "" INT TERM; echo "interrupted: labs of tests are taken down"; end_tree $$; wait; exit 130' INT TERM

# ---- what to run

[[ $# -gt 0 ]] || die "which part? lint, unit, kernel, pages, lab; or a folder of ci/tests, or a test"
tests=() parts=()
for word in "$@"; do
	case $word in
	lint | unit | kernel | pages | lab) parts+=("$word") ;;
	ci/tests/*_test.c | ci/tests/*.t) [[ -f $word ]] || die "there is no '$word'"; tests+=("$word") ;;
	*)
		folder=${word#ci/tests/}
		[[ -d ci/tests/${folder%/} ]] || die "there is no part or folder of ci/tests '$word'"
		mapfile -t -O ${#tests[@]} tests < <(ls "ci/tests/${folder%/}"/*_test.c "ci/tests/${folder%/}"/*.t 2>/dev/null)
		;;
	esac
done
has() { [[ " ${parts[*]-} " == *" $1 "* ]]; }

as_root=()
if [[ $EUID -ne 0 && "${parts[*]-} ${tests[*]-}" =~ kernel|lab|\.t|/($kernel_dirs)/ ]]; then
	command -v sudo >/dev/null || die "tests of the lab, agent and tracers need root, and there is no sudo; 'make unit' needs none"
	echo "tests of the lab, agent and tracers need root: asking sudo"
	as_root=(sudo "--preserve-env=CI,CULPRIT_FAILURES,CULPRIT_RESULTS,CULPRIT_TIMES,CULPRIT_TEST_PATIENCE")
fi
CULPRIT_TEST_PATIENCE=$(patience)
export CULPRIT_TEST_PATIENCE CULPRIT_FAILURES=$PWD/$out/failures CULPRIT_RESULTS=$PWD/$work/results CULPRIT_TIMES=$PWD/$work/times
rm -rf "$work" "$CULPRIT_FAILURES" "$CULPRIT_FAILURES.first"
mkdir -p "$CULPRIT_TIMES" "$CULPRIT_FAILURES"
{
	printf '%s\n' "${tests[@]}"
	! has lint || printf 'make %s\n' format lint-shell lint-lua history headers lint-c
	for part in unit kernel pages lab; do ! has $part || $part; done
	! has lab || printf '%s\n' ci/tests/fuzz.t "$machine"
} | grep . >"$work/all"

if [[ ${#tests[@]} -gt 0 ]]; then
	goals=()
	helpers=(ci/tests/helpers/*.c)
	helpers=("${helpers[@]/#ci\/tests/$asan}")
	helpers=("${helpers[@]%.c}")
	for t in "${tests[@]}"; do
		if [[ $t == *.c ]]; then t=${t#ci/}; goals+=("$asan/${t%.c}"); fi
	done
	if [[ ${#goals[@]} -gt 0 ]]; then
		for g in "${goals[@]}"; do [[ ! $g =~ /($kernel_dirs)/ ]] || { goals+=("$asan/culprit" "$asan/agent/culprit-agent" "${helpers[@]}"); break; }; done
		CFLAGS='-O1 -g' make -s --no-print-directory -j"$jobs" OUT="$asan" SANITIZE=address,undefined "${goals[@]}" || exit 2
	fi
	[[ " ${tests[*]} " != *.t\ * ]] || build tools
	[[ " ${tests[*]} " != *fuzz.t\ * ]] || build fuzz
	c=() sh=()
	for t in "${tests[@]}"; do if [[ $t == *.c ]]; then c+=("$t"); else sh+=("$t"); fi; done
	{ pass test "$asan" 1 "${c[@]}"; pass test "$out" 1 "${sh[@]}"; } &
	wait_all
else
	# One part after the other, the fastest first: programs of the kernel have leases of a second, which labs next to them
	# broke. A browser and a fuzzer keep one core each, and neither measures time.
	{
		! { has lab || has pages || has kernel; } || build tools
		! has lint || run_lint
		! has unit || run_unit
		! has kernel || build_kernel
		! has lab || build fuzz
		! has kernel || run_kernel
		! has lab || run_fuzz &
		! has pages || run_pages
		wait
		if has lab; then
			run_lab
			run_machine
		fi
	} &
	wait_all
fi

# Three failures at most may be the machine's: each of these tests must pass alone. They are named, so that they get mended.
mapfile -t again < <(awk -F'\t' '($4 > 0 || $7 != 0) && $2 !~ /^make / { print $2 }' "$work/results" | sort -u)
if [[ ${#parts[@]} -gt 1 && ${#again[@]} -gt 0 && ${#again[@]} -le 3 ]]; then
	awk -F'\t' '!(($4 > 0 || $7 != 0) && $2 !~ /^make /)' "$work/results" >"$work/results.passed"
	mv "$work/results" "$work/results.first"
	mv "$work/results.passed" "$work/results"
	rm -f "$work/prove-failed"
	mv "$CULPRIT_FAILURES" "$CULPRIT_FAILURES.first"
	mkdir "$CULPRIT_FAILURES"
	shown=$(wc -l <"$work/results")
	echo "once more, alone: ${again[*]}; what they said at first is in $CULPRIT_FAILURES.first"
	{
		for t in "${again[@]}"; do
			case $t in
			*.t) pass again "$out" 1 "$t" ;;
			*) if [[ $t =~ /($plain_only)_test ]]; then pass again "$out" 1 "$t"; else pass again "$asan" 1 "$t"; fi ;;
			esac
		done
	} &
	wait_all
	echo "UNSTABLE, failed beside others: ${again[*]}"
fi

# ---- what came of it

ci/tests/summary.sh "$work" "$out/failures" $((SECONDS - began))
