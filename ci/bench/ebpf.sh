#!/bin/bash
# Cost of the in-kernel tracer, as medians of $1 (9) interleaved rounds, and of the ratios to the untraced run of the same
# round: CPU time of a getppid, of a small pread, and of a small message sent and received over TCP: untraced, untraced while another process is traced, traced as events, as flows,
# as flows with heads, and as sums; then the share of lost records when all cores only make calls, and when all exchange
# messages traced as flows with heads; then the tracer's own CPU time in sums mode at 100,000 calls a second.
set -eu
out=${OUT:-out}
rounds=${1:-9}
calls=${2:-200000}
dir=$(mktemp -d /dev/shm/culprit-bench-XXXXXX)
idle=
trap '[ -z "$idle" ] || kill "$idle"; rm -rf "$dir"' EXIT
load=$out/bench/ebpf_calls

trace() { # MODE COMMAND...
	local mode=$1 heads=
	shift
	[ "$mode" != flow+heads ] || heads=--heads
	rm -f "$dir/log"
	"$out/agent/culprit-agent" trace --tracer ebpf --mode "${mode%+heads}" $heads --out "$dir/log" -- "$@"
}

median() { # FILE FIELD
	awk -v f="$2" '{print $f}' "$1" | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
}

sleep 1000 &
idle=$!
for _ in $(seq "$rounds"); do
	"$load" cost "$calls" >>"$dir/none"
	trace events "$load" cost "$calls" >>"$dir/events"
	trace flow "$load" cost "$calls" >>"$dir/flow"
	trace flow+heads "$load" cost "$calls" >>"$dir/flow+heads"
	trace sums "$load" cost "$calls" >>"$dir/sums"
	rm -f "$dir/other.log" "$dir/ready"
	"$out/agent/culprit-agent" trace --tracer ebpf --mode sums --out "$dir/other.log" --ready-fd 3 -p "$idle" 3>"$dir/ready" &
	tracer=$!
	until [ -s "$dir/ready" ]; do sleep 0.05; done
	"$load" cost "$calls" >>"$dir/attached"
	kill "$tracer" && wait "$tracer"
done
ratio() { # HOW FIELD: to the untraced run of the same round
	paste -d' ' "$dir/$1" "$dir/none" | awk -v f="$2" '{print $f / $(f + 3)}' >"$dir/ratios"
	printf '%.3f' "$(median "$dir/ratios" 1)"
}

for how in none attached events flow flow+heads sums; do
	echo "$how: getppid $(median "$dir/$how" 1) ns, pread $(median "$dir/$how" 2) ns, message $(median "$dir/$how" 3) ns; $(ratio "$how" 1) $(ratio "$how" 2) $(ratio "$how" 3) times untraced"
done

made=$(trace events "$load" load "$(nproc)" 5)
lost=$("$out/culprit" log "$dir/log" | sed -n 's/.* records, \([0-9]*\) lost.*/\1/p')
awk -v m="$made" -v l="$lost" 'BEGIN {
	printf "all cores busy with calls: %d made in 5 s, %d lost: %.4f %% (wanted: below 0.01 %%)\n", m, l, 100 * l / m
}'

# shellcheck disable=SC2016 # the inner shell's
on_all='for i in $(seq "$2"); do "$1" messages 5 & done; wait'
messages=$(bash -c "$on_all" - "$load" "$(nproc)" | awk '{n += $1} END {print n}')
made=$(trace flow+heads bash -c "$on_all" - "$load" "$(nproc)" | awk '{n += $1} END {print n}')
lost=$("$out/culprit" log "$dir/log" | sed -n 's/.* records, \([0-9]*\) lost.*/\1/p')
awk -v u="$messages" -v m="$made" -v l="$lost" 'BEGIN {
	printf "all cores busy with messages, flow+heads: %d in 5 s (untraced %d: %.2f times), %d records lost\n", m, u, u / m, l
}'

rm -f "$dir/log"
"$load" rate 100000 10 >"$dir/made" &
pid=$!
"$out/agent/culprit-agent" trace --tracer ebpf --mode sums --out "$dir/log" -p "$pid" &
tracer=$!
sleep 8
ticks() { awk '{print $14 + $15}' "/proc/$tracer/stat"; }
awk -v t="$(ticks)" -v hz="$(getconf CLK_TCK)" 'BEGIN {
	printf "sums at 100,000 calls a second: %.2f %% of a core for the tracer, start included (wanted: below 5 %%)\n", 100 * t / hz / 8
}'
wait "$pid"
wait "$tracer"
