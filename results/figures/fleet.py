#!/usr/bin/env python3
"""Draws the figure of the detector 'fleet' in diag/detectors/HOW.md, from a made-up fleet with a fixed seed.

    results/figures/fleet.py [FOLDER]      default: results/figures (make figures does that)

Needs Python 3 and nothing else. The fleet is that of `fleet_csv`, the findings and the limit are those of `culprit diagnose`, both of $OUT.
The ratios are computed here, from the definitions; the figure is refused if they are not what the detector says."""
import csv
import io
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from svg import DASHES, FAINT, GRID, INK, PEERS, SHADE, VICTIM, Figure, legend  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLEET = ["groups", "seed=2", "members=60", "group=6", "hours=336", "step=900", "ratio=1.5", "share=0.6"]
STEP_S, WINDOW = 900, 16  # a window of 16 cells is 4 h
LEFT, RIGHT = 150, 830


def run(program, *args):
	path = os.path.join(ROOT, os.environ.get("OUT", "out"), program)
	return subprocess.run([path, *args], check=True, stdout=subprocess.PIPE, cwd=ROOT, text=True).stdout


def same(one, other, what, tolerance=0.0):
	if one != other and not (tolerance and abs(one - other) <= tolerance):
		sys.exit("%s: drawn would be %r, the detector says %r" % (what, one, other))


class Fleet:
	def __init__(self):
		with tempfile.TemporaryDirectory() as folder:
			table, labels = os.path.join(folder, "fleet.csv"), os.path.join(folder, "ill.csv")
			with open(table, "w", encoding="utf-8") as f:
				f.write(run("bench/fleet_csv", *FLEET, "labels=" + labels))
			self.said = json.loads(run("culprit", "diagnose", "--csv", table, "--json"))
			with open(table, encoding="utf-8") as f:
				rows = list(csv.DictReader(line for line in f if not line.startswith("#")))
			with open(labels, encoding="utf-8") as f:
				ill, = csv.DictReader(f)
		self.ill, self.onset_s = (ill["host"], ill["member"]), float(ill["from"])
		self.begin_s = min(float(r["time"]) for r in rows)
		self.levels = {}
		for r in rows:
			self.levels.setdefault((r["host"], r["member"]), []).append(float(r["latency_ms"]))
		self.hosts = sorted({h for h, _ in self.levels})
		self.ratios = {m: self.ratio(m) for m in self.levels}

	def ratio(self, member):
		"""Logarithms of the ratio to the median of the others that are not ill, cell by cell."""
		peers = [v for m, v in self.levels.items() if m[0] == member[0] and m not in (member, self.ill)]
		return [math.log(x / statistics.median(p)) for x, p in zip(self.levels[member], zip(*peers))]


def lasting(ratios):
	"""The ratio of the mean of the middle half of the logarithms."""
	v = sorted(ratios)
	return math.exp(statistics.fmean(v[len(v) // 4:len(v) - len(v) // 4]))


def windows(ratios):
	"""The remedian of 16: the mean of the middle two of four, twice."""
	row, size = list(ratios), WINDOW
	while size > 1:
		row = [statistics.median(row[i:i + 4]) for i in range(0, len(row) - 3, 4)]
		size //= 4
	return [math.exp(r) for r in row]


class Axes:
	def __init__(self, figure, top, bottom, low, high, ticks):
		self.f, self.top, self.bottom, self.low, self.high, self.ticks = figure, top, bottom, low, high, ticks

	def part(self, ratio):
		return (math.log(min(max(ratio, self.low), self.high)) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))


def draw_members(f, fleet, limit, top, tall):
	axes = Axes(f, top, top + tall * len(fleet.hosts), 0.8, 1.7, (0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6))
	x = lambda v: LEFT + (RIGHT - LEFT) * axes.part(v)  # noqa: E731
	for v in axes.ticks:
		f.line([(x(v), axes.top), (x(v), axes.bottom)], FAINT if v == 1 else GRID)
		f.text(x(v), axes.bottom + 18, "%g" % v, "middle", 13)
	f.text((LEFT + RIGHT) / 2, axes.bottom + 38, "lasting ratio to the peers of the same host", "middle")
	for i, host in enumerate(fleet.hosts):
		y = top + tall * (i + 0.5)
		level = statistics.median(v for m, series in fleet.levels.items() if m[0] == host for v in series)
		f.line([(LEFT, y + tall / 2), (RIGHT, y + tall / 2)], GRID)
		f.text(LEFT - 10, y + 5, "%s, %.1f ms" % (host, level), "end", 13, bold=host == fleet.ill[0])
		for m in sorted(fleet.levels):
			if m[0] == host:
				ill = m == fleet.ill
				f.mark(x(lasting(fleet.ratios[m])), y, "dot" if ill else "ring", VICTIM if ill else PEERS[0], 6 if ill else 4)
	f.line([(x(limit), axes.top), (x(limit), axes.bottom)], INK, 2, "10 4")
	f.text(x(limit) + 6, axes.top + 15, "limit %.2f" % limit, size=13, halo="#ffffff")
	return axes.bottom


def draw_time(f, fleet, finding, top, bottom):
	days = len(fleet.levels[fleet.ill]) * STEP_S / 86400
	axes = Axes(f, top, bottom, 0.7, 2, (0.7, 0.8, 1, 1.2, 1.5, 2))
	y = lambda v: bottom - (bottom - top) * axes.part(v)  # noqa: E731
	x = lambda day: LEFT + (RIGHT - LEFT) * min(max(day, 0), days) / days  # noqa: E731
	day = lambda s: (s - fleet.begin_s) / 86400  # noqa: E731
	f.rect(x(day(fleet.onset_s)), top, x(day(fleet.onset_s) + 0.6 * days), bottom, SHADE)
	f.text(x(day(fleet.onset_s) + 0.3 * days), top - 6, "ill: 1.5 times as slow", "middle", 13, "#6b4e00")
	for v in axes.ticks:
		f.line([(LEFT, y(v)), (RIGHT, y(v))], GRID)
		f.text(LEFT - 7, y(v) + 5, "%g" % v, "end", 13)
	for d in range(int(days) + 1):
		f.line([(x(d), bottom), (x(d), bottom + 5)], FAINT)
		f.text(x(d), bottom + 20, str(d), "middle", 13)
	f.line([(LEFT, top), (LEFT, bottom), (RIGHT, bottom)], FAINT)
	f.text((LEFT + RIGHT) / 2, bottom + 40, "days", "middle")
	f.turned(LEFT - 70, (top + bottom) / 2, "ratio to the peers")
	members = sorted(m for m in fleet.levels if m[0] == fleet.ill[0] and m != fleet.ill) + [fleet.ill]
	for i, m in enumerate(members):
		ill, at = m == fleet.ill, windows(fleet.ratios[m])
		points = [(x((k + 0.5) * WINDOW * STEP_S / 86400), y(v)) for k, v in enumerate(at)]
		f.line(points, VICTIM if ill else PEERS[i % 3], 3 if ill else 1.2, None if ill else DASHES[i % 3])
		for point in points if ill else []:
			f.mark(*point, "dot", VICTIM, 3)
	for key in ("since_s", "until_s"):
		at = x(day(finding[key]))
		f.line([(at, top), (at, bottom)], INK, 1.5, "3 2")
		f.text(at + 6, bottom - 8, key[:5], size=13, halo="#ffffff")


def main():
	folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "results", "figures")
	fleet = Fleet()
	finding, = fleet.said["findings"]
	metric, = fleet.said["metrics"]
	same("/".join(fleet.ill), finding["member"], "who is ill")
	ratios = {m: lasting(r) for m, r in fleet.ratios.items()}
	off = [v for v in windows(fleet.ratios[fleet.ill]) if math.log(v) > math.log(ratios[fleet.ill]) / 2]
	same(round(statistics.median(off), 3), round(finding["effect"], 3), "times its peers", 0.03 * finding["effect"])
	same([fleet.ill], [m for m, v in ratios.items() if v >= metric["limit"]], "beyond the limit")

	healthy = [v for m, v in ratios.items() if m != fleet.ill]
	f = Figure(860, 750, "How the detector fleet finds one slow disk of %d" % len(ratios), "Above, a row for each of %d hosts, with one mark a"
		" disk: its lasting ratio to the disks of the same host. Healthy disks lie between %.2f and %.2f, whatever the level of their host;"
		" the ill one, %s of %s, lies at %.2f, beyond the limit of %.2f. Below, the ratios of that host's disks over 14 days, in windows of"
		" 4 hours: the ill one's rises to %.2f times its peers and falls again." % (len(fleet.hosts), min(healthy), max(healthy),
			fleet.ill[1], fleet.ill[0], ratios[fleet.ill], metric["limit"], finding["effect"]))
	legend(f, 20, 24, [("a disk", lambda a, b: f.mark(a + 13, b, "ring", PEERS[0], 4)),
		("the ill one", lambda a, b: f.mark(a + 13, b, "dot", VICTIM, 6))])
	bottom = draw_members(f, fleet, metric["limit"], 50, 34)
	draw_time(f, fleet, finding, bottom + 90, bottom + 300)
	f.save(os.path.join(folder, "fleet.svg"))


if __name__ == "__main__":
	main()
