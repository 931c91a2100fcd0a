#!/bin/bash
# Runs every test through prove. Tests of the kernel and the lab need root: asks for sudo and says why.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-out}

run=()
if [[ $EUID -ne 0 ]]; then
	command -v sudo >/dev/null || { echo "make check: tests of the lab, agent and tracer need root, and there is no sudo" >&2; exit 2; }
	echo "tests of the lab, agent and tracer need root: asking sudo"
	run=(sudo --preserve-env=CI)
fi
exec "${run[@]}" prove --timer --failures --merge "$out"/tests/*_test ci/tests/*.t
