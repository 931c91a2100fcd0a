#!/bin/bash
# On each kernel of the image the tracers load, and what they record is what strace records.
. "$(dirname "$0")/lib.sh"
kernels=${VM_KERNELS:-$(ls "$OUT/vm/image/kernels")}
agent="/root/agent/ld-linux-x86-64.so.2 --library-path /root/agent /root/agent/culprit-agent"

# How often each call was made, sorted by name. Left out: execve, which begins the trace, and brk, since the size of the heap
# depends on where the kernel places it.
by_name() { grep -vx 'execve\|brk' | sort | uniq -c | awk '{ print $2, $1 }'; }
of_strace() { sed -nE 's/^[0-9]+ +([a-z0-9_]+)\(.*/\1/p' "$1" | by_name; }
of_log() { culprit log --json "$1" | sed -nE 's/.*"type":"call".*"call":"([a-z0-9_]+)".*/\1/p' | by_name; }
# Sums have classes: the calls of these are counted in each.
classes_of_strace() {
	of_strace "$1" | awk '
		/^(read|pread64|recvfrom) / { n["read"] += $2 }
		/^(write|pwrite64|sendto) / { n["write"] += $2 }
		/^close / { n["close"] += $2 }
		END { for (k in n) print k, n[k] }' | sort
}
classes_of_log() {
	culprit log --json "$1" | sed -nE 's/.*"type":"sum".*"class":"(read|write|close)".*"messages":false.*"count":([0-9]+),.*/\1 \2/p' |
		awk '{ n[$1] += $2 } END { for (k in n) print k, n[k] }' | sort
}
whole() { culprit log --json "$1" | tail -n 1 | grep -q '"type":"end".*"lost":0}'; }

# TRACER AND OPTIONS, each a word: the calls of calls.pl, as strace saw them
traces() {
	local what="$kernel: $*" said seen wanted
	rm -f "$tmp/log"
	# Task storage, by which the programs know a thread, came with Linux 5.11.
	if [[ $kernel == bullseye && $1 == ebpf ]]; then
		said=$(on s1 "rm -f /root/log; $agent trace --tracer $* --out /root/log -- true 2>&1" && echo "it loaded")
		if grep -q "the kernel does not load the tracer (.*)" <<<"$said"; then ok "$what: is refused, with the reason"; else
			not_ok "$what: is refused, with the reason" "$said"
		fi
		return
	fi
	if ! said=$(on s1 "rm -f /root/log; $agent trace --tracer $* --out /root/log -- perl /root/calls.pl /root" 2>&1); then
		not_ok "$what: loads and runs" "$said"
		return
	fi
	ok "$what: loads and runs"
	on s1 'cat /root/log' >"$tmp/log"
	if [[ $* == *sums* ]]; then
		seen=$(classes_of_log "$tmp/log") wanted=$(classes_of_strace "$tmp/strace")
	else
		seen=$(of_log "$tmp/log") wanted=$(of_strace "$tmp/strace")
	fi
	if [ -n "$wanted" ] && [ "$seen" = "$wanted" ] && whole "$tmp/log"; then ok "$what: its calls are strace's"; else
		not_ok "$what: its calls are strace's" "$(diff <(echo "$wanted") <(echo "$seen"); culprit log --json "$tmp/log" | tail -n 1)"
	fi
}

for kernel in $kernels; do
	up s1 --kernel "$kernel"
	note "$kernel: Linux $(on s1 uname -r)"
	bundle s1
	on s1 'cat >/root/calls.pl' <ci/vm/calls.pl
	on s1 'strace -f -qq -o /root/strace perl /root/calls.pl /root; cat /root/strace' >"$tmp/strace"
	for mode in "ebpf --mode sums" "ebpf --mode events" "ebpf --mode flow" "ebpf --mode flow --heads" "ebpf --mode flow --causal" ptrace; do
		# shellcheck disable=SC2086
		traces $mode
	done
	said=$(on s1 "rm -f /root/readings; $agent trace --tracer sampler --path / --out /root/readings -- sleep 3 2>&1; cat /root/readings" >"$tmp/readings"; echo $?)
	if [ "$said" = 0 ] && culprit log --json "$tmp/readings" | grep -q cpu_busy_s; then ok "$kernel: the sampler has readings"; else
		not_ok "$kernel: the sampler has readings" "$(head -c 300 "$tmp/readings" | tr -cd '[:print:]')"
	fi
	down s1
done
done_testing
