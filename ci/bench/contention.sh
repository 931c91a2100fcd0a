#!/bin/bash
# Threads that contend for one disk: the case of Esteves et al. 2023, section III-C, and what recording it costs (their Table II).
# The application is db_bench of Debian's rocksdb-tools: 8 clients that read and write in a closed loop, one background thread that
# flushes, seven that compact.
#
#   ci/bench/contention.sh case FOLDER [SECONDS]     one recorded run (600 s); what 'culprit findings' says of its log, with no hint;
#                                                    into FOLDER: findings.txt, seconds.csv, run.txt and the figure, contention.svg
#   ci/bench/contention.sh cost [ROUNDS [OPERATIONS]]    (5, 200000) the same number of operations without a tracer and with each, in
#                                                    random order in each round; medians and ranges of ratios to the same round's
#                                                    run without
#
#   DIR=FOLDER      the database there; else on a modelled disk of its own lab (needs root): RATE (40MB/s), SEEK (300us), SUBNET
#   TRACER=NAME     of 'case' (ebpf)
#   WAYS="none ebpf"    of 'cost'; there are none, ebpf, ptrace, strace, bpftrace, sysdig
#   KEYS=N          keys of 1 KiB in the database (500000)
#
# The database and the load are fixed before the first recorded run; the finding's thresholds know nothing of them.
set -euo pipefail
cd "$(dirname "$0")/../.."
culprit=$PWD/${OUT:-out}/culprit
agent=$PWD/${OUT:-out}/agent/culprit-agent
command -v db_bench >/dev/null || { echo "no db_bench here (Debian: apt-get install rocksdb-tools)" >&2; exit 2; }
# Not in /tmp or /dev/shm: a node has its own.
tmp=$(mktemp -d "$PWD/${OUT:-out}/contention-XXXXXX")
keys=${KEYS:-500000}
export XDG_CACHE_HOME=$tmp/cache
lab=''
finish() {
	[ -z "$lab" ] || "$culprit" lab down --dir "$tmp/lab" >/dev/null || true
	[ -z "${DIR:-}" ] || rm -rf "$DIR/contention.db" "$DIR/contention.now"
	rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
node() { if [ -n "$lab" ]; then "$culprit" lab exec --dir "$tmp/lab" s1 -- "$@"; else "$@"; fi; }

place() { # $db, $now: the database, and the copy of it that a run uses
	if [ -z "${DIR:-}" ]; then
		[ "$(id -u)" = 0 ] || { echo "the lab needs root; DIR=FOLDER does without" >&2; exit 2; }
		lab=yes
		"$culprit" lab up --dir "$tmp/lab" --subnet "${SUBNET:-10.73.0.0/24}" --fs none --servers 1 --clients 1 --outsiders 0 \
			--disk-rate "${RATE:-40MB/s}" --disk-seek "${SEEK:-300us}" --storage 4GiB --spare 1MiB >/dev/null
		db=/srv/storage/db now=/srv/storage/now
	else
		db=$DIR/contention.db now=$DIR/contention.now
	fi
}

options=(--key_size=16 --value_size=1024 --num="$keys" --compression_type=none --max_background_flushes=1 --max_background_compactions=7
	--subcompactions=1 --write_buffer_size=$((8 << 20)) --target_file_size_base=$((8 << 20)) --max_bytes_for_level_base=$((32 << 20))
	--cache_size=$((8 << 20)) --use_direct_reads=true --use_direct_io_for_flush_and_compaction=true --seed=1)
load=(db_bench --use_existing_db=1 --benchmarks=readrandomwriterandom --readwritepercent=50 --threads=8)

fill() {
	node db_bench --db="$db" "${options[@]}" --benchmarks=fillrandom,waitforcompaction >"$tmp/fill" 2>&1 || { cat "$tmp/fill" >&2; exit 1; }
}
fresh() { node rm -rf "$now"; node cp -a "$db" "$now"; node sync; }

machine() { echo "$(date -u +%F\ %H:%M) UTC; $(nproc) processors, kernel $(uname -r | cut -d- -f1); load before: $(cut -d' ' -f1-3 /proc/loadavg)"; }

# ---- the case ----

# The threads of the finding: "... NAME threads of PROCESS (...) ... in which MANY or more of N OTHERS threads used ...".
named() { sed -n "s/^warning: threads-contend: \(.*\) threads of .* in which \([0-9]*\) or more of [0-9]* \(.*\) threads used device.*/\\$1/p" "$tmp/findings" | head -n 1; }

seconds_of() { # LOG: by second and kind of thread
	"$culprit" query --csv "$1" "with
		calls as materialized (select second, rtrim(thread, '0123456789') name, sum(calls) calls, sum(bytes) bytes,
			round(1e-6 * sum(total_ns) / sum(calls), 4) ms, round(1e-6 * max(p99_ns), 4) p99_ms from totals
			where kind = 'file' and class in ('read', 'write', 'sync') group by 1, 2),
		threads as materialized (select second, rtrim(thread, '0123456789') name, count(distinct tid) threads from totals
			where kind = 'file' and class in ('read', 'write', 'sync') group by 1, 2)
		select second, name, threads, calls, bytes, ms, p99_ms from calls join threads using (second, name) order by 1, 2"
}

run_case() { # FOLDER SECONDS
	local folder=$1 slow others begin
	mkdir -p "$folder"
	place
	machine >"$folder/run.txt"
	fill
	fresh
	node "$agent" trace --tracer "${TRACER:-ebpf}" --out "$tmp/log" -- "${load[@]}" --db="$now" "${options[@]}" --duration="$2" --histogram \
		--report_interval_seconds=1 --report_file="$tmp/report.csv" >"$tmp/out" 2>&1 || { tail "$tmp/out" >&2; exit 1; }
	{
		grep -E '^readrandomwriterandom|^Percentiles' "$tmp/out"
		"$culprit" log --summary "$tmp/log" | tail -n 1
		"$culprit" query --csv "$tmp/log" "select sum(count) lost from losses"
		"$culprit" query --csv "$tmp/log" "select thread, count(distinct tid) threads, sum(calls) calls from totals group by 1 order by 3 desc"
	} >>"$folder/run.txt"
	begin=$SECONDS
	"$culprit" findings "$tmp/log" >"$tmp/findings" || [ $? = 1 ]
	echo "culprit findings: $((SECONDS - begin)) s" >>"$folder/run.txt"
	cp "$tmp/findings" "$folder/findings.txt"
	seconds_of "$tmp/log" >"$folder/seconds.csv"
	cp "$tmp/report.csv" "$folder/report.csv"
	slow=$(named 1) many=$(named 2) others=$(named 3)
	grep -E '^(error|warning|note): ' "$tmp/findings" || echo "nothing was found"
	[ -n "$slow" ] || { echo "no contention was found: no figure"; return 0; }
	results/figures/contention.py "$folder/seconds.csv" "$slow" "$others" "$folder/contention.svg" "$many"
}

# ---- its cost ----

bpftrace_program='tracepoint:raw_syscalls:sys_enter /pid == cpid/ { @s[tid] = nsecs; @a[tid] = args->args[0]; }
tracepoint:raw_syscalls:sys_exit /pid == cpid && @s[tid]/ { printf("%d %s %d %d %d %d\n", tid, comm, args->id, @a[tid], args->ret, nsecs - @s[tid]); delete(@s[tid]); delete(@a[tid]); }'

usable() {
	case $1 in
	none) ;;
	ebpf | ptrace) "$agent" trace --tracer "$1" --out "$tmp/try" -- true 2>"$tmp/why" || { echo "$1 left out: $(tail -n 1 "$tmp/why")"; return 1; } ;;
	strace) strace -o "$tmp/try" true 2>"$tmp/why" || { echo "strace left out: $(tail -n 1 "$tmp/why")"; return 1; } ;;
	# Without a mounted tracefs it knows no tracepoint; its ERROR of RLIMIT_MEMLOCK is only a warning.
	bpftrace) bpftrace -c /bin/true -e "$bpftrace_program" >/dev/null 2>"$tmp/why" ||
		{ echo "bpftrace left out: $(grep ERROR: "$tmp/why" | grep -v -m 1 RLIMIT)"; return 1; } ;;
	sysdig) timeout 20 sysdig -n 1 >/dev/null 2>"$tmp/why" || { echo "sysdig left out: $(tail -n 1 "$tmp/why")"; return 1; } ;;
	*) echo "there is no way '$1'" >&2; exit 2 ;;
	esac
	rm -f "$tmp/try"
}

once() { # WAY OPERATIONS: seconds of the load, by db_bench's own clock
	local command tool=''
	fresh
	# All clients share the operations.
	command=("${load[@]}" --db="$now" "${options[@]}" --reads=$(($2 / 8)))
	rm -f "$tmp/log"
	case $1 in
	none) node "${command[@]}" >"$tmp/out" 2>&1 ;;
	ebpf | ptrace) node "$agent" trace --tracer "$1" --out "$tmp/log" -- "${command[@]}" >"$tmp/out" 2>&1 ;;
	strace) node strace -f -T -o "$tmp/log" "${command[@]}" >"$tmp/out" 2>&1 ;;
	bpftrace) node bpftrace -o "$tmp/log" -c "$(command -v "${command[0]}") ${command[*]:1}" -e "$bpftrace_program" >"$tmp/out" 2>&1 ;;
	sysdig)
		sysdig -w "$tmp/log" proc.name=db_bench >/dev/null 2>"$tmp/why" &
		tool=$!
		sleep 3 # it does not tell when it is ready
		node "${command[@]}" >"$tmp/out" 2>&1
		kill -INT "$tool"
		wait "$tool" || true ;;
	esac || { tail "$tmp/out" >&2; exit 1; }
	sed -n 's/^readrandomwriterandom.* ops\/sec \([0-9.]*\) seconds.*/\1/p' "$tmp/out"
}
lost_of() { # WAY: records that it lost, as it says itself
	case $1 in
	ebpf | ptrace) "$culprit" query --csv "$tmp/log" 'select ifnull(sum(count), 0) from losses' | tail -n 1 ;;
	bpftrace) sed -n 's/.*Lost \([0-9]*\) events.*/\1/p' "$tmp/out" "$tmp/log" | awk '{ n += $1 } END { print n + 0 }' ;;
	*) echo - ;;
	esac
}

cost() { # ROUNDS OPERATIONS
	local ways=() way round seconds
	place
	machine
	for way in ${WAYS:-none ebpf strace bpftrace sysdig}; do
		usable "$way" && ways+=("$way")
	done
	fill
	once none "$2" >/dev/null # warm-up
	for round in $(seq "$1"); do
		while read -r way; do
			seconds=$(once "$way" "$2")
			echo "$round $way $seconds $(lost_of "$way")" | tee -a "$tmp/times" >&2
		done < <(printf '%s\n' "${ways[@]}" | shuf)
	done
	printf '%-10s %9s %7s  %-16s %s\n' way seconds ratio 'from .. to' lost
	python3 - "$tmp/times" "${ways[@]}" <<-'P'
		import statistics, sys
		rows = [line.split() for line in open(sys.argv[1])]
		at = {(r[0], r[1]): float(r[2]) for r in rows}
		for way in sys.argv[2:]:
		    times = [float(r[2]) for r in rows if r[1] == way]
		    ratios = [t / at[r, "none"] for (r, w), t in at.items() if w == way]
		    lost = [r[3] for r in rows if r[1] == way]
		    print("%-10s %9.1f %7.3f  %.3f .. %-7.3f %s" % (way, statistics.median(times), statistics.median(ratios), min(ratios), max(ratios),
		          "-" if "-" in lost else sum(map(int, lost))))
	P
}

case ${1:-cost} in
case) run_case "${2:?FOLDER}" "${3:-600}" ;;
cost) cost "${2:-5}" "${3:-200000}" ;;
*) echo "case FOLDER [SECONDS], or cost [ROUNDS [OPERATIONS]]" >&2; exit 2 ;;
esac
