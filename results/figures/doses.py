#!/usr/bin/env python3
"""Draws what detectors find of each fault by its strength, and what it costs the application, for every committed run of a sweep
(results/runs/dose-*): NAME.svg.

    results/figures/doses.py [FOLDER]      default: results/figures (make figures does that)

Needs Python 3 and nothing else. The figures are those of `culprit table RUN --by strength --json`, $OUT/culprit's."""
import glob
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from svg import FAINT, GRID, PEERS, VICTIM, Figure, legend  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NULLS = ("always-healthy", "always-same", "seeded-random")
STYLES = ((PEERS[0], None, "dot"), (VICTIM, "7 4", "square"), (PEERS[1], "2 3", "triangle"))
APPLICATION = FAINT
WIDE, TALL, ACROSS = 280, 190, 3


def sweeps_of(run):
	program = os.path.join(ROOT, os.environ.get("OUT", "out"), "culprit")
	text = subprocess.run([program, "table", run, "--by", "strength", "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout
	table = json.loads(text)
	return [s for s in table["sweeps"] if s["detector"] not in NULLS], table["application"]


def lost(strength):
	"""What the application loses of its throughput: (low, value, high), None where it is not known."""
	impact = strength["impact"]["all"]["throughput"]
	return tuple(None if impact[key] is None else min(1, max(0, 1 - impact[key])) for key in ("high", "ratio", "low"))


def panel(f, left, top, fault, sweeps, application):
	right, bottom = left + WIDE - 70, top + TALL - 70
	strengths = [d["strength"] for d in sweeps[0]["strengths"]]
	step = (right - left) / len(strengths)
	f.text(left, top - 12, fault, bold=True)
	for v in (0, 0.5, 1):
		y = bottom - (bottom - top) * v
		f.line([(left, y), (right, y)], GRID)
		f.text(left - 7, y + 5, "%g" % v, "end", 13)
	f.line([(left, top), (left, bottom), (right, bottom)], FAINT)
	for i, words in enumerate(strengths):
		f.text(left + step * (i + 0.5), bottom + 18, words, "middle", 13)
	losses = [(left + step * (i + 0.5) + (len(sweeps) + 1) / 2 * 9, lost(d)) for i, d in enumerate(application["strengths"])]
	for x, (low, _, high) in losses:
		if low is not None:
			f.line([(x, bottom - (bottom - top) * low), (x, bottom - (bottom - top) * high)], APPLICATION, 1.2)
	f.line([(x, bottom - (bottom - top) * v) for x, (_, v, _) in losses if v is not None], APPLICATION, 3.5)
	for k, sweep in enumerate(sweeps):
		colour, dash, shape = STYLES[k % len(STYLES)]
		points = []
		for i, d in enumerate(sweep["strengths"]):
			rate = d["scores"]["all"]["tp"]
			x = left + step * (i + 0.5) + (k - (len(sweeps) - 1) / 2) * 9
			y = [bottom - (bottom - top) * rate[key] for key in ("low", "rate", "high")]
			f.line([(x, y[0]), (x, y[2])], colour, 1.2)
			points.append((x, y[1]))
		f.line(points, colour, 2, dash)
		for x, y in points:
			f.mark(x, y, shape, colour, 4)


def draw(run, folder):
	sweeps, applications = sweeps_of(run)
	faults = list(dict.fromkeys("%s, by %s" % (s["fault"], s["parameter"]) for s in sweeps))
	detectors = list(dict.fromkeys(s["detector"] for s in sweeps))
	rows = (len(faults) + ACROSS - 1) // ACROSS
	said = ". ".join("%s %s: %s" % (s["detector"], s["fault"], ", ".join("%d of %d at %s" % (d["scores"]["all"]["tp"]["count"],
		d["scores"]["all"]["n"], d["strength"]) for d in s["strengths"])) for s in sweeps)
	said += ". Throughput of the application against controls: " + "; ".join("%s: %s" % (a["fault"], ", ".join("%.2f at %s" % (
		d["impact"]["all"]["throughput"]["ratio"], d["strength"]) for d in a["strengths"] if d["impact"]["all"]["throughput"]["ratio"] is not None))
		for a in applications)
	f = Figure(40 + WIDE * min(ACROSS, len(faults)), 40 + TALL * rows,
		"Share of faulty servers found, and of the application's throughput lost, by the fault's strength", said)
	legend(f, 20, 24, [(d, lambda x, y, st=STYLES[k % len(STYLES)]: (f.line([(x, y), (x + 26, y)], st[0], 2, st[1]),
		f.mark(x + 13, y, st[2], st[0], 4))) for k, d in enumerate(detectors)] +
		[("application: throughput lost", lambda x, y: f.line([(x, y), (x + 26, y)], APPLICATION, 3.5))])
	for i, fault in enumerate(faults):
		mine = [s for s in sweeps if "%s, by %s" % (s["fault"], s["parameter"]) == fault]
		costs = next(a for a in applications if "%s, by %s" % (a["fault"], a["parameter"]) == fault)
		panel(f, 60 + WIDE * (i % ACROSS), 74 + TALL * (i // ACROSS), fault, mine, costs)
	f.save(os.path.join(folder, os.path.basename(run) + ".svg"))


def main():
	folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "results", "figures")
	for run in sorted(glob.glob(os.path.join(ROOT, "results", "runs", "dose-*"))):
		draw(run, folder)


if __name__ == "__main__":
	main()
