#!/bin/bash
# Lab up, scenarios/quick.lua, its table, lab down. Run by 'make demo'.
set -euo pipefail
cd "$(dirname "$0")/.."
culprit=${OUT:-out}/culprit

as_root=()
if [[ $EUID -ne 0 ]]; then
	command -v sudo >/dev/null || { echo "make demo: the lab needs root (namespaces, mounts, devices), and there is no sudo" >&2; exit 2; }
	echo "the lab needs root (namespaces, mounts, loop devices): asking sudo"
	as_root=(sudo)
fi
lab=(--dir /run/culprit/demo)
run=runs/demo-$(date -u +%Y%m%d-%H%M%S)
mkdir -p runs
code=0

"${as_root[@]}" "$culprit" lab up "${lab[@]}" --subnet 10.76.0.0/24
trap '"${as_root[@]}" "$culprit" lab down "${lab[@]}"' EXIT
"${as_root[@]}" "$culprit" run --inventory /run/culprit/demo/inventory.lua -o "$run" scenarios/quick.lua || code=$?
[ -d "$run" ] || exit "$code"
# Root made the run; it belongs to the user who asked for it.
"${as_root[@]}" chown -R "${SUDO_UID:-$(id -u)}:${SUDO_GID:-$(id -g)}" "$run"
printf '\nthe run is in %s; this prints its table again, this draws it as a page:\n' "$run"
for command in table report; do
	printf '  %q %s %q\n' "$(realpath "$culprit")" $command "$(realpath "$run")"
done
exit "$code"
