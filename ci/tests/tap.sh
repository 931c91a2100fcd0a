# TAP for shell tests: source it, then
#     check NAME COMMAND [ARGUMENT ...]   ok if the command ends with 0; else its output is shown
#     ok NAME, not_ok NAME [WHY]
#     until_true SECONDS COMMAND ...      waits for it; the seconds bound what must not hang, they time nothing
#     skip_all REASON                     ends the test here
#     CULPRIT_FAILURES=FILE               gets each failed test with its output, for runners that do not show it
#     done_testing                        last; the exit code says whether all went well
tap_n=0
tap_failed=0

ok() {
	tap_n=$((tap_n + 1))
	echo "ok $tap_n - $1"
}

not_ok() {
	tap_n=$((tap_n + 1))
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_n - $1"
	[ $# -lt 2 ] || printf '%s\n' "$2" | sed 's/^/# /'
	[ -z "${CULPRIT_FAILURES:-}" ] || printf '%s: %s\n%s\n' "$0" "$1" "$(tail -n 60 <<<"${2:-}")" >>"$CULPRIT_FAILURES"
}

check() {
	local name=$1 said
	shift
	if said=$("$@" 2>&1); then ok "$name"; else not_ok "$name" "$said"; fi
}

until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

done_testing() {
	echo "1..$tap_n"
	[ $tap_failed -eq 0 ]
	exit
}
