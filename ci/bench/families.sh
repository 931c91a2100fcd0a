#!/bin/bash
# The fleet detector and its rivals on made-up fleets of all families: tables in Markdown, printed from FILE. What FILE has is not
# run again. Without FILE it is a small run of about a minute.
#     ci/bench/families.sh [FILE [key=value...]]      keys: the head of ci/bench/fleet_families.c
# The published tables: ci/bench/families.sh results/fleet/families.csv seed=20261122 (one core: 15 minutes).
cd "$(dirname "$0")/../.." || exit 1
bin=${OUT:-out}/bench
if [ $# -eq 0 ]; then
	set -- "$bin/families.csv" fleets=1 clean=2 members=200
	rm -f "$1"
fi
"$bin/fleet_families" run "$@" && "$bin/fleet_families" table "$1"
