#!/bin/bash
# A replay of many processes on many clients, as root, on a lab of its own (SUBNET): RANKS (1,024) processes on NODES (16) clients.
# 'pseudo': each writes BLOCKS (5) blocks into one file, all meet, each reads its neighbour's. 'simulated': the trace of
# ci/bench/causal_scale with CALLS (100) calls of 64 KiB a process: own files, messages between neighbours, barriers. Both in causal
# mode with no computing: what is measured is whether the waiting holds up. Prints a line each.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$PWD/${OUT:-out}
ranks=${RANKS:-1024} nodes=${NODES:-16}
tmp=$(mktemp -d)
trap '"$out/culprit" lab down --dir "$tmp/lab" >/dev/null 2>&1 || true; rm -rf "$tmp"' EXIT
"$out/bench/replay_trace" pseudo "$ranks" "${BLOCKS:-5}" 4096 0 "$tmp/pseudo.app"
mkdir "$tmp/scale"
"$out/bench/causal_scale" "$tmp/scale" "$ranks" "${CALLS:-100}" >"$tmp/said" || { cat "$tmp/said"; exit 1; }
mv "$tmp/scale/trace" "$tmp/simulated.app"
"$out/culprit" lab up --dir "$tmp/lab" --subnet "${SUBNET:-10.72.0.0/24}" --servers 2 --clients "$nodes" --outsiders 0 --nic 1Gbit/s \
	--storage 8GiB --disk-rate 400MB/s --disk-seek 30us >/dev/null
echo "$(date -u +%F\ %H:%M) UTC; $(nproc) processors, kernel $(uname -r | cut -d- -f1); load before: $(cut -d' ' -f1-3 /proc/loadavg)"
bad=0
for kind in ${KINDS:-pseudo simulated}; do
	begin=$EPOCHREALTIME
	if "$out/culprit" replay "$tmp/$kind.app" --inventory "$tmp/lab/inventory.lua" --mode causal --json >"$tmp/$kind.json"; then
		python3 - "$tmp/$kind.json" "$kind" "$begin" "$EPOCHREALTIME" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
p = r["passes"][0]
print(f"{sys.argv[2]}: {r['ranks']} ranks on {len(r['clients'])} clients: {p['ops']} operations, {p['waits']} waits, {p['seconds']:.1f} s, "
      f"errors {json.dumps(p.get('errors', {}))}; with files and clean-up {float(sys.argv[4]) - float(sys.argv[3]):.0f} s")
PY
	else
		bad=1
	fi
done
exit $bad
