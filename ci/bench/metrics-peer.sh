#!/bin/bash
# False and true positives of peer-threshold on made-up series, by window and margin.
exec "${OUT:-out}/bench/metrics_peer" "${1:-400}"
