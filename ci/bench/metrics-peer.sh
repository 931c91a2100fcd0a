#!/bin/bash
# False and true positives of peer-threshold on synthetic series, by window and margin.
exec "${OUT:-out}/bench/metrics_peer" "${1:-400}"
