"use strict";
/* The filter bar. A text field takes effect when it loses the focus or Enter is pressed. */

function field(label, name, attributes) {
	const input = el("input", {type: "text", name, spellcheck: "false", autocomplete: "off", ...attributes, onchange: () => choose({[name]: input.value.trim()})});

	return el("label", null, label, input);
}

function drawFilters() {
	const form = byId("filters"), nodes = app.state.nodes;
	const failed = el("input", {type: "checkbox", name: "failed", onchange: () => choose({failed: failed.checked ? "1" : ""})});
	const unfold = el("button.unfold", {type: "button", "aria-expanded": "false", onclick: () => {
		unfold.setAttribute("aria-expanded", String(form.classList.toggle("open")));
	}}, "Filters");
	const node = el("select", {name: "node", onchange: () => choose({node: node.value})}, el("option", {value: ""}, "all"),
		nodes.map((n) => el("option", {value: n}, n)));

	form.addEventListener("submit", (e) => {
		e.preventDefault();
		if (document.activeElement instanceof HTMLInputElement)
			document.activeElement.dispatchEvent(new Event("change"));
	});
	const last = el("select", {name: "last", onchange: () => choose({from: "", to: "", last: last.value})},
		LASTS.map(([value, text]) => el("option", {value}, text)));

	form.append(el("span.range", {id: "range", title: "Seconds since the start"}), el("label", {id: "last", hidden: true}, "last", last),
		el("button", {type: "button", id: "reset", onclick: () => choose({from: "", to: ""})}), unfold,
		el("span.more", null, nodes.length > 1 ? el("label", null, "node", node) : null,
			field("call", "call", {placeholder: "or class", list: "classes"}), el("datalist", {id: "classes"}, CLASSES.map((c) => el("option", {value: c}))),
			field("thread", "thread", {placeholder: "name"}), field("path", "path", {placeholder: "part of the path"}),
			field("process", "id", {class: "short", placeholder: "number", inputmode: "numeric", pattern: "[0-9]*"}),
			el("label", null, failed, "errors only"),
			el("button", {type: "button", id: "clear", onclick: () => choose({node: "", call: "", thread: "", path: "", id: "", failed: ""})}, "Clear")));
}

function showFilters() {
	const form = byId("filters"), c = app.chosen, [from, to] = shown();

	for (const input of form.elements)
		if (input === document.activeElement && input.type === "text")
			continue; /* the user is typing */
		else if (input.type === "checkbox")
			input.checked = Boolean(c.failed);
		else if (input.name)
			input.value = c[input.name] || "";
	fill("range", moment(from, (to - from) / 1000), " – ", moment(to, (to - from) / 1000));
	/* A growing session is followed until a period is selected. */
	byId("reset").textContent = app.state.goes_on ? "Follow again" : "All of it";
	byId("reset").disabled = !(c.from && c.to);
	byId("reset").hidden = app.state.goes_on && !(c.from && c.to);
	byId("last").hidden = !app.state.goes_on || Boolean(c.from && c.to);
	form.elements.last.value = c.last || String(LAST_S);
	byId("clear").disabled = !["node", "call", "thread", "path", "id", "failed"].some((k) => c[k]);
}

/* Faults and verdicts: a line per cell of the run, the latest first; above them the current
 * activity of a run next to it. */
const CELLS_SHOWN = 2;
let earlierShown = false;

function showMarks() {
	const of = new Map(), {beside} = app.state;

	for (const m of marksShown())
		of.set(m.of, [...of.get(m.of) || [], m]);
	const cells = [...of].sort((a, b) => startOf(b[1]) - startOf(a[1])), more = cells.length - CELLS_SHOWN, had = document.activeElement && document.activeElement.id === "earlier";
	const earlier = el("button.link", {type: "button", id: "earlier", "aria-expanded": String(earlierShown), onclick: () => {
		earlierShown = !earlierShown;
		showMarks();
	}}, earlierShown ? "Only the latest cells" : plural(more, "earlier cell"));

	fill("marks", beside ? el("div.cell", null, el("span.mark.run", null, besideText(beside))) : null,
		cells.slice(0, earlierShown ? cells.length : CELLS_SHOWN).map(([title, marks]) => el("div.cell", null, cellMarks(title, marks))),
		more > 0 ? el("div.cell", null, earlier) : null);
	if (had && more > 0)
		earlier.focus({preventScroll: true});
}

function startOf(marks) {
	return Math.min(...marks.map((m) => m.from));
}

function besideText(b) {
	return "run " + b.name + ": " + (b.running ? "" : "ended, ") + b.done + " of " + plural(b.cells, "cell") + " done" +
		(b.now ? "; now " + b.now + (b.phase ? ", " + b.phase : "") : "");
}

function cellMarks(title, marks) {
	const faults = marks.filter((m) => m.kind === "fault"), said = marks.filter((m) => m.kind !== "fault");
	const name = app.state.beside ? title : title.replace(/^cell [0-9.]+: /, "");

	return [faults.length ? faults.map((m) => el("span.mark.fault", null, "fault: " + name + ", " + actsText(m))) : el("span.mark.run", null, name),
		said.map((m) => el(m.right === false ? "span.mark.wrong" : "span.mark", null, "verdict: " + m.text + sinceText(m, faults[0]) + rightText(m)))];
}

/* "118.0–138.0 s": when the fault was verified as active. */
function actsText(m) {
	const lasts = m.to === null ? m.from.toFixed(1) + " s on, for " + Math.max(0, app.state.extent.to / 1e9 - m.from).toFixed(0) + " s by now" : m.from.toFixed(1) + "–" + m.to.toFixed(1) + " s";

	return lasts + (m.asked !== null && m.asked.toFixed(1) !== m.from.toFixed(1) ? " (asked for at " + m.asked.toFixed(1) + " s)" : "");
}

/* When the detector first accuses the server: after the onset, or on the axis. */
function sinceText(m, fault) {
	if (m.server === null)
		return "";
	return fault && m.from >= fault.from ? " after " + (m.from - fault.from).toFixed(1) + " s" : " at " + m.from.toFixed(1) + " s";
}

function rightText(m) {
	return m.right === null ? "" : m.right ? ", right" : ", wrong";
}

function attemptText(a) {
	return "cell " + a.cell + (a.number > 1 ? "." + a.number : "") + ": " + a.text + (a.goes_on ? " (in progress)" : a.outcome === "confirmed" ? "" : " (" + a.outcome + ")");
}

function showAttempts() {
	const select = byId("attempts"), all = app.state.attempts;

	select.hidden = !all.length;
	select.replaceChildren(...all.map((a) => el("option", {value: a.attempt}, attemptText(a))));
	select.value = String(attempt());
	linkTimeline();
}

/* A link to the timeline of this cell, for the selected period. */
function linkTimeline() {
	const link = byId("timeline"), q = new URLSearchParams({token, attempt: attempt()});

	for (const key of ["from", "to"])
		if (app.chosen[key])
			q.set(key, app.chosen[key]);
	link.hidden = !app.state.attempts.length;
	link.href = "timeline?" + q;
}
