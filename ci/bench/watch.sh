#!/bin/bash
# CPU time of 'culprit watch' a sample, with and without looks, and its false alarms on healthy series (at 1000 times the
# default rate, so that some can be counted).
#
#     ci/bench/watch.sh [MEMBERS [STEPS]]      default: 100 34000; beyond 32768 steps all default horizons are full
set -euo pipefail
cd "$(dirname "$0")/../.."
"${OUT:-out}"/bench/watch_cost "${1:-100}" "${2:-34000}" 60 1e-4 2>/dev/null
"${OUT:-out}"/bench/watch_cost 160 8000 300 0.1 2>/dev/null
