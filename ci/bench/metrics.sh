#!/bin/bash
# Records a second on one core, for metrics alone and for metrics and events, and peak memory, for logs of 1 and
# 10 million records. Goals: 25 million for metrics, 10 million with both.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for records in 1000000 10000000; do
	"${OUT:-out}/bench/metrics_rate" "$dir/log" "$records"
done
