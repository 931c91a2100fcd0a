#!/usr/bin/env python3
"""Draws who slows whom at a disk, by second, as Esteves et al. 2023, figures 3 and 4: latency of one kind of threads, what they do, and how
many of another kind are at it.

    results/figures/contention.py SECONDS.csv SLOW OTHERS FIGURE.svg [MANY]

A second is shaded from MANY of the others on, or more than half of the most there were.
SECONDS.csv is what ci/bench/contention.sh writes: second, name, threads, calls, bytes, ms, p99_ms. Needs Python 3 and nothing else."""
import csv
import sys

sys.dont_write_bytecode = True
from svg import PEERS, SHADE, VICTIM, Figure, Panel  # noqa: E402

WIDE, TALL, LEFT = 960, 170, 90


def nice(top):
	"""Three steps from 0 to at least 'top'."""
	unit = 10.0 ** (len(str(int(max(top, 1)))) - 1)
	step = next(unit * f for f in (0.2, 0.5, 1, 2, 5, 10) if unit * f * 3 >= top)
	return [step * i for i in range(4)]


def main():
	source, slow, others, target = sys.argv[1:5]
	rows = list(csv.DictReader(open(source, encoding="utf-8")))
	begin = min(int(r["second"]) for r in rows)
	seconds = max(int(r["second"]) for r in rows) - begin + 1

	def of(name, column):
		out = [0.0] * seconds
		for r in rows:
			if r["name"] == name:
				out[int(r["second"]) - begin] = float(r[column] or 0)
		return out

	workers, p99, ms, calls = of(others, "threads"), of(slow, "p99_ms"), of(slow, "ms"), of(slow, "calls")
	most = max(workers)
	many = int(sys.argv[5]) if len(sys.argv) > 5 else int(most) // 2 + 1
	crowded = [i for i, n in enumerate(workers) if n >= many]
	said = "%d of %d seconds with %d or more of %d %s threads" % (len(crowded), seconds, many, most, others)
	f = Figure(WIDE, 3 * TALL + 90, "%s threads slow while %s threads use the disk" % (slow, others), said)
	f.rect(LEFT, 8, LEFT + 26, 22, SHADE)
	f.text(LEFT + 33, 20, said, size=13)
	step = next(s for s in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600) if seconds / s <= 16)
	for i, (label, values, colour) in enumerate((("99 %% of %s: ms" % slow, p99, VICTIM), ("calls of %s a second" % slow, calls, PEERS[0]),
			("%s threads" % others, workers, PEERS[1]))):
		ticks = nice(max(values))
		top = 40 + i * (TALL + 5)
		p = Panel(f, LEFT, top, WIDE - 20, top + TALL - 30, seconds, 0, ticks[-1])
		for s in crowded:
			f.rect(p.x(s), p.top, p.x(s + 1), p.bottom, SHADE)
		p.axes(label, ticks, lambda v: "%g" % v, time=i == 2, step=step)
		p.curve(values, 0.5, colour, 1.5)
		if i == 0:
			p.curve(ms, 0.5, VICTIM, 1.0, "2 3")
			f.text(WIDE - 20, top + 12, "dotted: mean", "end", 13)
	f.save(target)


if __name__ == "__main__":
	main()
