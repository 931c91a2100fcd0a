#!/bin/bash
# Finds planted causality in programs whose processes exchange messages by pipe, Unix socket and TCP, and write down the edges
# that follow. Recall 100 %, no more than 2 % extra. Root, eBPF.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit helper=$PWD/${OUT:-out}/helpers/causality
[ "$(id -u)" = 0 ] || skip_all "needs root"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/root"
"${OUT:-out}/agent/culprit-agent" trace --tracer ebpf --mode flow --causal -o "$tmp/try" -- true 2>"$tmp/why" || skip_all "no eBPF here: $(cat "$tmp/why")"

# capture NAME [OPTION ...] -- ARGUMENT ...: captures the helper with these arguments
capture() {
	local name=$1
	shift
	local options=()
	while [ "$1" != -- ]; do options+=("$1"); shift; done
	shift
	"$culprit" capture -o "$tmp/$name" --root "$tmp/root" --time-limit 5min "${options[@]}" -- "$helper" "$@" >"$tmp/$name.said" 2>&1
}
# edges TRACE: prints "P:N Q:M" as the helper does; each rank is one of its processes and has one thread
edges() {
	"$culprit" log "$1" | awk '{ split($1, own, /[.:]/)
		for (i = 2; i <= NF; i++) if (sub(/^after=/, "", $i)) { split($i, other, /[.:]/); print own[1] ":" own[3] " " other[1] ":" other[3] } }' | sort
}
cd "$tmp/root" || exit 1
planted=0 missing=0 extra=0
for spec in "1 2 60" "2 3 200" "3 5 400" "4 8 800" "5 8 2000" "6 6 3000"; do
	read -r seed processes steps <<<"$spec"
	if ! capture "t$seed" -- "$tmp/true$seed" "$seed" "$processes" "$steps"; then
		not_ok "seed $seed is captured" "$(cat "$tmp/t$seed.said")"
		continue
	fi
	sort "$tmp/true$seed" >"$tmp/want"
	edges "$tmp/t$seed" >"$tmp/got"
	planted=$((planted + $(wc -l <"$tmp/want")))
	missing=$((missing + $(comm -23 "$tmp/want" "$tmp/got" | wc -l)))
	extra=$((extra + $(comm -13 "$tmp/want" "$tmp/got" | wc -l)))
done
echo "# $planted edges planted, $missing missed, $extra extra"
check "edges were planted" [ "$planted" -gt 500 ]
check "all of them are found" [ "$missing" -eq 0 ]
check "at most 2 % are extra" [ $((extra * 50)) -le "$planted" ]
check "two runs of the same program are equal" capture same --check -- "$tmp/true" 9 4 200
! capture twisted --check -- "$tmp/true" 9 4 200 "$tmp/counter"
said=$(cat "$tmp/twisted.said")
check "another number of calls is refused" [ ! -e "$tmp/twisted" ]
check "... and the first call that differs is named" grep -q "two runs of the command differ: call [0-9]* of rank 1 (thread 0) is no call in the first run, stat of 'file1'.* in the second" <<<"$said"
done_testing
