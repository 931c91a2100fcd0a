#!/bin/bash
# culprit capture --method throttle: finds the planted waits through shared memory, which messages do not show. Recall 100 %, no
# more than 2 % extra. Root, eBPF.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit helper=$PWD/${OUT:-out}/helpers/causality source=$PWD/ci/tests/helpers/causality.c
[ "$(id -u)" = 0 ] || skip_all "needs root"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/root"
"${OUT:-out}/agent/culprit-agent" trace --tracer ebpf --mode flow --causal -o "$tmp/try" -- true 2>"$tmp/why" || skip_all "no eBPF here: $(cat "$tmp/why")"
rm "$tmp/try" "$tmp/why"
cd "$tmp/root" || exit 1

# capture NAME [OPTION ...] -- COMMAND ...
capture() {
	local name=$1
	shift
	"$culprit" capture -o "$tmp/$name" --root "$tmp/root" --time-limit 5min "$@" >"$tmp/$name.said" 2>&1
}
# edges TRACE: prints "P:N Q:M" as the helper does; each rank is one of its processes and has one thread
edges() {
	"$culprit" log "$1" | awk '{ split($1, own, /[.:]/)
		for (i = 2; i <= NF; i++) if (sub(/^after=/, "", $i)) { split($i, other, /[.:]/); print own[1] ":" own[3] " " other[1] ":" other[3] } }' | sort
}
count() { wc -l <"$1"; }
# compare NAME TRUTH: planted, missing and extra ones
compare() {
	sort "$2" >"$tmp/want"
	edges "$1" >"$tmp/got"
	planted=$(count "$tmp/want") missing=$(comm -23 "$tmp/want" "$tmp/got" | wc -l) extra=$(comm -13 "$tmp/want" "$tmp/got" | wc -l)
}

all=0 all_missing=0 all_extra=0
for spec in "1 3 120 futex" "2 2 100 spin" "3 3 100 nap" "4 4 200 pipe,futex,spin" "5 3 100 tcp,unix"; do
	read -r seed processes steps kinds <<<"$spec"
	if ! capture "t$seed" --method throttle -- "$helper" -k "$kinds" "$tmp/true$seed" "$seed" "$processes" "$steps"; then
		not_ok "waits by $kinds are captured" "$(cat "$tmp/t$seed.said")"
		continue
	fi
	compare "$tmp/t$seed" "$tmp/true$seed"
	if [ "$missing" -ne 0 ] || [ "$extra" -ne 0 ]; then echo "# $kinds: $missing missed, $extra extra of $planted"; cat "$tmp/t$seed.said"; fi
	all=$((all + planted)) all_missing=$((all_missing + missing)) all_extra=$((all_extra + extra))
done
echo "# $all edges planted, $all_missing missed, $all_extra extra"
check "edges were planted" [ "$all" -gt 60 ]
check "throttling finds all of them" [ "$all_missing" -eq 0 ]
check "at most 2 % are extra" [ $((all_extra * 50)) -le "$all" ]
check "the trace says how it was captured" grep -q "^captured *by throttling" "$tmp/t1.said"
! grep -q "warning" "$tmp/t1.said"
check "no wait is reported as missing" [ $? -eq 0 ]

check "a capture by messages" capture m -- "$helper" -k futex "$tmp/truem" 1 3 60
compare "$tmp/m" "$tmp/truem"
check "... shows no wait through shared memory" [ "$(count "$tmp/got")" -eq 0 ]
check "... and says so, with the option that finds them" grep -q "3 processes share memory.* (no wait of any of them is): --method throttle finds them" "$tmp/m.said"
check "... and recommends a second capture" grep -q "captured once; --check captures it twice" "$tmp/m.said"
said=$("$culprit" replay --inventory "$tmp/none.lua" "$tmp/m" 2>&1)
check "a replay of it also warns" grep -q "share memory, but waits through it are not in the trace" <<<"$said"

check "both methods together" capture both --method both -- "$helper" -k pipe,futex "$tmp/trueb" 6 3 60
compare "$tmp/both" "$tmp/trueb"
check "... find all waits" [ "$missing" -eq 0 ]
check "... and no others" [ "$extra" -eq 0 ]
said=$("$culprit" replay --inventory "$tmp/none.lua" "$tmp/both" 2>&1)
check "... so that a replay does not warn" [ "$(grep -c "share memory" <<<"$said")" -eq 0 ]
said=$(grep "^waits: " "$tmp/both.said")
check "... and count the waits that messages do not show: $said" grep -q "^waits: [1-9][0-9]* by messages, 0 of them by these only; [1-9][0-9]* by throttling, [1-9][0-9]* of them by this only$" <<<"$said"
check "... by name" bash -c "grep '^only by throttling: ' '$tmp/both.said' | sed -E 's/^only by throttling: ([0-9]+)\.0:([0-9]+) after ([0-9]+)\.0:([0-9]+)$/\1:\2 \3:\4/' | sort >'$tmp/only' && [ -s '$tmp/only' ] && [ -z \"\$(comm -23 '$tmp/only' '$tmp/want')\" ]"

check "one process of three" capture one --method throttle --nodes 1 --period 2 -- "$helper" -k futex "$tmp/trueo" 1 3 60
check "... is the only one that others wait for" [ "$(edges "$tmp/one" | sed 's/.* //; s/:.*//' | sort -u | wc -l)" -eq 1 ]

if ${CC:-gcc} -D_GNU_SOURCE -static -O1 -pthread -o "$tmp/program" "$source" 2>/dev/null; then
	check "a static program" capture static --method throttle -- "$tmp/program" -k futex "$tmp/trues" 7 2 60
	compare "$tmp/static" "$tmp/trues"
	check "... like any other" [ "$((planted > 3)) $missing $extra" = "1 0 0" ]
fi

! capture twisted --method throttle -- "$helper" -k futex "$tmp/true" 9 3 30 "$tmp/counter"
check "another number of calls is refused" [ ! -e "$tmp/twisted" ]
check "... and the first call that differs is named" grep -q "two runs of the command differ: call [0-9]* of rank 1 (thread 0) is no call in the first run, stat of 'file1'.* in the second" "$tmp/twisted.said"
! capture long --method throttle --time-limit 1s -- bash -c ': >x; exec sleep 1000.5'
check "a command that takes too long is ended: $(cat "$tmp/long.said")" grep -q "ran for more than 1 s and has been ended" "$tmp/long.said"
check "... with all that it started" bash -c "! pgrep -f '^sleep 1000\.5' >/dev/null"
left() { find "$tmp" -maxdepth 1 -name '.culprit*' | wc -l; }
check "only the traces remain" [ "$(left)" -eq 0 ]
done_testing
