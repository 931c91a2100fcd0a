#!/bin/bash
# Cost of tracing: PostMark on a lab, run times under each tracer divided by untraced ones, paired by round.
#
#   ci/bench/overhead.sh [ROUNDS [TRANSACTIONS]]     (5, 300)
#   WAYS="none ebpf:sums ebpf:events" ci/bench/overhead.sh 20     these tracers only
#
# In each round every way of tracing comes once, in random order, on the same cluster and file set; its ratio is to the
# same round's untraced run. First all servers, the client and the program are traced (as in table 2 of Kasick et al. 2009): all nodes share one
# kernel, so what a tracer does to every call of the machine is paid six times over. Then one server alone, as on
# its own host. Then a program that does nothing but call, on all processors. Needs root, and a quiet machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ $EUID -eq 0 ]] || { echo "the lab needs root" >&2; exit 2; }
rounds=${1:-5}
transactions=${2:-300}
culprit=$PWD/${OUT:-out}/culprit
agent=$PWD/${OUT:-out}/agent/culprit-agent
bench=$PWD/${OUT:-out}/bench
tmp=$(mktemp -d /var/tmp/culprit-bench-XXXXXX)
tools=() # pids of the tracers of the moment
app=
mkfifo "$tmp/to" "$tmp/from"
lab() { "$culprit" lab "$1" --dir "$tmp/lab" "${@:2}"; }
# If this script is ended during 'lab up', that may still be running, and 'lab down' must wait for it.
finish() {
	local pid n=0
	for pid in "${tools[@]}" $app; do kill -KILL "$pid" 2>/dev/null || true; done
	until lab down >/dev/null 2>"$tmp/err" || [[ $n -ge 120 ]]; do
		n=$((n + 1))
		sleep 0.5
	done
	[[ $n -lt 120 ]] || cat "$tmp/err" >&2
	rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# ---- tracers: start WAY PIDS..., once it is ready; stop WAY, then $calls $lost $cpu ----

# culprit's tracers are named TRACER:MODE; each traced process has its own tracer, as on separate nodes.
read -ra ways <<<"${WAYS:-none ebpf:sums ebpf:events ptrace:events strace:events sysstat:events perf-trace bpftrace-count bpftrace-print}"
usable() {
	case $1 in
	perf-trace) command -v perf >/dev/null || { echo "no perf here: left out (Debian: apt-get install linux-perf)"; return 1; } ;;
	bpftrace-*) command -v bpftrace >/dev/null || { echo "no bpftrace here: left out (Debian: apt-get install bpftrace)"; return 1; } ;;
	*:*) # tried, not looked up
		rm -f "$tmp/try"
		"$agent" trace --tracer "${1%:*}" --mode "${1#*:}" -o "$tmp/try" -- true 2>"$tmp/why" && return 0
		echo "$1 left out: $(tail -n 1 "$tmp/why")"
		return 1 ;;
	esac
}

wait_for() { # COMMAND ...: until it is true, 20 s
	local n=0
	until "$@"; do
		n=$((n + 1))
		[[ $n -lt 2000 ]] || { echo "waited in vain for: $*" >&2; exit 1; }
		sleep 0.01
	done
}

# Calls of threads of $pids, timed in the kernel or printed one by one.
bpftrace_program() {
	printf 'BEGIN { '
	printf '@t[%d] = 1; ' "${@:2}"
	printf 'printf("pid tid call result ns\\n"); }\n'
	printf 'tracepoint:raw_syscalls:sys_enter /@t[pid]/ { @s[tid] = nsecs; }\n'
	if [[ $1 == bpftrace-count ]]; then
		printf 'tracepoint:raw_syscalls:sys_exit /@s[tid]/ { @n[pid, args->id] = count(); @ns[pid, args->id] = sum(nsecs - @s[tid]); @h[pid, args->id] = hist(nsecs - @s[tid]); delete(@s[tid]); }\n'
	else
		printf 'tracepoint:raw_syscalls:sys_exit /@s[tid]/ { printf("%%d %%d %%d %%d %%d\\n", pid, tid, args->id, args->ret, nsecs - @s[tid]); delete(@s[tid]); }\n'
	fi
	printf 'tracepoint:sched:sched_process_fork /@t[args->parent_pid]/ { @t[args->child_pid] = 1; }\n'
	printf 'END { clear(@t); clear(@s); }\n'
}

start() {
	start_tools "$@"
	[[ ${#tools[@]} -eq 0 ]] || begin_cpu=$(tools_cpu)
}

start_tools() {
	local way=$1 pid
	shift
	tools=()
	rm -f "$tmp"/log.*
	case $way in
	none) ;;
	perf-trace)
		perf trace -o "$tmp/log.perf" -p "$(IFS=,; echo "$*")" 2>"$tmp/err" &
		tools+=($!)
		wait_for attached $! 2 ;;
	bpftrace-*)
		bpftrace_program "$way" "$@" >"$tmp/program"
		bpftrace -o "$tmp/log.bpf" "$tmp/program" >/dev/null 2>"$tmp/err" &
		tools+=($!)
		wait_for attached $! $(($(nproc) + 3)) ;;
	*)
		for pid in "$@"; do
			rm -f "$tmp/ready"
			mkfifo "$tmp/ready"
			"$agent" trace --tracer "${way%:*}" --mode "${way#*:}" -o "$tmp/log.$pid" --ready-fd 3 -p "$pid" \
				3>"$tmp/ready" 2>"$tmp/err.$pid" &
			tools+=($!)
			read -r _ <"$tmp/ready" || { cat "$tmp/err.$pid" >&2; exit 1; }
		done ;;
	esac
}

# perf and bpftrace do not report when they have attached. They have attached once they sleep with so many events open.
attached() { # PID EVENTS
	[[ $(find "/proc/$1/fd" -lname '*perf_event*' 2>/dev/null | wc -l) -ge $2 ]] && grep -q '^State:.S' "/proc/$1/status"
}

tree() { # PIDS: and all their descendants
	local pid child
	for pid; do
		echo "$pid"
		for child in $(cat "/proc/$pid/task/"*/children 2>/dev/null); do tree "$child"; done
	done
}

tools_cpu() { # seconds of processor time of the tracers so far
	local pid
	for pid in $(tree "${tools[@]}"); do cat "/proc/$pid/stat" 2>/dev/null || true; done |
		awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); t += $12 + $13 } END { printf "%.2f", t / hz }'
}

# Processor time of the tracers without their start; the shell knows it once they have ended.
children_cpu() {
	awk -v began="$begin_cpu" 'function s(t) { split(t, p, /[ms]/); return p[1] * 60 + p[2] }
		FNR == 2 { t[++n] = s($1) + s($2) } END { printf "%.2f", t[2] - t[1] - began }' "$tmp/times.before" "$tmp/times.after"
}

stop() {
	local way=$1 pid
	cpu=0 calls=- lost=-
	[[ ${#tools[@]} -gt 0 ]] || return 0
	times >"$tmp/times.before"
	for pid in "${tools[@]}"; do
		case $way in perf-trace | bpftrace-*) kill -INT "$pid" ;; *) kill -TERM "$pid" ;; esac
	done
	for pid in "${tools[@]}"; do wait "$pid" || [[ $way != *:* ]] || { cat "$tmp"/err.* >&2; exit 1; }; done
	times >"$tmp/times.after"
	tools=()
	cpu=$(children_cpu)
	case $way in
	strace:*) calls=$(cat "$tmp"/log.* | grep -c ' = ') lost=0 ;;
	sysstat:*) ;;
	perf-trace)
		calls=$(grep -c ' = ' "$tmp/log.perf")
		lost=$(sed -n 's/.*LOST \([0-9]*\) events.*/\1/p' "$tmp/log.perf" "$tmp/err" | awk '{ n += $1 } END { print n + 0 }') ;;
	bpftrace-*)
		calls=$(awk '/^@n\[/ { n += $NF } /^[0-9]/ { n++ } END { print n + 0 }' "$tmp/log.bpf")
		lost=$(sed -n 's/.*Lost \([0-9]*\) events.*/\1/p' "$tmp/log.bpf" "$tmp/err" | awk '{ n += $1 } END { print n + 0 }') ;;
	*) read -r calls lost _ < <("$bench/overhead_log" "$tmp"/log.*) ;;
	esac
}

# ---- PostMark ----

pids_of() { # NODE: the file system's processes there, by this machine's numbers
	local net file
	net=$(lab exec "$1" -- readlink /proc/self/ns/net)
	for file in /proc/[0-9]*; do
		case $(cat "$file/comm" 2>/dev/null) in
		glusterfsd | glusterfs) [[ $(readlink "$file/ns/net") != "$net" ]] || echo "${file#/proc/}" ;;
		esac
	done
}

settle() { # what the last run left to be written is not the next one's to bear
	local node
	for node in s1 s2 s3 s4; do lab exec $node -- sync; done
}

find_app() { # the shell that waits for its word
	local file
	app=
	for file in /proc/[0-9]*; do
		[[ $(tr '\0' ' ' <"$file/cmdline" 2>/dev/null) != "sh -c read "*"$tmp " ]] || app=${file#/proc/}
	done 2>/dev/null
	[[ -n $app ]]
}

run() { # WAY PIDS ... ('app' among them: the program, too): $seconds, and what stop says
	local way=$1 who=() p runner begin end word to from
	shift
	settle
	# It stays alive until the tracers have stopped, so that their processor time is complete.
	lab exec c1 -- sh -c 'read w; postmark /tmp/postmark.conf; echo "ended $?"; read w' "$tmp" <"$tmp/to" >"$tmp/from" 2>&1 &
	runner=$!
	exec {to}>"$tmp/to" {from}<"$tmp/from"
	wait_for find_app
	for p; do [[ $p == app ]] && who+=("$app") || who+=("$p"); done
	start "$way" "${who[@]}"
	begin=$EPOCHREALTIME
	echo >&"$to"
	while read -r word <&"$from" && [[ $word != ended* ]]; do :; done
	end=$EPOCHREALTIME
	[[ $word == "ended 0" ]] || { echo "postmark: $word" >&2; exit 1; }
	stop "$way"
	echo >&"$to"
	wait $runner
	app=
	exec {to}>&- {from}<&-
	seconds=$(awk "BEGIN { printf \"%.4f\", $end - $begin }")
}

measure() { # FILE ROUNDS WAYS -- PIDS: a line a run: round way seconds calls lost cpu
	local file=$1 n=$2 list=() round way
	shift 2
	while [[ $1 != -- ]]; do list+=("$1"); shift; done
	shift
	run none "$@" # warm-up
	for round in $(seq "$n"); do
		while read -r way; do
			run "$way" "$@"
			echo "$round $way $seconds $calls $lost $cpu" >>"$file"
			[[ ! -t 2 ]] || printf '\rround %s of %s: %-20s' "$round" "$n" "$way" >&2
		done < <(printf '%s\n' "${list[@]}" | shuf)
	done
	[[ ! -t 2 ]] || printf '\r%40s\r' '' >&2
}

report() { # FILE WAYS: medians of the ratios to the same round's 'none', and their spread
	local file=$1
	shift
	printf '%-15s %8s %8s  %-15s %9s %7s %9s\n' tracer seconds ratio 'of n, from..to' calls lost 'cpu (s)'
	awk -v order="$*" '
		function sorted(s, a,  n, i, j, t) {
			n = split(s, a, " ")
			for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j - 1] + 0 > a[j] + 0; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
			return n
		}
		function median(s,  a, n) { n = sorted(s, a); return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2 }
		{ at[$1, $2] = $3; all[$2] = all[$2] " " $3; rounds[$1]; cpu[$2] = cpu[$2] " " $6
		  if ($4 != "-") { calls[$2] = calls[$2] " " $4; lost[$2] += $5 } else lost[$2] = "-" }
		END {
			k = split(order, way, " ")
			for (i = 1; i <= k; i++) {
				w = way[i]; ratios = ""
				for (r in rounds) ratios = ratios " " at[r, w] / at[r, "none"]
				n = sorted(ratios, a)
				printf "%-15s %8.2f %8.3f  %2d %5.3f..%5.3f %9s %7s %9.2f\n", w, median(all[w]), median(ratios), n, a[1], a[n],
					calls[w] == "" ? "-" : sprintf("%d", median(calls[w])), lost[w], median(cpu[w])
			}
		}' "$file"
}

awk -v n="$(nproc)" '$1 > n / 8 { print "this machine is not quiet (load " $1 "): take the figures for what they are" }' /proc/loadavg
all=()
for way in "${ways[@]}"; do
	[[ $way == none ]] || usable "$way" || continue
	all+=("$way")
done
ours=()
for way in "${all[@]}"; do case $way in none | ebpf:*) ours+=("$way") ;; esac; done

lab up --subnet "${SUBNET:-10.73.0.0/24}" --clients 1 --outsiders 0 >/dev/null
lab exec c1 -- sh -c "mkdir /mnt/fs/postmark && printf 'set location /mnt/fs/postmark\nset number 100\nset transactions $transactions\nrun\nquit\n' >/tmp/postmark.conf"
servers=$(for s in s1 s2 s3 s4; do pids_of $s; done)
client=$(pids_of c1)
echo "PostMark, $transactions transactions; 4 servers, the client's daemon and the program traced:"
# shellcheck disable=SC2086
measure "$tmp/all" "$rounds" "${all[@]}" -- $servers $client app
report "$tmp/all" "${all[@]}"

if [[ ${#ours[@]} -gt 1 ]]; then
	echo
	echo "the same, one server traced of four: one traced node a kernel (goals: events 1.03, sums 1.01, none lost):"
	# shellcheck disable=SC2086
	measure "$tmp/one" $((2 * rounds)) "${ours[@]}" -- ${servers%%$'\n'*}
	report "$tmp/one" "${ours[@]}"
fi
lab down >/dev/null

# ---- calls and nothing else ----

load() { # WAY SECONDS [RATE]: $made $took $load_cpu, and what stop says
	local way=$1 pid to
	"$bench/overhead_load" "$(nproc)" "${@:2}" <"$tmp/to" >"$tmp/load.out" &
	pid=$!
	exec {to}>"$tmp/to"
	start "$way" $pid
	echo >&"$to"
	wait_for test -s "$tmp/load.out"
	stop "$way"
	exec {to}>&-
	wait $pid
	read -r made took load_cpu <"$tmp/load.out"
}

echo
echo "a program that only calls, on $(nproc) processors, 5 s, default buffers (goal: under 0.01 % lost):"
for way in "${ours[@]}"; do
	load "$way" 5
	awk -v way="$way" -v made="$made" -v took="$took" -v calls="$calls" -v lost="$lost" -v cpu="$cpu" 'BEGIN {
		printf "%-15s %9.0f calls/s", way, made / took
		if (way != "none") printf "; %d seen, %d lost of %d made: %.4f %%; tracer %.1f %% of a core", calls, lost, made, 100 * lost / made, 100 * cpu / took
		print "" }'
done

echo
echo "the same at 100000 calls/s, 10 s (goal: sums' tracer under 5 % of a core):"
base=
for way in "${ours[@]}"; do
	load "$way" 10 100000
	base=${base:-$load_cpu}
	awk -v way="$way" -v made="$made" -v took="$took" -v calls="$calls" -v lost="$lost" -v cpu="$cpu" -v load="$load_cpu" -v base="$base" 'BEGIN {
		printf "%-15s %9.0f calls/s; program %.2f s of CPU", way, made / took, load
		if (way != "none") printf " (%+.0f ns a call); lost %d; tracer %.2f s: %.1f %% of a core", (load - base) / made * 1e9, lost, cpu, 100 * cpu / took
		print "" }'
done
