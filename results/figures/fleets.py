#!/usr/bin/env python3
"""Draws what the fleet detector and its rivals find in made-up fleets of the held-out families (results/fleet-families.md), over the
ratio, ill for all of the time and for a tenth of it, beside their false alarms: fleet-families.svg.

    results/figures/fleets.py [FOLDER]      default: results/figures (make figures does that)

Needs Python 3 and nothing else. The figures are those of results/fleet/families.csv; which families are held out is told by
`fleet_families list`, $OUT/bench's."""
import csv
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from svg import FAINT, GRID, INK, PEERS, VICTIM, Figure  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARES = ((1.0, "ill for all of the time"), (0.1, "ill for 10 % of the time"))
GREY = "#6b6b6b"
STYLES = ((VICTIM, None, "dot"), (PEERS[0], "7 4", "square"), (PEERS[0], "2 3", "diamond"), (PEERS[1], "7 4", "triangle"),
	(PEERS[1], "2 3", "ring"), (PEERS[2], "7 4", "square"), (GREY, "2 3", "cross"), (GREY, "9 3 2 3", "triangle"))
TOP, BOTTOM, WIDE, LEFT = 60, 320, 300, 70


def held_out():
	program = os.path.join(ROOT, os.environ.get("OUT", "out"), "bench", "fleet_families")
	lines = subprocess.run([program, "list"], check=True, stdout=subprocess.PIPE, cwd=ROOT, text=True).stdout.splitlines()
	rows = [[cell.strip() for cell in line.split("|")] for line in lines]
	return {r[1] for r in rows if r[2] == "held out"}


def read():
	with open(os.path.join(ROOT, "results", "fleet", "families.csv"), encoding="utf-8") as f:
		rows = list(csv.DictReader(line for line in f if not line.startswith("#")))
	families = held_out()
	return [r for r in rows if r["family"] in families]


def found(rows, detector, ratio, share):
	mine = [r for r in rows if r["detector"] == detector and float(r["ratio"]) == ratio and float(r["share"]) == share]
	return sum(int(r["tp"]) for r in mine) / sum(int(r["ill"]) for r in mine)


def alarms(rows, detector):
	mine = [r for r in rows if r["detector"] == detector and float(r["share"]) == 0]
	return 1e4 * sum(int(r["fp"]) for r in mine) / sum(float(r["weeks"]) for r in mine)


def panel(f, left, words, ratios, curves):
	x = lambda v: left + WIDE * (ratios.index(v) + 0.5) / len(ratios)  # noqa: E731
	y = lambda v: BOTTOM - (BOTTOM - TOP) * v  # noqa: E731
	f.text(left + WIDE / 2, TOP - 16, words, "middle", bold=True)
	for v in (0, 0.25, 0.5, 0.75, 1):
		f.line([(left, y(v)), (left + WIDE, y(v))], GRID)
		f.text(left - 8, y(v) + 5, "%g" % (100 * v), "end", 13)
	f.line([(left, TOP), (left, BOTTOM), (left + WIDE, BOTTOM)], FAINT)
	for v in ratios:
		f.line([(x(v), BOTTOM), (x(v), BOTTOM + 5)], FAINT)
		f.text(x(v), BOTTOM + 20, "%g" % v, "middle", 12)
	f.text(left + WIDE / 2, BOTTOM + 42, "times their healthy self", "middle")
	for k in reversed(range(len(curves))):
		colour, dash, shape = STYLES[k % len(STYLES)]
		points = [(x(r), y(v)) for r, v in zip(ratios, curves[k])]
		f.line(points, colour, 1.5 if k else 3, dash)
		for point in points:
			f.mark(*point, shape, colour, 3.2 if k else 4.5)


def main():
	folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "results", "figures")
	rows = read()
	detectors = list(dict.fromkeys(r["detector"] for r in rows))
	ratios = sorted({float(r["ratio"]) for r in rows if float(r["share"]) > 0})
	curves = {share: [[found(rows, d, r, share) for r in ratios] for d in detectors] for share, _ in SHARES}
	said = ". ".join("%s, %s: %s" % (d, words, ", ".join("%.0f %% at %g" % (100 * v, r) for v, r in zip(curves[share][k], ratios)))
		for share, words in SHARES for k, d in enumerate(detectors))
	f = Figure(LEFT + 2 * (WIDE + 55) + 235, BOTTOM + 60, "Ill members found, by ratio, in fleets of held-out families", said)
	f.turned(22, (TOP + BOTTOM) / 2, "ill members found, %")
	for i, (share, words) in enumerate(SHARES):
		panel(f, LEFT + i * (WIDE + 55), words, ratios, curves[share])
	left = LEFT + 2 * (WIDE + 55)
	for i, line in enumerate(("false alarms in 10,000", "series-weeks of clean fleets:")):
		f.text(left, TOP - 16 + 18 * i, line, size=13)
	for k, d in enumerate(detectors):
		colour, dash, shape = STYLES[k % len(STYLES)]
		y = TOP + 32 + 28 * k
		f.line([(left, y), (left + 30, y)], colour, 1.5 if k else 3, dash)
		f.mark(left + 15, y, shape, colour, 3.2 if k else 4.5)
		f.text(left + 38, y + 5, d, size=13, fill=INK)
		f.text(left + 205, y + 5, "%.3g" % alarms(rows, d), "end", 13)
	f.save(os.path.join(folder, "fleet-families.svg"))


if __name__ == "__main__":
	main()
