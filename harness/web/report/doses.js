"use strict";
/* How TP grows with a fault's strength, for faults with several strengths: a plot per fault, with a line per detector over
 * all workloads, and the figures of each workload as a table. */

const dose_plot = {width: 260, height: 150, left: 30, right: 10, top: 8, bottom: 22};

/* One detector's line: its rate and exact interval at each strength; strengths are equidistant. */
function doseLine(sweep, k, n_lines) {
	const p = dose_plot, n = sweep.strengths.length;
	const x = (i) => p.left + (p.width - p.left - p.right) * (i + 0.5) / n + (k - (n_lines - 1) / 2) * 5;
	const y = (v) => p.height - p.bottom - (p.height - p.top - p.bottom) * v;
	const at = sweep.strengths.map((s, i) => ({x: x(i), rate: s.scores.all.tp})).filter((a) => hasRate(a.rate));
	const points = at.map((a) => a.x.toFixed(1) + "," + y(a.rate.rate).toFixed(1)).join(" ");

	return svg("g", {class: "dose l" + k % 4}, svg("polyline", {points, "stroke-dasharray": dashes[k % 4].join(" ")}),
		...at.map((a) => svg("line", {x1: a.x, x2: a.x, y1: y(a.rate.low), y2: y(a.rate.high)})),
		...at.map((a) => svg("circle", {cx: a.x, cy: y(a.rate.rate), r: 3})));
}

function doseFigure(sweeps) {
	const p = dose_plot, first = sweeps[0], n = first.strengths.length;
	const axis = [0, 0.5, 1].map((v) => p.height - p.bottom - (p.height - p.top - p.bottom) * v);
	const said = sweeps.map((s) => s.detector + ": " + s.strengths.map((d) => d.strength + " " + (hasRate(d.scores.all.tp) ?
		d.scores.all.tp.count + " of " + d.scores.all.n : "not measured")).join(", ")).join(". ");

	return el("figure.chart", null, el("figcaption", null, first.fault + " by " + first.parameter),
		svg("svg", {viewBox: "0 0 " + p.width + " " + p.height, class: "doses", role: "img",
			"aria-label": "Found of " + first.fault + " by " + first.parameter + ". " + said},
		...axis.map((y) => svg("line", {x1: p.left, x2: p.width - p.right, y1: y, y2: y, class: "rule"})),
		...axis.map((y, i) => svg("text", {x: p.left - 5, y: y + 4, "text-anchor": "end"}, ["0", ".5", "1"][i])),
		...first.strengths.map((s, i) => svg("text", {x: p.left + (p.width - p.left - p.right) * (i + 0.5) / n,
			y: p.height - 6, "text-anchor": "middle"}, s.strength)),
		...sweeps.map((s, k) => doseLine(s, k, sweeps.length))));
}

function doseText(value, sweep) {
	const s = sweep.strengths.find((d) => d.value === value);

	return s ? s.strength : "–";
}

function doseTable(fault, sweeps) {
	const columns = Object.keys(sweeps[0].strengths[0].scores).filter((c) => sweeps[0].strengths[0].scores[c].tp !== undefined);

	return fold(fault + ": figures", {}, sweeps.map((sweep) => el("div.scroll", {tabindex: "0", role: "group",
		"aria-label": fault + ", " + sweep.detector},
	el("table.matrix", null, tableCaption(fault + " by " + sweep.parameter + ", " + sweep.detector + ": TP at each strength"),
		el("thead", null, el("tr", null, el("th.workload", {scope: "col"}, sweep.parameter),
			columns.map((c) => el("th", {scope: "col"}, breakable(c))))),
		el("tbody", null, sweep.strengths.map((s) => el("tr.first", null, el("th.workload", {scope: "row"}, s.strength),
			columns.map((c) => totalCell(s.scores[c].tp, s.scores[c].n, true)))),
		el("tr.first", null, el("th.workload", {scope: "row"}, "found from"), columns.map((c) => el("td.plain-cell", null,
			doseText(sweep.found_from[c].tp, sweep), el("span.ci", null, "surely: " +
				doseText(sweep.found_from[c].tp_low, sweep))))))))));
}

function drawDoses() {
	const sweeps = run.doses ? run.doses.sweeps.filter((s) => run.real.includes(s.detector)) : [];
	const faults = [...new Set(sweeps.map((s) => s.fault + " by " + s.parameter))];
	const of = (fault) => sweeps.filter((s) => s.fault + " by " + s.parameter === fault);

	if (!sweeps.length)
		return;
	document.getElementById("doses").hidden = document.getElementById("nav-doses").hidden = false;
	document.getElementById("doses").setAttribute("aria-labelledby", "doses-title");
	fill("doses", el("h2", {id: "doses-title"}, "Strength"),
		el("p.muted", null, "Share of faulty cells in which every victim is indicted (TP), over all workloads, by the strength of the " +
			"fault, with exact 95 % intervals. Found from: the smallest strength from which on TP is at least " + run.doses.level +
			"; surely: the same for the lower end of its interval."),
		el("p.keys", null, of(faults[0]).map((s, k) => el("span.dose-key.l" + k % 4, null, s.detector))),
		el("div.small-multiples", null, faults.map((f) => doseFigure(of(f)))),
		faults.map((f) => doseTable(f, of(f))));
}
