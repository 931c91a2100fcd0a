#!/bin/bash
# How many records a second diag/flow binds on one core (goal: 2 million), with its peak memory.
cd "$(dirname "$0")/../.." || exit 1
"${OUT:-out}/bench/flow_bind" "$@"
