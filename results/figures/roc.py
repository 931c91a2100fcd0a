#!/usr/bin/env python3
"""Draws what thresholds cost and bring: right servers over wrong ones for several settings of each detector, on the cells of Table 1's
run that were held out from peer-robust's tuning (see results/table1-20261121.md).

    results/figures/roc.py [FOLDER]      default: results/figures (make figures does that)

Needs Python 3 and nothing else. The figures are those of `culprit rescore RUN --cells HELD --detector NAME,SETTING ... --json`."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from svg import FAINT, GRID, INK, PEERS, VICTIM, Figure, legend  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN, HELD = "table1-20261121", "245-404"  # held out for the third version of peer-robust, and peer-threshold
SETTINGS = (("peer-robust", "alarm", ("0.0001", "0.1", "1", "50"), "%", PEERS[0], None, "dot"),
	("peer-threshold", "margin", ("1", "1.25", "1.5", "2", "3", "5"), "", VICTIM, "7 4", "square"))
LEFT, TOP, RIGHT, BOTTOM = 75, 70, 620, 430


def rates():
	"""(detector, value) -> (right servers, wrong servers or false alarms), shares of the faulty and of all cells."""
	args = ["rescore", "results/runs/" + RUN, "--cells", HELD, "--json"]
	for name, key, values, unit, *_ in SETTINGS:
		for value in values:
			args += ["--detector", "%s,%s=%s%s" % (name, key, value, unit)]
	program = os.path.join(ROOT, os.environ.get("OUT", "out"), "culprit")
	text = subprocess.run([program, *args], check=True, stdout=subprocess.PIPE, cwd=ROOT, text=True).stdout
	out = {}
	for d in json.loads(text)["summary"]["detectors"]:
		faulty, controls = d["faulty"], d["controls"]
		out[d["detector"]] = (faulty["right_server"]["count"] / faulty["n"],
			(faulty["wrong_server"]["count"] + controls["false_alarm"]["count"]) / (faulty["n"] + controls["n"]),
			faulty["n"], controls["n"])
	return out


def main():
	folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "results", "figures")
	found = rates()
	n, controls = next(iter(found.values()))[2:]
	shown = {"%s(%s=%s%s)" % (name, key, value, unit) for name, key, values, unit, *_ in SETTINGS for value in values}
	found = {k: v for k, v in found.items() if k in shown}
	top = max(1, -(-max(x for _, x, *_ in found.values()) * 10 // 1)) / 10
	f = Figure(680, 500, "What thresholds cost and bring", "Share of %d faulty servers found, over the share of %d cells in which a healthy server"
		" was indicted, by setting. " % (n, n + controls) + ". ".join("%s: %.2f found, %.2f wrong" % (k, v[0], v[1]) for k, v in found.items()))
	x = lambda v: LEFT + (RIGHT - LEFT) * v / top  # noqa: E731
	y = lambda v: BOTTOM - (BOTTOM - TOP) * v  # noqa: E731
	legend(f, 20, 24, [("%s, by '%s'" % (name, key), lambda a, b, c=colour, d=dash, s=shape: (f.line([(a, b), (a + 26, b)], c, 2, d),
		f.mark(a + 13, b, s, c))) for name, key, _, _, colour, dash, shape in SETTINGS])
	for v in (0, 0.25, 0.5, 0.75, 1):
		f.line([(LEFT, y(v)), (RIGHT, y(v))], GRID)
		f.text(LEFT - 8, y(v) + 5, "%g" % v, "end", 13)
	for i in range(int(round(top * 10)) + 1):
		f.line([(x(i / 10), BOTTOM), (x(i / 10), BOTTOM + 5)], FAINT)
		f.text(x(i / 10), BOTTOM + 20, "%g" % (i / 10), "middle", 13)
	f.line([(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM)], FAINT)
	f.turned(26, (TOP + BOTTOM) / 2, "right server, of %d faulty cells" % n)
	f.text((LEFT + RIGHT) / 2, BOTTOM + 44, "some healthy server, of all %d cells" % (n + controls), "middle")
	for name, key, values, unit, colour, dash, shape in SETTINGS:
		points = [(value, found["%s(%s=%s)" % (name, key, value + unit)]) for value in values]
		f.line([(x(p[1]), y(p[0])) for _, p in points], colour, 1.5, dash)
		at = {}
		for value, p in points:
			at.setdefault((p[0], p[1]), []).append(value + unit)
		for (right, wrong), words in at.items():
			f.mark(x(wrong), y(right), shape, colour)
			f.text(x(wrong) + 9, y(right) + (-8 if shape == "dot" else 17), ", ".join(words), size=12, fill=INK, halo="#ffffff")
	f.save(os.path.join(folder, "table1-roc.svg"))


if __name__ == "__main__":
	main()
