"use strict";
/* Compared runs: the output of 'culprit table A B', with the rates of all runs side by side. */

function comparedTotals(d) {
	const names = [...new Set(d.detectors.map((r) => r.detector))];
	const columns = [["faulty", "right_server", "right server", true], ["faulty", "wrong_server", "wrong server", false], ["controls", "false_alarm", "false alarm", false]];

	return el("div.scroll", {tabindex: "0", role: "group", "aria-label": "Runs side by side"},
		el("table.matrix", null, tableCaption("Over all faults and workloads of each run: rate, count, exact 95 % interval"),
			el("thead", null, el("tr", null, ["detector", "run"].map((h) => el("th.workload", {scope: "col"}, h)), columns.map(([, , h]) => el("th", {scope: "col"}, h)))),
			el("tbody", null, names.flatMap((name) => {
				const rows = d.detectors.filter((r) => r.detector === name);

				return rows.map((r, i) => el(i ? "tr" : "tr.first", null, i ? null : el("th.fault", {scope: "rowgroup", rowspan: String(rows.length)}, name),
					el("th.workload", {scope: "row"}, r.run), columns.map(([part, key, , good]) => totalCell(r[part] && r[part][key], r[part] && r[part].n, good))));
			}))));
}

/* Each comparison as a line between two rates; different ones are emphasised. */
function comparedPlot(d) {
	const rows = d.comparisons.filter((c) => c.fault !== null || c.what === "false alarm").filter((c) => c.what !== "wrong server" || c.differs);
	const name = (c) => c.detector + ", " + (c.fault === null ? "controls" : c.fault) + (c.what === "right server" ? "" : ", " + c.what) +
		(d.runs.length > 2 ? ", " + c.other : "");
	const say = rows.filter((c) => c.differs).map((c) => name(c) + ": " + c.first_count + " of " + c.first_n + ", then " + c.other_count + " of " + c.other_n).join("; ");
	const tall = 20, label = "Rates of the first run and of the others. They differ by more than chance: " + (say || "nowhere");
	const place = plotPlace(label, rows.length * tall + 30, (width, height) => {
		const left = Math.min(300, width * .45), x = scale(0, 1, left, width - 14), bottom = height - 24;

		return [[0, .25, .5, .75, 1].map((v) => [svg("line", {class: "rule", x1: x(v), x2: x(v), y1: 0, y2: bottom}), text(x(v), bottom + 15, "middle", String(v))]),
			rows.map((c, i) => {
				const y = i * tall + 11, a = x(c.first_count / c.first_n), b = x(c.other_count / c.other_n);

				return [text(left - 10, y + 4, "end", shortened(name(c), Math.floor(left / 6.3)), {class: c.differs ? "victim-text" : ""}),
					svg("line", {class: c.differs ? "change differs" : "change", x1: a, x2: b, y1: y, y2: y}),
					svg("circle", {class: "first-run", cx: a, cy: y, r: 4.5}), svg("circle", {class: "other-run" + (c.differs ? " differs" : ""), cx: b, cy: y, r: 3.5},
						svg("title", {}, name(c) + ": " + c.first_count + "/" + c.first_n + " then " + c.other_count + "/" + c.other_n + ", p = " + digits(c.p, 2)))];
			})];
	});

	return card("h3", "From run to run", ["Right servers by fault, and false alarms: the ring is ", d.runs[0].run, ", the dot ",
		d.runs.slice(1).map((r) => r.run).join(" or "), ". ", say ? "They differ by more than chance: " + say + "." : "Nowhere do they differ by more than chance.",
		" Fisher's exact tests, two-sided, 5 % for all together (Holm)."], place, () => [["detector", "fault", "what", "first", "first_count", "first_n", "other", "other_count",
		"other_n", "p", "differs"], ...d.comparisons.map((c) => [c.detector, c.fault, c.what, c.first, c.first_count, c.first_n, c.other, c.other_count, c.other_n, c.p, c.differs])]);
}

function drawCompared() {
	const d = run.compared;

	if (!d)
		return;
	document.getElementById("compared").hidden = document.getElementById("nav-compared").hidden = false;
	document.getElementById("compared").setAttribute("aria-labelledby", "compared-title");
	fill("compared", el("h2", {id: "compared-title"}, "Compared"),
		el("p.muted", null, "This report is of ", el("b", null, d.runs[0].run), "; compared with: ", d.runs.slice(1).map((r) => r.run + " (" + r.cells.confirmed + " of " +
			plural(r.cells.planned, "cell") + " confirmed)").join(", "), "."),
		comparedTotals(d), d.comparisons.length ? comparedPlot(d) : null);
	drawPlots(document.getElementById("compared"));
}
