#!/bin/bash
# The example fleet of results/fleet-example.md: from a recording (scenario results/fleet/example.lua) its CSV file and labels, and the
# pages that show what 'culprit diagnose' says of it.
#
#   ci/bench/fleet_example.sh             after a change of the detector or the text: prints the pages anew
#   ci/bench/fleet_example.sh FOLDER      packs this run into results/runs first, in place of the last one
#   ci/bench/fleet_example.sh --csv       prints the CSV to standard output; --labels: the labels
set -euo pipefail
cd "$(dirname "$0")/../.."
run=$(echo results/runs/fleet-example-*)
culprit=${OUT:-out}/culprit

csv() {
	local metrics=()
	for m in disk_reads disk_writes disk_read_time_s disk_write_time_s disk_read_bytes disk_written_bytes disk_busy_s; do
		metrics+=(--metric "$m")
	done
	"$culprit" query --samples "$run" --wide "${metrics[@]}"
}

# The first victim has other reads all the time, the second in bursts (results/fleet/example-two.lua).
labels() {
	local db
	db=$(mktemp)
	zcat "$run/run.db.gz" >"$db"
	echo server,from,to,reads
	sqlite3 -csv "$db" "SELECT v.value, strftime('%Y-%m-%dT%H:%M:%SZ', onset_ns / 1000000000, 'unixepoch'),
		strftime('%Y-%m-%dT%H:%M:%SZ', offset_ns / 1000000000, 'unixepoch'), iif(v.key = 0, 'steady', 'bursts')
		FROM attempt JOIN cell ON cell.number = attempt.cell, json_each(victims) v WHERE outcome = 'confirmed' ORDER BY v.key"
	rm "$db"
}

case ${1-} in
--csv) csv; exit ;;
--labels) labels; exit ;;
?*)
	rm -rf results/runs/fleet-example-*
	run=results/runs/$(basename "$1")
	"$culprit" ship "$1" --whole --pack "$run"
	;;
esac
csv | gzip -9n >results/fleet/example.csv.gz
labels >results/fleet/example-labels.csv
ci/pages.sh results/fleet-example.md README.md
