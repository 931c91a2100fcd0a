"""Counts again from a run's samples and requests how much each strength of a fault slows the application.

   impact.py FOLDER    of FOLDER/cells, samples (CSV), json ('table --by strength --json') and, for latency, requests (CSV: cell, t, total_ns)
"""
import csv
import json
import math
import os
import statistics
import sys

folder = sys.argv[1]


def quantile(freedom):
    """Student's t at .975, by integrating its density."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)

    def above(t):  # half of the mass less that from 0 to t, x = t sin(u): Simpson
        n, total = 2000, 0
        for k in range(n + 1):
            x = t * k / n
            weight = 1 if k in (0, n) else 4 if k % 2 else 2
            total += weight * (1 + x * x / freedom) ** (-(freedom + 1) / 2)
        return 0.5 - scale * total * t / n / 3

    low, high = 0, 700
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) > 0.025 else (low, middle)
    return low


cells = {}
for line in open(folder + "/cells"):
    number, fault, workload, seconds, *times = line.rstrip("\n").split("|")
    start, onset, offset = (int(t or 0) for t in times)
    cells[int(number)] = {"fault": fault if onset else None, "workload": workload, "seconds": int(seconds), "moved": {}, "taken": ([], []),
                          "onset": (onset - start) / 1e9, "offset": (offset - start) / 1e9}
for key in ("onset", "offset"):
    middle = statistics.median(c[key] for c in cells.values() if c["fault"])
    for c in cells.values():
        if not c["fault"]:
            c[key] = middle
for row in csv.DictReader(open(folder + "/samples")):
    if int(row["cell"]) in cells:
        moved = cells[int(row["cell"])]["moved"]
        moved[int(row["second"])] = moved.get(int(row["second"]), 0) + float(row["sum"])
for c in cells.values():
    before = {s: x for s, x in c["moved"].items() if s + 1 <= c["onset"]}
    begun = min([s + 1 for s, x in before.items() if x > 0 and x >= max(before.values()) / 10], default=c["onset"] if before else 0)
    before = [x for s, x in before.items() if s >= begun]
    during = [x for s, x in c["moved"].items() if s >= c["onset"] and s + 1 <= c["offset"]]
    later = [x for s, x in c["moved"].items() if s >= math.floor(c["offset"]) - 1 and x > 0]
    c["begun"] = begun
    c["throughput"] = max(0.01, statistics.mean(during) / statistics.mean(before)) if before and sum(before) and during and later else None
if os.path.exists(folder + "/requests"):
    for row in csv.DictReader(open(folder + "/requests")):
        c = cells.get(int(row["cell"]))
        if c and row["total_ns"] and c["begun"] <= float(row["t"]) < c["offset"]:
            c["taken"][float(row["t"]) >= c["onset"]].append(float(row["total_ns"]))
for c in cells.values():
    c["latency"] = statistics.mean(c["taken"][1]) / statistics.mean(c["taken"][0]) if all(c["taken"]) else None


def logs(measure, fault, workload):
    return [math.log(c[measure]) for c in cells.values() if c["fault"] == fault and c["workload"] == workload and c[measure] is not None]


def squares(values):
    return sum((x - statistics.mean(values)) ** 2 for x in values)


def impact(measure, fault, workloads):
    """n, controls, ratio, low, high"""
    parts = [(f, c) for f, c in ((logs(measure, fault, w), logs(measure, None, w)) for w in workloads) if f and c]
    n, controls = sum(len(f) for f, _ in parts), sum(len(c) for _, c in parts)
    if not n:
        return 0, 0, None, None, None
    shift = sum(len(f) * (statistics.mean(f) - statistics.mean(c)) for f, c in parts) / n
    if any(len(c) < 2 for _, c in parts):
        return n, controls, math.exp(shift), None, None
    freedoms = [len(f) + len(c) - 2 for f, c in parts]
    errors = [(len(f) / n) ** 2 * (squares(f) + squares(c)) / d * (1 / len(f) + 1 / len(c)) for (f, c), d in zip(parts, freedoms)]
    variance = sum(errors)
    half = quantile(variance ** 2 / sum(e ** 2 / d for e, d in zip(errors, freedoms))) * math.sqrt(variance) if variance else 0
    return n, controls, math.exp(shift), math.exp(shift - half), math.exp(shift + half)


seen = {"throughput": 0, "latency": 0}
names = sorted({c["workload"] for c in cells.values()})
table = json.load(open(folder + "/json"))
for sweep in table["application"]:
    suffering = {}
    for strength in sweep["strengths"]:
        assert set(strength["impact"]) == {*names, "all"}, strength["impact"].keys()
        for workload, measures in strength["impact"].items():
            for measure, got in measures.items():
                wanted = impact(measure, strength["label"], names if workload == "all" else [workload])
                for key, value in zip(("n", "controls", "ratio", "low", "high"), wanted):
                    same = got[key] is value if value is None or got[key] is None else abs(got[key] - value) <= 2e-4 * value
                    assert same, (sweep["fault"], strength["strength"], workload, measure, key, got, wanted)
                seen[measure] += got["ratio"] is not None
                slower = got["low"] is not None and (got["low"] > 1 if measure == "latency" else got["high"] < 1)
                suffering.setdefault((workload, measure), []).append(strength["value"] if slower else None)
    for (workload, measure), values in suffering.items():
        wanted = None
        for value in reversed(values):
            if value is None:
                break
            wanted = value
        assert sweep["suffers_from"][workload][measure] == wanted, (sweep["fault"], workload, measure, values)
print(*("%s %d" % (measure, n) for measure, n in seen.items()))
