"use strict";
/* How TP grows with a fault's strength, and how much the application loses, for faults with several strengths: a plot per fault, with a
 * line per detector and one for the application over all workloads, and the figures of each workload as a table. */

const dose_plot = {width: 260, height: 150, left: 30, right: 10, top: 8, bottom: 22};

/* A line through the strengths that are known, each with its interval; strengths are equidistant. Points are {value, low, high} or null. */
function doseLine(points, look, dash, offset) {
	const p = dose_plot, n = points.length;
	const x = (i) => p.left + (p.width - p.left - p.right) * (i + 0.5) / n + offset;
	const y = (v) => p.height - p.bottom - (p.height - p.top - p.bottom) * Math.min(1, Math.max(0, v));
	const at = points.map((a, i) => ({x: x(i), ...a})).filter((a) => typeof a.value === "number");

	return svg("g", {class: "dose " + look}, svg("polyline", {points: at.map((a) => a.x.toFixed(1) + "," + y(a.value).toFixed(1)).join(" "),
		"stroke-dasharray": dash.join(" ")}),
	...at.filter((a) => typeof a.low === "number").map((a) => svg("line", {x1: a.x, x2: a.x, y1: y(a.low), y2: y(a.high)})),
	...at.map((a) => svg("circle", {cx: a.x, cy: y(a.value), r: 3})));
}

function foundPoints(sweep) {
	return sweep.strengths.map((s) => hasRate(s.scores.all.tp) ? {value: s.scores.all.tp.rate, low: s.scores.all.tp.low,
		high: s.scores.all.tp.high} : null);
}

/* How much of its speed the application loses: by its throughput, or by the time that its requests take. */
const losses = {
	throughput: {label: "application: throughput lost", of: (ratio) => 1 - ratio, dash: []},
	latency: {label: "application: speed lost by latency", of: (ratio) => 1 - 1 / ratio, dash: [2, 3]},
};

function lossPoints(application, measure) {
	const of = losses[measure].of;

	return application.strengths.map((s) => {
		const i = s.impact.all[measure], bounds = i.low === null ? [null, null] : [of(i.low), of(i.high)].sort((a, b) => a - b);

		return i.ratio === null ? null : {value: of(i.ratio), low: bounds[0], high: bounds[1]};
	});
}

/* Measures that are known at some strength. */
function lossesOf(application) {
	return application ? Object.keys(losses).filter((m) => application.strengths.some((s) => s.impact.all[m].ratio !== null)) : [];
}

/* "0.34 [0.20, 0.46]" */
function impactText(i) {
	const digits = (x) => x.toFixed(x < 9.995 ? 2 : 0);

	return i.ratio === null ? "unknown" : digits(i.ratio) + (i.low === null ? "" : " [" + digits(i.low) + ", " + digits(i.high) + "]");
}

function applicationOf(sweep) {
	return run.doses.application.find((a) => a.fault === sweep.fault && a.parameter === sweep.parameter);
}

function doseFigure(sweeps) {
	const p = dose_plot, first = sweeps[0], n = first.strengths.length, application = applicationOf(first), lost = lossesOf(application);
	const axis = [0, 0.5, 1].map((v) => p.height - p.bottom - (p.height - p.top - p.bottom) * v);
	const said = [...sweeps.map((s) => s.detector + ": " + s.strengths.map((d) => d.strength + " " + (hasRate(d.scores.all.tp) ?
		d.scores.all.tp.count + " of " + d.scores.all.n : "not measured")).join(", ")),
	...lost.map((m) => m + " of the application: " + application.strengths.map((s) => s.strength + " " + impactText(s.impact.all[m])).join(", "))]
		.join(". ");

	return el("figure.chart", null, el("figcaption", null, first.fault + " by " + first.parameter),
		svg("svg", {viewBox: "0 0 " + p.width + " " + p.height, class: "doses", role: "img",
			"aria-label": "Found of " + first.fault + " by " + first.parameter + ". " + said},
		...axis.map((y) => svg("line", {x1: p.left, x2: p.width - p.right, y1: y, y2: y, class: "rule"})),
		...axis.map((y, i) => svg("text", {x: p.left - 5, y: y + 4, "text-anchor": "end"}, ["0", ".5", "1"][i])),
		...first.strengths.map((s, i) => svg("text", {x: p.left + (p.width - p.left - p.right) * (i + 0.5) / n,
			y: p.height - 6, "text-anchor": "middle"}, s.strength)),
		...lost.map((m, k) => doseLine(lossPoints(application, m), "loss", losses[m].dash, (sweeps.length + 1) / 2 * 5 + k * 5)),
		...sweeps.map((s, k) => doseLine(foundPoints(s), "l" + k % 4, dashes[k % 4], (k - (sweeps.length - 1) / 2) * 5))),
		el("p.starts", null, [...lost.map((m) => "application (" + m + ") from " + doseText(application.suffers_from.all[m], application)),
			...sweeps.map((s) => s.detector + " from " + doseText(s.found_from.all.tp, s))].join("; ")));
}

function doseText(value, sweep) {
	const s = sweep.strengths.find((d) => d.value === value);

	return s ? s.strength : "–";
}

function doseTable(fault, sweeps, application) {
	const columns = Object.keys(sweeps[0].strengths[0].scores).filter((c) => sweeps[0].strengths[0].scores[c].tp !== undefined);

	return fold(fault + ": figures", {}, application ? lossTable(fault, application) : null, sweeps.map((sweep) => el("div.scroll", {tabindex: "0", role: "group",
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

/* What the application loses at each strength, by workload. */
function lossTable(fault, application) {
	const columns = Object.keys(application.strengths[0].impact);

	return lossesOf(application).map((m) => grid(fault + ", " + m + " of the application: during the fault over before it, over the same of controls",
		[application.parameter, ...columns], [...application.strengths.map((s) => [s.strength, ...columns.map((c) => impactText(s.impact[c][m]) +
			(s.impact[c][m].n ? " n=" + s.impact[c][m].n : ""))]),
		["suffers from", ...columns.map((c) => doseText(application.suffers_from[c][m], application))]]));
}

function drawDoses() {
	const sweeps = run.doses ? run.doses.sweeps.filter((s) => run.real.includes(s.detector)) : [];
	const faults = [...new Set(sweeps.map((s) => s.fault + " by " + s.parameter))];
	const of = (fault) => sweeps.filter((s) => s.fault + " by " + s.parameter === fault);
	const unknown = run.doses ? Object.entries(run.doses.unknown) : [];
	const lost = run.doses ? [...new Set(run.doses.application.flatMap(lossesOf))] : [];

	if (!sweeps.length)
		return;
	document.getElementById("doses").hidden = document.getElementById("nav-doses").hidden = false;
	document.getElementById("doses").setAttribute("aria-labelledby", "doses-title");
	fill("doses", el("h2", {id: "doses-title"}, "Strength"),
		el("p.muted", null, "Share of faulty cells in which every victim is indicted (TP), over all workloads, by the strength of the " +
			"fault, with exact 95 % intervals. Found from: the smallest strength from which on TP is at least " + run.doses.level +
			"; surely: the same for the lower end of its interval."),
		lost.length ? el("p.muted", null, "Application: what it loses of its speed under the fault, against controls of the same workload, with 95 % " +
			"intervals; a gain is drawn as 0. It suffers from the smallest strength from which on it is surely slower. A detector whose line rises " +
			"further left sees the fault before the application feels it.") : null,
		unknown.map(([m, why]) => el("p.muted", null, "The application's " + m + " is unknown: " + why + ".")),
		el("p.keys", null, of(faults[0]).map((s, k) => el("span.dose-key.l" + k % 4, null, s.detector)),
			lost.map((m) => el("span.dose-key.loss" + (losses[m].dash.length ? ".dotted" : ""), null, losses[m].label))),
		el("div.small-multiples", null, faults.map((f) => doseFigure(of(f)))),
		faults.map((f) => doseTable(f, of(f), applicationOf(of(f)[0]))));
}
