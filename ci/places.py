#!/usr/bin/env python3
"""places.py RUN=DETECTOR...: the share of victims found in each place (fault and workload) of Table 1 of Kasick et al. 2009, published
and in these runs, as Markdown. A published figure is the best metric's, of ten cells. Bold: outside of its exact 95 % interval."""
import csv
import os
import subprocess
import sys

FAULTS = ("disk-hog", "disk-busy", "write-network-hog", "read-network-hog", "receive-pktloss", "send-pktloss")
WORKLOADS = ("ddr", "iozoner", "postmark", "ddw", "iozonew")
PAPER = "hotdep09-table1"


def read(run, detector):
    culprit = os.path.join(os.environ.get("OUT", "out"), "culprit")
    text = subprocess.run([culprit, "table", run, "--against", PAPER, "--format", "csv"], check=True, capture_output=True, text=True).stdout
    rows = [r for r in csv.DictReader(text.splitlines()) if r["detector"] == detector]
    if not rows:
        sys.exit(f"places.py: {run} has no verdicts of {detector}")
    published, found = {}, {}
    for r in rows:
        place = r["fault"], r["workload"]
        if r["published_tp"]:
            figure = tuple(float(r["published_tp" + s]) for s in ("", "_low", "_high"))
            published[place] = max(published.get(place, figure), figure)
        if r["metric"] == "any" and r["tp_count"]:
            found[place] = int(r["tp_count"]), int(r["n"]), float(r["tp_low"]), float(r["tp_high"])
    return published, found


runs = [a.split("=", 1) for a in sys.argv[1:]]
if not runs or any(len(r) != 2 for r in runs):
    sys.exit("usage: ci/places.py RUN=DETECTOR...")
read_all = [read(*r) for r in runs]
inside = [0] * len(runs)
print("| fault | workload | published | " + " | ".join(os.path.basename(r) for r, _ in runs) + " |")
print("|---|---|---|" + "---|" * len(runs))
for fault in FAULTS:
    for workload in WORKLOADS:
        place = fault, workload
        tp, low, high = max(p[place] for p, _ in read_all if place in p)
        cells = []
        for i, (_, found) in enumerate(read_all):
            k, n, least, most = found[place]
            ok = low <= k / n <= high
            inside[i] += ok
            share = f"{k} of {n} [{least:.2f}, {most:.2f}]"
            cells.append(share if ok else f"**{share}**")
        print(f"| {fault} | {workload} | {tp:g} [{low:.2f}, {high:.2f}] | " + " | ".join(cells) + " |")
print("| **inside the interval** | | 30 | " + " | ".join(f"{k} of 30" for k in inside) + " |")
