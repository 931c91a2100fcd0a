#!/bin/bash
# Log to metrics: records a second on one core, and peak memory for logs of 1 and 10 million records.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for records in 1000000 10000000; do
	"${OUT:-out}/bench/metrics_rate" "$dir/log" "$records"
done
