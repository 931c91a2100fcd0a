#!/bin/bash
# syscap compared with strace -f -T on a syscall-heavy load, both writing to a file, in alternation; then the rate at
# which logs are read. Ratios of medians of $1 pairs (7); wanted: slowdown at most half of strace's.
set -eu
out=${OUT:-out}
pairs=${1:-7}
files=${2:-1500}
dir=$(mktemp -d /dev/shm/culprit-bench-XXXXXX)
trap 'rm -rf "$dir"' EXIT

median() { sort -n "$1" | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

load="$out/bench/trace_load"
for i in $(seq "$pairs"); do
	"$load" "$dir" "$files" >>"$dir/plain"
	strace -f -T -o "$dir/strace.log" "$load" "$dir" "$files" >>"$dir/strace"
	rm -f "$dir/strace.log"
	"$out/agent/culprit-agent" trace --tracer ptrace --out "$dir/log" -- "$load" "$dir" "$files" >>"$dir/ptrace"
	"$out/culprit" log --summary "$dir/log" | tail -n 1 >"$dir/total"
	[ "$i" = "$pairs" ] || rm -f "$dir/log"
done
plain=$(median "$dir/plain") strace=$(median "$dir/strace") ptrace=$(median "$dir/ptrace")
awk -v p="$plain" -v t="$strace" -v s="$ptrace" -v n="$pairs" -v calls="$(awk '{print $7}' "$dir/total")" 'BEGIN {
	printf "%d calls, medians of %d: plain %.3f s, strace -f -T -o FILE %.3f s, ptrace %.3f s\n", calls, n, p, t, s
	printf "time added: strace %.0f %%, ptrace %.0f %%; ptrace / strace = %.2f (wanted: at most 0.50)\n",
		100 * (t / p - 1), 100 * (s / p - 1), (s - p) / (t - p)
}'
"$out/culprit" log "$dir/log" | sed -n 2p
rm -f "$dir/log"
"$out/bench/trace_rate" "$dir"
