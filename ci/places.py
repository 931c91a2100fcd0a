#!/usr/bin/env python3
"""places.py RUN=DETECTOR...: the share of victims found in each place (fault and workload) of Table 1 of Kasick et al. 2009, published
and in these runs, as Markdown. A published figure is the best metric's, of ten cells. Bold: outside of its exact 95 % interval."""
import csv
import math
import os
import subprocess
import sys

FAULTS = ("disk-hog", "disk-busy", "write-network-hog", "read-network-hog", "receive-pktloss", "send-pktloss")
WORKLOADS = ("ddr", "iozoner", "postmark", "ddw", "iozonew")
PAPER, CELLS = "hotdep09-table1", 10


def at_least(k, n, p):
    """The probability of k or more of n."""
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


def interval(k, n):
    """Clopper and Pearson, 95 %."""
    def where(f):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if f(middle) else (low, middle)
        return low
    return (0.0 if k == 0 else where(lambda p: at_least(k, n, p) < 0.025), 1.0 if k == n else where(lambda p: at_least(k + 1, n, p) < 0.975))


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
            published[place] = max(published.get(place, 0), float(r["published_tp"]))
        if r["metric"] == "any" and r["tp_count"]:
            found[place] = int(r["tp_count"]), int(r["n"])
    return published, found


def share(k, n):
    low, high = interval(k, n)
    return f"{k} of {n} [{low:.2f}, {high:.2f}]"


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
        tp = max(p.get(place, 0) for p, _ in read_all)
        low, high = interval(round(tp * CELLS), CELLS)
        cells = []
        for i, (_, found) in enumerate(read_all):
            k, n = found[place]
            ok = low - 1e-9 <= k / n <= high + 1e-9
            inside[i] += ok
            cells.append(share(k, n) if ok else f"**{share(k, n)}**")
        print(f"| {fault} | {workload} | {tp:g} [{low:.2f}, {high:.2f}] | " + " | ".join(cells) + " |")
print("| **inside the interval** | | 30 | " + " | ".join(f"{k} of 30" for k in inside) + " |")
