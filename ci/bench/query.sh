#!/bin/bash
# What a question to a log takes (processor time), with and without the zone index, for 10 million records. Goals: a whole scan
# 20 million records/s on a core, an indexed question below 1 s for 100 million (QUERY_RECORDS=100000000).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
XDG_CACHE_HOME=$dir "${OUT:-out}/bench/query_rate" "$dir/log" "${QUERY_RECORDS:-10000000}"
