"use strict";
/* The matrix: one row per fault, workload and metric; for each detector the rate of named victims (TP) and of named healthy
 * servers (FP), with counts and exact intervals. Colour repeats the numbers. */

const other_axes = ["tracer"]; /* further axes of scores in some runs */

function axisOf(score) {
	return other_axes.filter((a) => score[a] !== undefined && score[a] !== null).map((a) => score[a]).join(", ");
}

/* 0 .. 8: from completely wrong to completely right. */
function step(rate, high_is_good) {
	return Math.round(8 * (high_is_good ? rate : 1 - rate));
}

/* The interval on a line from 0 to 1, and the rate on it. */
function whisker(rate) {
	const x = (v) => 2 + 56 * v;

	return svg("svg", {viewBox: "0 0 60 8", preserveAspectRatio: "xMinYMid", class: "whisker",
		"aria-hidden": "true", focusable: "false"},
		svg("line", {x1: 2, x2: 58, y1: 4, y2: 4, class: "axis"}),
		svg("line", {x1: x(rate.low), x2: x(rate.high), y1: 4, y2: 4, class: "range"}),
		svg("circle", {cx: x(rate.rate), cy: 4, r: 2.6, class: "rate"}));
}

function rateCell(score, which, name, real) {
	const rate = score && score[which];
	const silent = score && score.metric !== "any" && score.abstained === score.n;

	const cell = !hasRate(rate) || silent ? emptyCell(silent ? "always abstained" : score && score.control ? "control" : "not scored", name)
		: heatCell(rate, score.n, which === "tp", name, score.abstained ? el("span.ci", null, score.abstained + " abst.") : null);

	if (!real)
		cell.classList.add("null");
	return cell;
}

/* Rows of the matrix: {fault, workload, axis, metric}, in table order. Metrics without verdicts
 * are omitted. */
function matrixRows(by_metric) {
	const rows = new Map();

	for (const s of run.scores) {
		if (s.metric !== "any" && !(by_metric && (s.fp.count || (s.tp && s.tp.count))))
			continue;
		const key = JSON.stringify([s.fault, s.workload, axisOf(s), s.metric]);

		if (!rows.has(key))
			rows.set(key, {fault: s.fault, workload: s.workload, axis: axisOf(s), metric: s.metric,
				control: s.control,
				scores: Object.create(null)});
		rows.get(key).scores[s.detector] = s;
	}
	const places = (of) => [...new Set(run.scores.map(of))];
	const faults = places((s) => s.fault), workloads = places((s) => s.workload), axes = places(axisOf);
	const metrics = ["any", ...places((s) => s.metric).filter((m) => m !== "any")];

	return [...rows.values()].sort((a, b) => faults.indexOf(a.fault) - faults.indexOf(b.fault) ||
		workloads.indexOf(a.workload) - workloads.indexOf(b.workload) ||
			axes.indexOf(a.axis) - axes.indexOf(b.axis) ||
		metrics.indexOf(a.metric) - metrics.indexOf(b.metric));
}

function matrixHead(detectors) {
	const real = detectors.filter((d) => run.real.includes(d)).length;
	const groups = el("tr", null, el("td", {colspan: "2", rowspan: "3"}),
		real ? el("th.group", {colspan: String(2 * real), scope: "colgroup"}, "detectors") : null,
		detectors.length > real ? el("th.group.null", {colspan: String(2 * (detectors.length - real)),
			scope: "colgroup"},
			"null detectors: what guessing scores") : null);

	return el("thead", null, groups,
		el("tr", null, detectors.map((d, i) => el(i >= real ? "th.null" : "th", {colspan: "2",
			scope: "colgroup", id: "d" + i}, d))),
		el("tr", null, detectors.map((d, i) => [
			el(i >= real ? "th.which.null" : "th.which", {scope: "col", id: "d" + i + "tp"}, el("abbr",
				{title: "share of faulty cells in which every victim is indicted"}, "TP")),
			el(i >= real ? "th.which.null" : "th.which", {scope: "col", id: "d" + i + "fp"}, el("abbr",
				{title: "share of cells in which a healthy server is indicted"}, "FP"))])));
}

function matrixTable(by_metric) {
	const rows = matrixRows(by_metric), detectors = run.detectors;
	const body = el("tbody");

	rows.forEach((row, i) => {
		const first = i === 0 || rows[i - 1].fault !== row.fault;
		const span = rows.filter((r) => r.fault === row.fault).length;
		const sub = row.metric !== "any";
		const head = "r" + i, fault = "f" + rows.findIndex((r) => r.fault === row.fault);
		const count = run.scored.filter((c) => c.fault === row.fault && c.workload === row.workload).length;
		const label = [row.workload, row.axis].filter(Boolean).join(", ");

		body.append(el("tr" + (first ? ".first" : "") + (sub ? ".sub" : ""), null,
			first ? el("th.fault", {scope: "rowgroup", rowspan: String(span), id: fault}, breakable(row.fault),
				row.control ? el("span.muted", null, row.fault === "none" ? " (control)" : " (look-alike)") : null) : null,
			el("th.workload", {scope: "row", id: head}, sub ? el("span.muted", null, "by " + row.metric)
				: el("button.link", {type: "button", "aria-label": label + ": show the " +
					plural(count, "cell") + " of " +
					row.fault, onclick: () => showCells({fault: row.fault,
						workload: row.workload})}, breakable(label))),
			detectors.map((d, k) => ["tp", "fp"].map((w) =>
				rateCell(row.scores[d], w, [fault, head, "d" + k, "d" + k + w].join(" "), run.real.includes(d))))));
	});
	return el("table.matrix", null, tableCaption("Scores of " + run.run +
		": each cell shows the rate, its count, and the exact " +
		"95 % interval"), matrixHead(detectors), body);
}

function legend() {
	return el("p.legend.muted", null, el("span", null, "wrong "), [0, 1, 2, 3, 4, 5, 6, 7, 8].map((s) =>
		el("span.swatch.s" + s, {"aria-hidden": "true"})), el("span", null, " right"),
		" · ", el("b", null, "TP"), " faulty cells in which every victim is indicted · ", el("b", null, "FP"),
		" cells in which some healthy server is · [exact 95 % interval, rounded outwards] · paler: of fewer than 10 cells");
}

function drawMatrix() {
	const more = run.scores.some((s) => s.metric !== "any" && (s.fp.count || (s.tp && s.tp.count)));
	const place = el("div.scroll", {tabindex: "0", role: "group", "aria-label": "Matrix of scores"});
	const draw = (by_metric) => place.replaceChildren(matrixTable(by_metric));

	if (!run.scores.length) {
		fill("matrix", el("h2", {id: "matrix-title"}, "Matrix"), el("p", null, run.timed ?
			"This run measures run times: there is nothing to diagnose in it." : "There are no scores: no confirmed cell has been judged."));
		return;
	}
	draw(false);
	fill("matrix", el("h2", {id: "matrix-title"}, "Matrix"), legend(), el("div.choices", null, more ? el("label.tick", null, el("input",
		{type: "checkbox",
		onchange: (e) => draw(e.target.checked)}), " also by metric") : null, nullsButton()), place);
}
