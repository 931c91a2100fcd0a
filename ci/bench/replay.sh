#!/bin/bash
# The evaluation of Mesnier et al. 2007 (section 5) on labs with three disk models: each application runs N times (5) on each
# storage and is captured once there; its trace is replayed N times on the two others, as causal, afap and think.
# The error of a replay is |application - replay| / application; of the two traces the worse one counts, as there.
#
#   replay.sh [N]                            all of it; BLOCKS=8 and BLOCK=1m change the sizes, OTHERS=3 the replays of afap and think
#   replay.sh captures|replays N FOLDER [STORAGE ...]    a part of it, into FOLDER (traces, times.tsv); then
#   replay.sh table FOLDER
#   replay.sh sampling N FOLDER              section 5.4: captured on B by delays, of every P-th call or of M processes only; how long
#                                            that takes, and the error of N replays on C (needs times.tsv of 'captures')
#
# A capture by messages is run three times: the application's time in it, over its time alone, is what a capture costs.
# Four ranks run on one client. Times are from the first call to the end of the last: the application's as it prints them,
# without MPI_Init and MPI_Finalize. SUBNET and LABDIR place the lab.
cd "$(dirname "$0")/../.." || exit 1
out=$PWD/${OUT:-out}
culprit=$out/culprit
lab=${LABDIR:-/run/culprit/replay-bench}
applications="pseudo sync syncdat fitness"
declare -A storages=([A]="--disk-rate 8MB/s --disk-seek 4ms" [B]="--disk-rate 16MB/s --disk-seek 1ms" [C]="--disk-rate 4MB/s --disk-seek 8ms")

table() { python3 ci/bench/replay_table.py "$1/times.tsv"; }
[ "$1" != table ] || { table "$2"; exit; }
[ "$(id -u)" = 0 ] || { echo "skipped: a lab needs root"; exit 0; }
[ -x "$out/mpi/pseudo" ] && command -v mpirun >/dev/null || { echo "skipped: no MPI (libopenmpi-dev, openmpi-bin)"; exit 0; }

up() { # STORAGE
	# shellcheck disable=SC2086 # words
	"$culprit" lab up --dir "$lab" ${SUBNET:+--subnet $SUBNET} --servers 2 --clients 1 --outsiders 0 --nic 1Gbit/s ${storages[$1]}
}
down() { "$culprit" lab down --dir "$lab" >/dev/null 2>&1; }
trap down EXIT
inside() { "$culprit" lab exec --dir "$lab" c1 -- "$@"; }
words() { # APPLICATION: its program and arguments
	local size=(--block "${BLOCK:-1m}" --blocks "${BLOCKS:-8}" --direct)
	case $1 in
	pseudo) echo "$out/mpi/pseudo" "${size[@]}" ;;
	sync) echo "$out/mpi/pseudo" "${size[@]}" --sync ;;
	syncdat) echo "$out/mpi/pseudo" "${size[@]}" --syncdat ;;
	fitness) echo "$out/mpi/fitness" "${size[@]}" ;;
	esac
}
mpi=(env PMIX_MCA_gds=hash mpirun --allow-run-as-root --oversubscribe -n 4 --mca btl "tcp,self" --mca btl_tcp_if_include lo
	--mca pml ob1 --mca mpi_yield_when_idle 1 --mca orte_tmpdir_base /tmp)
begin() { # APPLICATION: the files as it finds them
	inside rm -f /mnt/fs/bench.data
	# shellcheck disable=SC2046
	[ "$1" != fitness ] || inside "${mpi[@]}" $(words fitness) --make /mnt/fs/bench.data >/dev/null
}
# shellcheck disable=SC2046
run() { begin "$1"; inside "${mpi[@]}" $(words "$1") /mnt/fs/bench.data | sed -n 's/.* ranks, \([0-9.]*\) s$/\1/p'; }

# The trace is /tmp/bench.app; the node's /tmp is its own.
# shellcheck disable=SC2046
capture() { # APPLICATION [OPTION ...]: the seconds that the application prints
	begin "$1"
	inside rm -f /tmp/bench.app
	inside "$culprit" capture -o /tmp/bench.app --root /mnt/fs "${@:2}" -- "${mpi[@]}" $(words "$1") /mnt/fs/bench.data |
		sed -n 's/.* ranks, \([0-9.]*\) s$/\1/p'
}

captures() { # N FOLDER STORAGE ...
	local n=$1 folder=$2 storage app i seconds
	for storage in "${@:3}"; do
		down
		up "$storage" || exit 1
		for app in $applications; do
			for ((i = 0; i < n; i++)); do
				seconds=$(run "$app")
				[ -n "$seconds" ] || { echo "$app did not run on $storage" >&2; exit 1; }
				printf '%s\t%s\tapplication\t-\t%s\n' "$app" "$storage" "$seconds" >>"$folder/times.tsv"
			done
			for i in 1 2 3; do
				seconds=$(capture "$app")
				[ -n "$seconds" ] || { echo "$app was not captured on $storage" >&2; exit 1; }
				printf '%s\t%s\tcaptured\t-\t%s\n' "$app" "$storage" "$seconds" >>"$folder/times.tsv"
			done
			inside cat /tmp/bench.app >"$folder/$app.$storage.app"
		done
		down
	done
}
one() { # N FOLDER TRACE MODE WORD ...: a line with these words and the seconds, for each of N passes
	"$culprit" replay "$2/$3" --inventory "$lab/inventory.lua" --mode "$4" --passes "$1" --json 2>/dev/null >"$2/result.json"
	python3 -c 'import json, sys
for p in json.load(open(sys.argv[1]))["passes"]:
    if p["errors"]: print("errors:", p["errors"], file=sys.stderr)
    print(*sys.argv[2:], p["seconds"], sep="\t")' "$2/result.json" "${@:5}" >>"$2/times.tsv"
}
replays() { # N FOLDER STORAGE ...
	local n=$1 folder=$2 storage app from mode passes
	for storage in "${@:3}"; do
		down
		up "$storage" || exit 1
		for app in $applications; do
			for from in A B C; do
				[ "$from" != "$storage" ] && [ -e "$folder/$app.$from.app" ] || continue
				for mode in causal afap think; do
					[ $mode = causal ] && passes=$n || passes=${OTHERS:-$n}
					one "$passes" "$folder" "$app.$from.app" "$mode" "$app" "$storage" "$mode" "$from" || exit 1
				done
			done
		done
		down
	done
}
# Of 'sampling', the mode is p1, p4 ... (period) or n1, n2 ... (processes delayed); '-' in the column of the trace's storage: the capture.
sampling() { # N FOLDER
	local n=$1 folder=$2 app how less began
	down
	up B || exit 1
	for app in sync fitness; do
		for how in p1 p2 p4 p8 n1 n2 n3; do
			case $how in p*) less=--period ;; *) less=--nodes ;; esac
			began=$EPOCHREALTIME
			capture "$app" --method throttle "$less" "${how:1}" >/dev/null
			python3 -c 'import sys; print(*sys.argv[3:], "-", float(sys.argv[2]) - float(sys.argv[1]), sep="\t")' \
				"$began" "$EPOCHREALTIME" "$app" C "$how" >>"$folder/times.tsv"
			inside cat /tmp/bench.app >"$folder/$app.$how.app" || exit 1
		done
	done
	down
	up C || exit 1
	for app in sync fitness; do
		for how in p1 p2 p4 p8 n1 n2 n3; do one "$n" "$folder" "$app.$how.app" causal "$app" C "$how" B || exit 1; done
	done
	down
}
case $1 in
sampling)
	mkdir -p "$3" || exit 1
	sampling "$2" "$3"
	;;
captures | replays)
	mkdir -p "$3" || exit 1
	if [ $# -gt 3 ]; then "$1" "$2" "$3" "${@:4}"; else "$1" "$2" "$3" A B C; fi
	;;
*)
	folder=$(mktemp -d)
	captures "${1:-5}" "$folder" A B C
	replays "${1:-5}" "$folder" A B C
	table "$folder"
	rm -rf "$folder"
	;;
esac
