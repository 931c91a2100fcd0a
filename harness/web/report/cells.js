"use strict";
/* The list of cells: filtering, and opening them one by one. */

const filters = {workload: "", fault: "", tracer: "", show: "all"};
let rows_of_cells = [];

function wantedCell(c) {
	if ((filters.workload && c.workload !== filters.workload) || (filters.fault && c.fault !== filters.fault) ||
		(filters.tracer && c.tracer !== filters.tracer))
		return false;
	if (filters.show === "wrong")
		return run.real.some((d) => c.results[d] && c.results[d].wrong);
	if (filters.show === "unscored")
		return !c.confirmed;
	if (filters.show === "retried")
		return c.attempts.length > 1;
	return true;
}

function applyFilters() {
	let n = 0;

	for (const r of rows_of_cells) {
		const wanted = wantedCell(r.cell);

		r.row.hidden = !wanted;
		r.panel.hidden = !wanted || r.button.getAttribute("aria-expanded") !== "true";
		n += wanted ? 1 : 0;
	}
	document.getElementById("cells-count").textContent = plural(n, "cell") + " of " + run.cells.length;
}

/* Unpacks a cell once it becomes visible. */
const seen = new IntersectionObserver((entries) => {
	for (const e of entries)
		if (e.isIntersecting) {
			seen.unobserve(e.target);
			fillCell(rows_of_cells.find((r) => r.panel === e.target));
		}
}, {rootMargin: "300px"});

async function fillCell(r) {
	if (!r.filled) {
		const inside = r.panel.querySelector(".inside");

		r.filled = (async () => {
			const panels = await Promise.all(r.cell.attempts.map((a) => attemptPanel(r.cell, a)));

			inside.replaceChildren(el("h3.sr", null, "Cell " + r.cell.number), ...(panels.length ? panels :
				[el("p", null, r.cell.skipped ? "Skipped: " + r.cell.skipped : "Not run.")]));
			drawCharts(r.panel);
			drawPlots(r.panel);
		})();
	}
	return r.filled;
}

function openCell(r, open) {
	r.button.setAttribute("aria-expanded", String(open));
	r.panel.hidden = !open;
	if (!open)
		return;
	if (r.filled) {
		drawCharts(r.panel);
		drawPlots(r.panel);
	} else {
		r.panel.querySelector(".inside").replaceChildren(el("p.waiting", null, "Unpacking …"));
		seen.observe(r.panel);
	}
}

function cellRow(c, columns) {
	const about = (run.timed ? "" : c.fault + " under ") + c.workload;
	const button = el("button.open", {type: "button", id: "cell-" + c.number, "aria-expanded": "false",
		"aria-controls": "panel-" + c.number, "aria-label": "Cell " + c.number + ", " + about}, String(c.number));
	const time = c.confirmed && c.confirmed.runtime_s ? duration(c.confirmed.runtime_s) : "–";
	const tries = c.attempts.length > 1 ? " (" + plural(c.attempts.length, "attempt") + ")" : "";
	const row = el("tr.cell", null,
		el("th", {scope: "row"}, button),
		el("td", null, c.training ? "training" : String(c.repeat)),
		el("td", null, breakable(c.workload)),
		run.timed ? null : el("td", null, breakable(c.fault)),
		run.tracers.length > 1 ? el("td", null, breakable(c.tracer || "–")) : null,
		run.timed ? null : el("td.victim", null, c.victims.join(", ") || "–"),
		el("td", null, outcome(c), el("span.muted", null, tries)),
		run.timed ? el("td.num", null, time) : null,
		run.detectors.map((d) => el(run.real.includes(d) ? "td" : "td.null", null,
			c.results[d] ? badge(c.results[d], d) : el("span.muted", null, "–"))));
	const panel = el("tr.panel", {id: "panel-" + c.number, hidden: true}, el("td", {colspan: String(columns)},
		el("div.inside")));
	const r = {cell: c, row, panel, button, filled: false};

	row.addEventListener("click", (e) => {
		if (e.target.closest("button") === button || !String(window.getSelection()))
			openCell(r, button.getAttribute("aria-expanded") !== "true");
	});
	return r;
}

function choice(label, key, values) {
	return el("label", null, label + " ", el("select", {id: "filter-" + key, onchange: (e) => {
		filters[key] = e.target.value;
		applyFilters();
	}}, values.map(([value, text]) => option(value, text, filters[key]))));
}

/* Shows the cells of one entry of the matrix. */
function showCells(wanted) {
	Object.assign(filters, {tracer: "", show: "all"}, wanted);
	for (const key of Object.keys(filters)) {
		const select = document.getElementById("filter-" + key);

		if (select)
			select.value = filters[key];
	}
	applyFilters();
	const first = rows_of_cells.find((r) => !r.row.hidden);

	document.getElementById("cells").scrollIntoView();
	if (first)
		first.button.focus({preventScroll: true});
}

/* Opens a cell from another part of the page. */
function goToCell(r) {
	if (r.row.hidden)
		showCells({workload: "", fault: ""});
	openCell(r, true);
	r.row.scrollIntoView();
	r.button.focus({preventScroll: true});
}

/* 'now': unpack even if not visible, for printing. */
async function openAll(open, now) {
	for (const r of rows_of_cells)
		if (!r.row.hidden) {
			openCell(r, open);
			if (open && now)
				await fillCell(r);
		}
}

function drawCells() {
	const names = (key) => [["", "all"], ...[...new Set(run.cells.map((c) => c[key]))].map((v) => [v, v])];
	const heads = ["Cell", "Repeat", "Workload", ...(run.timed ? [] : ["Fault"]),
		...(run.tracers.length > 1 ? ["Tracer"] : []),
		...(run.timed ? [] : ["Victim"]), "Outcome", ...(run.timed ? ["Run time"] : []), ...run.detectors];

	rows_of_cells = run.cells.map((c) => cellRow(c, heads.length));
	fill("cells", el("h2", {id: "cells-title"}, "Cells"),
		el("p.muted", null, "In the order of the plan, or by a column. ",
			run.timed ? "Open a cell for its attempts." : ["Victims are shown here; detectors did not know them. Open a cell for what was ",
			"measured on each server, when the fault acted, and what each verdict rests on."]),
		el("div.choices", null, run.timed ? null : choice("Fault", "fault", names("fault")),
			choice("Workload", "workload", names("workload")),
			run.tracers.length > 1 ? choice("Tracer", "tracer", names("tracer")) : null,
			choice("Show", "show", [["all", "all"], ["wrong", "where a detector fell short"], ["unscored",
				"not confirmed"], ["retried", "tried more than once"]]),
			el("button.plain", {type: "button", onclick: () => openAll(true)}, "Open all shown"),
			el("button.plain", {type: "button", onclick: () => openAll(false)}, "Close all"),
			el("output", {id: "cells-count", "aria-live": "polite"})),
		el("div.scroll", {tabindex: "0", role: "group", "aria-label": "List of cells"},
			el("table.cells", null, el("caption.sr", null, "Cells of " + run.run +
				" and what each detector said"),
				el("thead", null, el("tr", null,
					heads.map((h) => el(h === "Run time" ? "th.num" : run.detectors.includes(h) &&
					!run.real.includes(h) ? "th.null" : "th",
					{scope: "col"}, h)))),
				el("tbody", null, rows_of_cells.map((r) => [r.row, r.panel])))));
	sortable(document.querySelector("#cells thead tr"), document.querySelector("#cells tbody"),
		() => rows_of_cells.map((r) => ({cells: r.row.cells, move: [r.row, r.panel]})));
	applyFilters();
}
