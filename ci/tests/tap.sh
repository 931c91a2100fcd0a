# TAP for shell tests: source it, then
#     check NAME COMMAND [ARGUMENT ...]   ok if the command ends with 0; else its output is shown
#     ok NAME, not_ok NAME [WHY]
#     until_true SECONDS COMMAND ...      waits for it; the seconds bound what must not hang, they time nothing
#     skip_all REASON                     ends the test here
#     CULPRIT_TEST_PATIENCE=N             until_true waits N times as long (ci/check.sh measures N at its start)
#     CULPRIT_KEEP=FOLDER                 gets the logs of the test's lab and runs at the first failed check
#     done_testing                        last; the exit code says whether all went well
tap_n=0
tap_failed=0

ok() {
	tap_n=$((tap_n + 1))
	echo "ok $tap_n - $1"
}

# The line that called check or not_ok; if that is in a function, also the line of the test that called the function.
tap_caller() {
	local i=1 last=$((${#BASH_SOURCE[@]} - 1))
	while [ $i -lt $last ] && [[ ${BASH_SOURCE[i]} == */tap.sh ]]; do i=$((i + 1)); done
	printf '# at %s:%s' "${BASH_SOURCE[i]}" "${BASH_LINENO[i - 1]}"
	[ $i -ge $last ] || printf ', called by line %s' "${BASH_LINENO[last - 1]}"
	echo
}

# What a look at a failure needs, before the test removes it: texts of at most 1 MiB in its lab, its runs and its folder.
tap_keep() {
	local from
	[ -n "${CULPRIT_KEEP:-}" ] && [ ! -e "$CULPRIT_KEEP" ] || return 0
	for from in "${tmp:-}" "${lab:-}" "${dir:-}"; do
		[ -n "$from" ] && [ -d "$from" ] || continue
		mkdir -p "$CULPRIT_KEEP"
		find "$from" -xdev -type f -size -1024k \( -name '*.log' -o -name '*.json' -o -name '*.lua' -o -name 'said*' -o -name 'log*' -o -name 'table*' \) \
			-exec cp --parents -t "$CULPRIT_KEEP" {} + 2>/dev/null
	done
	[ ! -d "$CULPRIT_KEEP" ] || echo "# its logs are in $CULPRIT_KEEP"
}

not_ok() {
	tap_n=$((tap_n + 1))
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_n - $1"
	tap_caller
	[ $# -lt 2 ] || printf '%s\n' "$2" | sed 's/^/# /'
	tap_keep
}

check() {
	local name=$1 said
	shift
	if said=$("$@" 2>&1); then ok "$name"; else not_ok "$name" "${said:-failed: $*}"; fi
}

until_true() {
	local end
	end=$(awk -v s=$SECONDS -v bound="$1" -v n="${CULPRIT_TEST_PATIENCE:-1}" 'BEGIN { printf "%d", s + bound * (n > 1 ? n : 1) }')
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

# Commands for 'check', about what must not be there. '! COMMAND | grep' would also hold if the command crashed or the file were missing.
#     prints_without PATTERN CODE COMMAND ...   COMMAND ends with CODE and prints something, no line of which matches (grep -E, by bytes)
#     lacks PATTERN FILE ...                    each FILE has content, no line of which matches
prints_without() {
	local pattern=$1 want=$2 said got
	shift 2
	said=$(mktemp)
	"$@" >"$said" 2>&1
	got=$?
	[ $got = "$want" ] && lacks "$pattern" "$said"
	set -- $?
	[ "$1" = 0 ] || { echo "exit code $got, expected $want, without '$pattern':"; head -c 4000 "$said"; }
	rm -f "$said"
	return "$1"
}
lacks() {
	local pattern=$1 file said got
	shift
	for file in "$@"; do
		[ -s "$file" ] || { echo "$file is missing or empty"; return 1; }
	done
	said=$(LC_ALL=C grep -aEn -- "$pattern" "$@")
	got=$?
	[ $got = 1 ] || { echo "$said"; return 1; }
}
