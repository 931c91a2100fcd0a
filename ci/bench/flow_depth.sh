#!/bin/bash
# flow_depth.sh RUN ...: does peer-robust profit from requests in flight and time per layer, at which strength of the fault,
# and how soon? RUN recorded flows; for weak doses: culprit run ci/bench/flow_doses.lua
cd "$(dirname "$0")/../.." || exit 1
"${OUT:-out}/bench/flow_depth" "$@"
