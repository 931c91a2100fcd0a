"use strict";
/* Charts of the whole run, from its verdicts: accused against guilty, ROC curves, delays, and the course of the run
 * over time. */

const nobody = "nobody";

/* Scored cells that a detector judged. */
function judgedBy(detector) {
	return run.scored.filter((c) => c.confirmed && c.said[detector]);
}

function confusion(detector) {
	const counts = new Map(), add = (row, column) => {
		const key = JSON.stringify([row, column]);

		counts.set(key, (counts.get(key) || 0) + 1);
	};
	const cells = judgedBy(detector), order = (names) => [...names].sort((a, b) => (b === nobody) - (a === nobody) ||
		run.servers.indexOf(a) - run.servers.indexOf(b));

	for (const c of cells) {
		const said = c.said[detector], row = c.victims.length ? c.victims.join(", ") : nobody;

		for (const accused of said.indicted.length ? said.indicted : [said.abstain ? "abstained" : nobody])
			add(row, accused);
	}
	const rows = order(new Set(cells.map((c) => c.victims.length ? c.victims.join(", ") : nobody)));
	const servers = order(new Set(cells.flatMap((c) => [...c.victims, ...c.said[detector].indicted])));

	return {rows, columns: [nobody, ...(cells.some((c) => c.said[detector].abstain) ? ["abstained"] : []), ...servers],
		at: (row, column) => counts.get(JSON.stringify([row, column])) || 0, cells,
		n: (row) => cells.filter((c) => (c.victims.length ? c.victims.join(", ") : nobody) === row).length};
}

function confusionTable(detector) {
	const m = confusion(detector);
	const right = (row, column) => row === nobody ? column === nobody : row.split(", ").includes(column);

	return el("div.scroll", {tabindex: "0", role: "group", "aria-label": "Accused against guilty, " + detector},
		el("table.matrix.confusion", null, tableCaption(detector + ": rows are the guilty servers, columns those accused; each of several accused counts"),
			el("thead", null, el("tr", null, el("th.workload", {scope: "col"}, "guilty"), m.columns.map((c) => el("th", {scope: "col"}, breakable(c))),
				el("th", {scope: "col"}, "cells"))),
			el("tbody", null, m.rows.map((row) => el("tr", null, el("th.workload", {scope: "row"}, breakable(row)), m.columns.map((column) => {
				const n = m.at(row, column), of = m.n(row), good = right(row, column);

				return el(n ? "td.heat.s" + (good ? 4 + Math.ceil(4 * Math.min(1, n / of)) : 4 - Math.ceil(4 * Math.min(1, n / of))) + paleness(of)
					: good ? "td.heat.right.none" : "td.heat.none", null, n ? el("b", null, String(n)) : el("span", {"aria-hidden": "true"}, "·"),
				n ? null : el("span.sr", null, "0"));
			}), el("td.num", null, String(m.n(row))))))));
}

function drawConfusion() {
	const place = el("div"), names = [...run.real, ...run.detectors.filter((d) => !run.real.includes(d))].filter((d) => judgedBy(d).length);
	const state = {detector: names[0]};
	const rows = () => {
		const m = confusion(state.detector);

		return [["guilty", ...m.columns, "cells"], ...m.rows.map((r) => [r, ...m.columns.map((c) => m.at(r, c)), m.n(r)])];
	};
	const draw = () => place.replaceChildren(confusionTable(state.detector));

	draw();
	return el("section.card.wide", {"aria-label": "Accused against guilty"}, el("div.card-head", null, el("h3", null, "Accused against guilty"),
		el("span.saving", null, el("label", null, "Detector ", el("select", {onchange: (e) => {
			state.detector = e.target.value;
			draw();
		}}, names.map((d) => option(d, d, state.detector)))), el("button.plain", {type: "button", "aria-label": "Accused against guilty as CSV",
			onclick: () => save(new Blob([csvText(rows())], {type: "text/csv"}), fileName("accused against guilty " + state.detector, "csv"))}, "CSV"))), place);
}

/* Points of the curve: for every limit, the share of faulty cells in which every victim reaches it, and the share of all
 * cells in which a healthy server does. */
function rocOf(detector) {
	const cells = judgedBy(detector).filter((c) => c.said[detector].severity || c.said[detector].abstain), faulty = cells.filter((c) => c.victims.length);
	const least = (c) => Math.min(...c.victims.map((v) => own(c.said[detector].severity, v) ?? -1));
	const healthy = (c) => Math.max(-1, ...Object.entries(c.said[detector].severity || {}).filter(([s]) => !c.victims.includes(s)).map(([, x]) => x));
	const found = faulty.map(least), wrong = cells.map(healthy);
	const limits = [...new Set([...found, ...wrong].filter((x) => x > 0))].sort((a, b) => b - a);
	const share = (list, x) => list.length ? list.filter((v) => v >= x).length / list.length : 0;

	return {cells: cells.length, faulty: faulty.length, points: [[0, 0, Infinity], ...limits.map((x) => [share(wrong, x), share(found, x), x])],
		scored: cells.some((c) => c.said[detector].severity)};
}

function drawRoc() {
	const curves = run.real.map((d) => ({detector: d, ...rocOf(d)})).filter((c) => c.scored && c.faulty);
	const without = run.real.filter((d) => judgedBy(d).length && !curves.some((c) => c.detector === d));

	if (!curves.length)
		return el("figure.card", null, el("h3", null, "ROC: true against false positives as the limit moves"), el("p.muted", null,
			"No verdict of this run has the servers' distances to the limit", run.scored.some((c) => c.victims.length) ? "" : ", and no cell has a fault", ". Detectors of this version add them: ",
			el("code", null, "culprit rescore " + shellWord(run.run) + " --save"), "."));
	const marks = curves.map((c) => {
		const all = judgedBy(c.detector), f = all.filter((x) => x.victims.length), kinds = (list, of) => list.filter((x) => of.includes(x.results[c.detector].kind)).length;

		return [kinds(all, ["both", "other", "alarm"]) / all.length, f.length ? kinds(f, ["named", "both"]) / f.length : 0];
	});
	const text = curves.map((c, i) => c.detector + ": at its own limit " + marks[i][1].toFixed(2) + " found, " + marks[i][0].toFixed(2) + " wrong").join("; ");
	const place = squarePlot("Victims found over healthy servers accused, as the limit moves. " + text, curves.map((c, k) => ({points: c.points, class: "l" + k % 4,
		dash: dashes[k % 4], mark: marks[k]})), true, "cells in which a healthy server is accused", "faulty cells in which every victim is", false);

	return card("h3", "ROC: true against false positives as the limit moves", ["As each detector's limit moves; dots: the actual verdicts, at the detector's own limit. ", plural(curves[0].faulty, "faulty cell"),
		". ", without.length ? "Without a curve, because their verdicts lack the distances to the limit: " + without.join(", ") + "." : null], place,
	() => [["detector", "limit", "wrong_share", "found_share"], ...curves.flatMap((c) => c.points.slice(1).map((p) => [c.detector, p[2], p[0], p[1]]))], keysOf(curves.map((c) => c.detector)));
}

function keysOf(names) {
	return el("p.keys", null, names.map((d, k) => el("span.dose-key.l" + k % 4, null, d)));
}

/* Seconds from the verified onset until the last victim was accused, for right verdicts with a
 * time; 0 if before the onset. */
function delaysOf(detector) {
	return judgedBy(detector).filter((c) => c.victims.length && ["named", "both"].includes(c.results[detector].kind)).map((c) => {
		const at = Math.max(...c.victims.map((v) => c.said[detector].at[v] ?? NaN)), a = c.confirmed;

		return a.onset_ns && a.start_ns && Number.isFinite(at) ? {cell: c.number, fault: c.fault, delay: at - (a.onset_ns - a.start_ns) / 1e9} : null;
	}).filter(Boolean).sort((a, b) => a.delay - b.delay);
}

function drawDelays() {
	const faulty = (d) => judgedBy(d).filter((c) => c.victims.length).length;
	const of = run.real.map((d) => ({detector: d, delays: delaysOf(d), n: faulty(d)})).filter((x) => x.delays.length);

	if (!of.length)
		return null;
	const most = Math.max(1, ...of.flatMap((x) => x.delays.map((d) => d.delay)));
	const say = of.map((x) => x.detector + ": median " + duration(median(x.delays.map((d) => d.delay))) + ", " + x.delays.length + " of " + x.n + " faulty cells").join("; ");
	const place = plotPlace("Share of faulty cells whose victims were accused, by seconds after the onset. " + say, 300, (width, height) => {
		const box = {left: 44, right: width - 12, top: 8, bottom: height - 38}, x = scale(0, most * 1.03, box.left, box.right), y = scale(0, 1, box.bottom, box.top);

		return [axes(x, y, box, roundSteps(0, most, Math.min(8, width / 60)), String, [0, .2, .4, .6, .8, 1], String),
			of.map((o, k) => {
				const steps = [[x(0), y(0)]];

				o.delays.forEach((d, i) => steps.push([x(Math.max(0, d.delay)), y(i / o.n)], [x(Math.max(0, d.delay)), y((i + 1) / o.n)]));
				steps.push([box.right, y(o.delays.length / o.n)]);
				return lines(steps, "l" + k % 4, dashes[k % 4]);
			}), text((box.left + box.right) / 2, height - 6, "middle", "seconds from the verified onset to the accusation")];
	});

	return card("h3", "Delays", ["Share of the faulty cells in which every victim is accused by then. ", say, "."], place,
		() => [["detector", "cell", "fault", "delay_s"], ...of.flatMap((x) => x.delays.map((d) => [x.detector, d.cell, d.fault, d.delay]))], keysOf(of.map((x) => x.detector)));
}

/* The overall result of the run's own detectors for a cell. */
function attemptClass(c, a) {
	if (a.outcome !== "confirmed")
		return "lost";
	if (c.training)
		return "training";
	const said = run.real.filter((d) => c.results[d]);

	return !said.length ? "unjudged" : said.every((d) => !c.results[d].wrong) ? "right" : said.some((d) => !c.results[d].wrong) ? "split" : "wrong";
}

const attempt_words = {right: "all detectors right", split: "some right", wrong: "all wrong", lost: "not counted", training: "training", unjudged: "not judged"};

function drawCourse() {
	const of = run.cells.flatMap((c) => c.attempts.filter((a) => a.started_ns && a.ended_ns).map((a) => ({c, a, as: attemptClass(c, a)})));

	if (!of.length)
		return null;
	const from = Math.min(...of.map((x) => x.a.started_ns)) / 1e9, to = Math.max(...of.map((x) => x.a.ended_ns)) / 1e9;
	const faults = [...new Set(run.cells.map((c) => c.fault))], tall = 22, used = Object.keys(attempt_words).filter((w) => of.some((x) => x.as === w));
	const label = "The run over time, a row per fault: " + used.map((w) => attempt_words[w] + " " + of.filter((x) => x.as === w).length).join(", ");
	const place = plotPlace(label, faults.length * tall + 26, (width, height) => {
		const left = Math.min(130, width / 4), x = scale(from, to, left, width - 10), bottom = height - 22;

		return [timeSteps(from, to, width / 90).map((t) => [svg("line", {class: "rule", x1: x(t), x2: x(t), y1: 0, y2: bottom}),
			text(x(t), bottom + 15, "middle", timeLabel(t, true, to - from))]),
		faults.map((f, k) => text(left - 6, k * tall + 15, "end", shortened(f, Math.floor(left / 6.9)))),
		of.map((r) => svg("rect", {class: "attempt-bar " + r.as, x: x(r.a.started_ns / 1e9), y: faults.indexOf(r.c.fault) * tall + 3, height: tall - 6,
			width: Math.max(1.5, x(r.a.ended_ns / 1e9) - x(r.a.started_ns / 1e9) - .5), "data-cell": r.c.number},
		svg("title", {}, "cell " + r.c.number + ", attempt " + r.a.number + ", " + r.c.fault + " under " + r.c.workload + ": " + attempt_words[r.as])))];
	});

	place.addEventListener("click", (e) => {
		const bar = e.target.closest("[data-cell]"), row = bar && rows_of_cells.find((r) => String(r.cell.number) === bar.dataset.cell);

		if (row)
			goToCell(row);
	});
	return card("h3", "The run over time", ["A bar per attempt, a row per fault, UTC; click a bar to open its cell."], place,
		() => [["cell", "attempt", "fault", "workload", "began", "ended", "outcome", "verdicts"], ...of.map((r) => [r.c.number, r.a.number, r.c.fault, r.c.workload, when(r.a.started_ns),
			when(r.a.ended_ns), r.a.outcome, attempt_words[r.as]])], el("p.keys", null, used.map((w) => el("span.attempt-key", null, svg("svg", {class: "swatch svg-plot", viewBox: "0 0 10 8",
			"aria-hidden": "true"}, svg("rect", {class: "attempt-bar " + w, x: 0, y: 0, width: 10, height: 8})), attempt_words[w] + " (" + of.filter((x) => x.as === w).length + ")"))));
}

function drawRunCharts() {
	const judged_any = run.detectors.some((d) => judgedBy(d).length), course = drawCourse();

	if (!judged_any && !course)
		return;
	document.getElementById("charts").hidden = document.getElementById("nav-charts").hidden = false;
	document.getElementById("charts").setAttribute("aria-labelledby", "charts-title");
	fill("charts", el("h2", {id: "charts-title"}, "The run in charts"),
		judged_any ? [drawConfusion(), el("div.plot-grid", null, drawRoc(), drawDelays())] : null, course);
	drawPlots(document.getElementById("charts"));
}
