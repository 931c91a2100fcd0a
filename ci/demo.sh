#!/bin/bash
# 'make demo': packages, build, lab, cells, table. Each step has a heading and its time. It installs what building and the
# demo need, adds no package source, and builds no tests.
#
#   OUT=out JOBS=4 ci/demo.sh
set -euo pipefail
cd "$(dirname "$0")/.."
culprit=${OUT:-out}/culprit
lab=(--dir /run/culprit/demo)
run=runs/demo-$(date -u +%Y%m%d-%H%M%S)
code=0

step() { # NUMBER TEXT
	printf '\n%s/5  %s\n' "$1" "$(fold -s -w 74 <<<"$2" | sed '2,$s/^/     /; s/ *$//')"
	step_began=$SECONDS
}
took() { printf '     done in %d:%02d\n' $(((SECONDS - step_began) / 60)) $(((SECONDS - step_began) % 60)); }

# Counts the lines of make's output that name a file.
count() { # TOTAL
	local n=0 line failed=''
	while IFS= read -r line; do
		if [[ $line =~ ^\ \ [A-Z]+\ + ]]; then
			n=$((n + 1))
			[[ ! -t 1 ]] || printf '\r     %d of %d' "$n" "$1"
		else
			[[ ! -t 1 ]] || printf '\r\033[K'
			printf '%s\n' "$line"
			[[ $line != make*'***'* ]] || failed=1
		fi
	done
	[[ ! -t 1 || $n -eq 0 ]] || printf '\r\033[K'
	[[ $failed ]] || printf '     %s\n' "$([ "$n" -eq 0 ] && echo 'all is built' || echo "$n files built")"
}

as_root=()
if [[ $EUID -ne 0 ]]; then
	command -v sudo >/dev/null || { echo "make demo: the lab needs root (namespaces, mounts, devices), and there is no sudo" >&2; exit 2; }
	as_root=(sudo)
fi

step 1 "packages: what building and the demo need (not what tests need; no package source is added)"
ci/install.sh --demo
took

step 2 "build: the program and its agent"
unset MAKEFLAGS MFLAGS MAKELEVEL
total=$(make -n OUT="${OUT:-out}" programs | grep -c '^printf' || true)
make --no-print-directory -j"${JOBS:-$(nproc)}" OUT="${OUT:-out}" programs 2>&1 | count "$total"
took

step 3 "lab: a GlusterFS of four servers and two clients, and a host outside of it, in namespaces of this machine"
[[ ${#as_root[@]} -eq 0 ]] || echo "     the lab needs root (namespaces, mounts, loop devices): asking sudo"
"${as_root[@]}" "$culprit" lab up "${lab[@]}" --subnet 10.76.0.0/24
lab_down() { trap - EXIT; "${as_root[@]}" "$culprit" lab down "${lab[@]}"; }
trap lab_down EXIT
took

step 4 "eight cells of half a minute: two to learn from; then writes (ddw) and reads (ddr), each without a fault, under a disk hog, and under packet loss, on a server drawn at random. A cell is confirmed if its fault was seen to act, and to be gone"
mkdir -p runs
"${as_root[@]}" "$culprit" run --inventory /run/culprit/demo/inventory.lua -o "$run" scenarios/quick.lua >/dev/null || code=$?
[[ -d $run ]] || exit "$code"
# Root made the run; it belongs to the user who asked for it.
"${as_root[@]}" chown -R "${SUDO_UID:-$(id -u)}:${SUDO_GID:-$(id -g)}" "$run"
lab_down
took

step 5 "what happened, and what the detectors said"
echo
"$culprit" table "$run" --words || code=$?
echo
"$culprit" table "$run" || code=$?
report=$("$culprit" report "$run")
took

printf '\nthe report, a page for a browser:\n  %s\n' "$(realpath "$report")"
program=$(realpath "$culprit") folder=$(realpath "$run")
printf '\nto try next:\n'
printf '  what each verdict rests on:\n    %q diagnose %q --evidence\n' "$program" "$folder"
printf '  the faults, workloads, detectors and scenarios that there are:\n    %q list\n' "$program"
printf '  a scenario of your own, to change and run:\n    %q new scenario mine\n' "$program"
exit "$code"
