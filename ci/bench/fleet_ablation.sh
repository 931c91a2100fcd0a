#!/bin/bash
# What the parts of the fleet detector are worth: each is left out by itself (fleet_options.without), on made-up fleets of the
# development and of the held-out families; a table in Markdown, printed from FILE. What FILE has is not run again. Without FILE it is
# a small run of about a minute, on the development half.
#     ci/bench/fleet_ablation.sh [FILE [key=value...]]      keys: the head of ci/bench/fleet_families.c
# The published table: ci/bench/fleet_ablation.sh results/fleet/ablation.csv seed=20261122 fleets=4 clean=16 members=150 least=1.5
cd "$(dirname "$0")/../.." || exit 1
bin=${OUT:-out}/bench
if [ $# -eq 0 ]; then
	set -- "$bin/ablation.csv" fleets=1 clean=1 members=60 half=dev least=5
	rm -f "$1"
fi
"$bin/fleet_families" run "$@" parts=each && "$bin/fleet_families" table "$1" head && "$bin/fleet_families" table "$1" parts
