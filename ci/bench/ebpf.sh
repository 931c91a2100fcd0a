#!/bin/bash
# Cost of the in-kernel tracer, as medians of $1 (9) interleaved rounds: CPU time of a getppid and of a small pread,
# untraced, untraced while another process is traced, traced as events, and traced as sums; then the share of lost records
# when all cores only make calls; then the tracer's own CPU time in sums mode at 100,000 calls a second.
set -eu
out=${OUT:-out}
rounds=${1:-9}
calls=${2:-200000}
dir=$(mktemp -d /dev/shm/culprit-bench-XXXXXX)
idle=
trap '[ -z "$idle" ] || kill "$idle"; rm -rf "$dir"' EXIT
load=$out/bench/ebpf_calls

trace() { # MODE COMMAND...
	local mode=$1
	shift
	rm -f "$dir/log"
	"$out/agent/culprit-agent" trace --tracer ebpf --mode "$mode" --out "$dir/log" -- "$@"
}

median() { # FILE FIELD
	awk -v f="$2" '{print $f}' "$1" | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
}

sleep 1000 &
idle=$!
for _ in $(seq "$rounds"); do
	"$load" cost "$calls" >>"$dir/none"
	trace events "$load" cost "$calls" >>"$dir/events"
	trace sums "$load" cost "$calls" >>"$dir/sums"
	rm -f "$dir/other.log" "$dir/ready"
	"$out/agent/culprit-agent" trace --tracer ebpf --mode sums --out "$dir/other.log" --ready-fd 3 -p "$idle" 3>"$dir/ready" &
	tracer=$!
	until [ -s "$dir/ready" ]; do sleep 0.05; done
	"$load" cost "$calls" >>"$dir/attached"
	kill "$tracer" && wait "$tracer"
done
for how in none attached events sums; do
	echo "$how: getppid $(median "$dir/$how" 1) ns, pread $(median "$dir/$how" 2) ns"
done

made=$(trace events "$load" load "$(nproc)" 5)
lost=$("$out/culprit" log "$dir/log" | sed -n 's/.* records, \([0-9]*\) lost.*/\1/p')
awk -v m="$made" -v l="$lost" 'BEGIN {
	printf "all cores busy with calls: %d made in 5 s, %d lost: %.4f %% (wanted: below 0.01 %%)\n", m, l, 100 * l / m
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
