#!/bin/bash
# Table 6.1 of Dinh 2009, published next to measured: ratios of the unbalanced server to the plain ones.
#
#   ci/bench/table61.sh                      of the committed averages, results/unbalanced-*.csv
#   ci/bench/table61.sh AVERAGES.csv ...     of these
#   ci/bench/table61.sh RUN [SECONDS]        of a run of scenarios/unbalanced.lua: prints its averages, from so many
#                                            seconds after the onset (30: until plain servers write back as well)
set -euo pipefail
cd "$(dirname "$0")/../.."
program=${OUT:-out}/bench/table61
if [[ -d ${1-} ]]; then
	exec "$program" averages "$1" "${2:-30}"
fi
[[ $# -gt 0 ]] || set -- results/unbalanced-*.csv
for averages; do
	[[ -f $averages ]] || { echo "table61.sh: there is no '$averages'" >&2; exit 2; }
	echo "$averages"
	echo
	"$program" table "$averages" results/dinh09-table61.csv
	echo
done
