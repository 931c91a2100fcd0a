"use strict";
/* The tables below the drawing: the selected slice, the slowest in view (a text form of the
 * drawing), and the run. */

const TABS = {selection: "Selection", slowest: "Slowest in view", marks: "Marks", run: "About"};
const SLOWEST = 25;
let tab = "slowest";

function slowestPanel() {
	const found = slowestInView(SLOWEST, 0);

	if (!found.length)
		return el("p.muted", null, model.n ? "No slice is in view." : "This run has no slices.");
	return grid("The " + plural(found.length, "slowest slice") + " in unfolded tracks in view, from " + atTime(view.t0, 1e5) + " to " + atTime(view.t1, 1e5),
		["name", "on", "category", "start", "duration", "note"], found.map((i) => [
			el("button.link", {type: "button", onclick: () => select(i, true)}, nameOf(i) || "no name"), pathOf(trackOf(i)), categoryOf(i).name,
			atTime(model.start[i], 1e3), inTime(model.duration[i]), flagWords(i).join(", ")]), {numeric: [3, 4]});
}

function marksPanel() {
	if (!model.marks.length)
		return el("p.muted", null, "No fault, verdict, trigger or phase is marked.");
	return grid("Faults, verdicts, triggers and phases", ["what", "text", "concerns", "from", "to"], model.marks.map((m) => [
		MARKS[m.kind], el("button.link", {type: "button", onclick: () => lookAtMark(m)}, m.text || "no text"),
		m.track >= 0 ? pathOf(model.tracks[m.track]) : "the whole run", atTime(m.from, 1e3), m.to > m.from ? atTime(m.to, 1e3) : ""]), {numeric: [3, 4]});
}

function lookAtMark(m) {
	const pane = panes.find((p) => m.track < 0 || within(model.tracks[m.track], p.root)) || panes[0];
	const room = Math.max((m.to - m.from) * .2, (view.whole.to - view.whole.from) * .02);

	lookAt(m.from + pane.offset - room, m.to + pane.offset + room);
}

function runTable() {
	if (model.table.length < 2)
		return null;
	const [[caption, ...heads], ...rows] = model.table;

	return grid(caption, ["", ...heads], rows, {numeric: heads.map((_, i) => i + 1)});
}

function runPanel() {
	const shown = model.n - index.sums;

	return [runTable(), list([["run", word(index.run)], ["from", byClock(0)], ["length", inTime(index.span_ns)],
		["slices", (shown + index.summed).toLocaleString("en")], ["arrows", index.all_arrows.toLocaleString("en")], ...model.notes]),
	index.summed ? el("p", null, "This file has " + shown.toLocaleString("en") + " individual slices: all " +
		(index.by_request ? "of requests that take " : "of ") + inTime(index.least_ns) + " or more. The other " + index.summed.toLocaleString("en") +
		" are shown as " + index.sums.toLocaleString("en") + " sums of consecutive slices of one category; their arrows are omitted. " +
		"A shorter part of the run shows all.") : null,
	index.arrows < index.all_arrows ? el("p.muted", null, index.arrows.toLocaleString("en") + " of the arrows are in this file.") : null,
	index.counters_cut ? el("p.muted", null, plural(index.counters_cut, "counter") + " had too many samples: for each of equal windows of time, only the first,  " +
		"the least, the greatest and the last are kept.") : null,
	index.mended ? el("p", null, plural(index.mended, "slice") + " had a negative duration or an end beyond 64 bits: shown as 0, or cut.") : null];
}

const PANELS = {selection: selectionPanel, slowest: slowestPanel, marks: marksPanel, run: runPanel};

function drawPanel() {
	fill("panel", PANELS[tab]());
	const swatch = byId("swatch");

	if (swatch)
		swatch.style.background = colourOfCategory(categoryOf(view.selected));
}

function drawTabs() {
	fill("tabs", Object.entries(TABS).map(([id, text]) => el("button", {type: "button", role: "tab", id: "tab-" + id, "aria-controls": "panel",
		"aria-selected": String(id === tab), tabindex: id === tab ? "0" : "-1", onclick: () => showTab(id)}, text)));
}

function showTab(id) {
	const had = byId("tabs").contains(document.activeElement);

	tab = id;
	drawTabs();
	drawPanel();
	if (had)
		byId("tab-" + id).focus();
}

function tabKey(event) {
	const ids = Object.keys(TABS), by = {ArrowRight: 1, ArrowLeft: -1}[event.key];

	if (!by)
		return;
	event.preventDefault();
	event.stopPropagation();
	showTab(ids[(ids.indexOf(tab) + by + ids.length) % ids.length]);
}

/* Runs when the view has been still for a moment. */
function viewSettled() {
	if (tab === "slowest" && !byId("panel").contains(document.activeElement))
		drawPanel();
	byId("status").textContent = "From " + atTime(view.t0, 1e3) + " to " + atTime(view.t1, 1e3) + ": " + inTime(view.t1 - view.t0) +
		(panes.length === 1 ? "; begins " + byClock(Math.max(0, view.t0)) : "") +
		(view.everyStep > 1 ? "; one of " + view.everyStep + " arrows is drawn: zoom in for all" : "");
	writeLink();
}
