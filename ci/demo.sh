#!/bin/bash
# The whole way once: lab up, scenarios/quick.lua, its table, lab down. Run by 'make demo'.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-out}

as_root=()
if [[ $EUID -ne 0 ]]; then
	command -v sudo >/dev/null || { echo "make demo: the lab needs root (namespaces, mounts, devices), and there is no sudo" >&2; exit 2; }
	echo "the lab needs root (namespaces, mounts, loop devices): asking sudo"
	as_root=(sudo)
fi
lab=(--dir /run/culprit/demo)
run=runs/demo-$(date -u +%Y%m%d-%H%M%S)
mkdir -p runs

"${as_root[@]}" "$out/culprit" lab up "${lab[@]}" --subnet 10.76.0.0/24
trap '"${as_root[@]}" "$out/culprit" lab down "${lab[@]}"' EXIT
"${as_root[@]}" "$out/culprit" run --inventory /run/culprit/demo/inventory.lua -o "$run" scenarios/quick.lua
echo
echo "the run is in $run: 'culprit table $run' prints this table again"
