"use strict";
/* A panel shows a view or the user's own query: queried when it becomes visible, and again when
 * the filters change. */

const panels = [];

function newPanel(view, load) {
	const body = el(view.chart === "table" ? "div.body.of-table" : "div.body"), legend = el("div.legend"), foot = el("p.foot"), sql = el("pre", {hidden: true}, view.sql || "");
	const show = el("button.link", {type: "button", "aria-expanded": "false", onclick: () => {
		sql.hidden = !sql.hidden;
		show.setAttribute("aria-expanded", String(!sql.hidden));
	}}, "SQL");
	const data = el("button.link", {type: "button", "aria-expanded": "false", onclick: () => {
		panel.asTable = !panel.asTable;
		data.setAttribute("aria-expanded", String(panel.asTable));
		showAnswer(panel);
	}}, "table");
	const box = el(view.chart === "table" ? "section.panel.wide" : "section.panel", {"aria-label": view.title}, el("div.head", null,
		el("h2", null, view.title), view.unit ? el("span.unit", null, view.unit) : null,
		el("span.tools", null, view.chart === "table" ? null : data, view.sql ? show : null)),
	view.about ? el("p.about", null, view.about) : null, sql, body, legend, foot);
	const panel = {view, box, body, legend, foot, load, wanted: "", asked: null, answer: null, asTable: false, seen: false, chart: null, hidden: new Set(), colours: new Map()};

	panels.push(panel);
	watcher.observe(box);
	return panel;
}

const watcher = new IntersectionObserver((entries) => {
	for (const e of entries) {
		const panel = panels.find((p) => p.box === e.target);

		if (panel) {
			panel.seen = e.isIntersecting;
			update(panel);
		}
	}
}, {rootMargin: "150px"});

/* Queries again if the selection differs from the displayed one. */
async function update(panel, byItself) {
	const wanted = JSON.stringify([focus(), app.state.generation]);

	if (!panel.seen && !panel.folded || panel.wanted === wanted || app.tab !== "charts" && panel.box.closest("#charts"))
		return;
	panel.wanted = wanted;
	if (panel.asked)
		panel.asked.abort();
	const asked = panel.asked = new AbortController(), range = shown();

	panel.box.classList.toggle("busy", !byItself || panel.box.classList.contains("busy"));
	if (!panel.answer && !panel.failed)
		panel.body.replaceChildren(el("p.said", null, "asking …"));
	try {
		panel.answer = await panel.load(asked.signal);
		panel.failed = null;
	} catch (e) {
		if (e.name === "AbortError")
			return;
		panel.answer = null;
		panel.failed = e.message;
	}
	if (panel.asked !== asked)
		return;
	for (let i = 0; i < 100 && panel.chart && panel.chart.drag; i++) /* the user is selecting a period: wait until that is done */
		await new Promise((done) => setTimeout(done, 100));
	if (panel.asked !== asked)
		return;
	panel.asked = null;
	panel.range = range;
	panel.box.classList.remove("busy");
	showAnswer(panel);
}

function showAnswer(panel) {
	const {answer, view} = panel;

	panel.cursor = panel.chart && panel.chart.cursor;
	panel.chart = null;
	if (panel.failed || !answer || !answer.rows.length || view.chart === "table" || panel.asTable)
		panel.legend.replaceChildren();
	panel.foot.textContent = footOf(answer);
	panel.box.classList.toggle("empty", !panel.failed && !(answer && answer.rows.length));
	panel.box.dataset.state = panel.failed ? "failed" : answer && answer.rows.length ? "shown" : "empty";
	showEmpty();
	if (panel.failed)
		panel.body.replaceChildren(el("p.said.wrong", null, panel.failed));
	else if (!answer || !answer.rows.length)
		panel.body.replaceChildren(el("p.said", null, "Nothing recorded here"));
	else if (view.chart === "table" || panel.asTable)
		panel.body.replaceChildren(tableOf(answer, view.title, LINKS));
	else
		showChart(panel);
}

/* Empty panels become one line at the end; a click on a name shows its panel there. */
const nothing = el("p.panel.wide.nothing", {id: "nothing", hidden: true});

function showEmpty() {
	const empty = panels.filter((p) => !p.own && p.box.dataset.state === "empty"), is = JSON.stringify(empty.map((p) => [p.view.name, p.opened]));

	for (const p of panels) {
		p.folded = empty.includes(p) && !p.opened;
		p.box.hidden = p.folded;
	}
	nothing.hidden = !empty.length;
	if (nothing.dataset.of === is)
		return;
	const had = nothing.contains(document.activeElement) ? document.activeElement.dataset.view : null;

	nothing.dataset.of = is;
	nothing.replaceChildren("Nothing recorded of: ", ...empty.flatMap((p, i) => [i ? "; " : "", el("button.link", {type: "button", "aria-expanded": String(Boolean(p.opened)),
		"data-view": p.view.name, onclick: () => {
			p.opened = !p.opened;
			showEmpty();
		}}, p.view.title)]));
	for (const b of nothing.querySelectorAll("button"))
		if (b.dataset.view === had)
			b.focus({preventScroll: true});
}

function footOf(answer) {
	const said = [];

	if (!answer)
		return "";
	if (answer.more)
		said.push("only the first " + answer.rows.length + " rows");
	/* A log that is being written has no end yet, which is not a problem. */
	return [...said, ...app.state.goes_on && !app.state.run ? [] : answer.problems].join("; ");
}

function showChart(panel) {
	const {view, answer} = panel, canvas = el("canvas", {tabindex: "0", role: "img"}), named = view.chart === "dots";
	const chart = panel.chart = {canvas, kind: view.chart, unit: view.unit, log: view.log && view.chart === "line", range: panel.range || shown(),
		hidden: panel.hidden, cursor: panel.cursor ?? null, drag: null};

	if (named) {
		const count = new Map();

		for (const r of answer.rows)
			count.set(r[2], (count.get(r[2]) || 0) + r[3]);
		chart.dots = {rows: answer.rows, dt: answer.dt, dy: answer.dy, series: [...count.keys()].sort((a, b) => count.get(b) - count.get(a))};
		chart.data = {first: 0, step: answer.dt, n: 0, series: chart.dots.series.map((name) => ({name, values: []})), left: []};
	} else {
		chart.data = shape(answer, view.chart);
	}
	chart.colour = colourOf(panel.colours, chart.data.series);
	canvas.setAttribute("aria-label", view.title + ": " + plural(chart.data.series.length, "series", "series") + ", from " + chart.range[0].toFixed(3) + " s to " +
		chart.range[1].toFixed(3) + " s. Arrows read values, plus and minus zoom.");
	const focused = panel.body.contains(document.activeElement);

	panel.body.replaceChildren(canvas);
	if (view.chart !== "heat")
		drawLegend(panel);
	if (chart.data.left.length)
		panel.foot.textContent = [plural(chart.data.left.length, "smaller series is", "smaller series are") + " not drawn (table has all)", panel.foot.textContent].filter(Boolean).join("; ");
	draw(chart);
	listenTo(chart);
	if (focused)
		canvas.focus({preventScroll: true});
}

function drawLegend(panel) {
	const chart = panel.chart, {series} = chart.data, had = panel.legend.contains(document.activeElement) ? document.activeElement.dataset.name : null;

	if (series.length === 1 && !series[0].name) {
		panel.legend.replaceChildren();
		return;
	}
	panel.legend.replaceChildren(...series.map((s, k) => {
		const b = el("button", {type: "button", "aria-pressed": String(!chart.hidden.has(s.name)), title: "Show or hide", "data-name": s.name, onclick: () => {
			if (!chart.hidden.delete(s.name))
				chart.hidden.add(s.name);
			b.setAttribute("aria-pressed", String(!chart.hidden.has(s.name)));
			draw(chart);
		}}, swatch(chart, k), s.name, concerned(s.name));

		return b;
	}));
	for (const b of panel.legend.children)
		if (b.dataset.name === had)
			b.focus({preventScroll: true});
}

function redrawAll() {
	for (const p of panels)
		if (p.chart)
			draw(p.chart);
}

/* Marks may arrive without calls. */
let marksDrawn = "";

function redrawMarks() {
	const is = JSON.stringify(marksShown());

	if (marksDrawn === is)
		return;
	marksDrawn = is;
	for (const p of panels)
		if (p.chart && p.chart.kind !== "heat")
			drawLegend(p);
	redrawAll();
}

/* Makes the panels of the views once; an invalid view shows its error. */
function drawPanels() {
	const box = byId("charts");

	for (const view of app.state.views) {
		const panel = newPanel(view, (signal) => ask("panel", {view: view.name, ...focus()}, {signal}));

		if (view.wrong) {
			panel.failed = view.wrong;
			panel.load = async () => { throw new Error(view.wrong); };
		}
		box.append(panel.box);
	}
	box.append(nothing);
}
