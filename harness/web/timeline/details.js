"use strict";
/* Details of a slice: next to the pointer, and below the drawing for the selected one. */

/* The item at a position of the canvas: {row, slice} or {row}. */
function hit(x, y) {
	const row = rows.find((r) => y + view.scroll >= r.top && y + view.scroll < r.top + r.height);

	if (!row || !row.track || row.counter || !row.lanes)
		return {row};
	const k = row.lanes > 1 ? Math.floor((y + view.scroll - row.top - 2) / ROW.lane) : 0;

	if (k < 0 || k >= row.lanes)
		return {row};
	return {row, slice: sliceNear(row.track.firstLane + k, x, row.pane.offset)};
}

/* The slice of a lane at pixel x: the exact one, otherwise the longest that touches the pixel or
 * a neighbour. */
function sliceNear(lane, x, offset) {
	const at = timeAt(x) - offset, ns = (view.t1 - view.t0) / view.width;
	const first = firstEndingAfter(lane, at);

	if (first < model.laneFrom[lane + 1] && model.start[first] <= at && model.duration[first] >= 2 * ns)
		return model.kindShown[model.kind[first]] ? first : undefined;
	const a = firstEndingAfter(lane, at - 2 * ns), b = firstFrom(model.start, at + 2 * ns, a, model.laneFrom[lane + 1]);
	const i = a < b ? longestOf(a, b) : -1;

	return i >= 0 && weight(i) >= 0 ? i : undefined;
}

function linkLines(i) {
	return [...arrowsInto(i).map((a) => ["from", model.arrowFrom[a], a]), ...arrowsOut(i).map((a) => ["to", model.arrowTo[a], a])];
}

function linkText([way, other, a]) {
	return way + " " + nameOf(other) + " on " + pathOf(trackOf(other)) + " (" + LINKS[model.arrowLink[a]] + ")";
}

function showTip(x, y, what) {
	const tip = byId("tip"), stage = byId("stage").getBoundingClientRect();
	let body = null;

	if (what.slice !== undefined) {
		const links = linkLines(what.slice);

		body = [el("b", null, nameOf(what.slice) || "no name"), list(factsOf(what.slice)),
			links.slice(0, 6).map((l) => el("div.linked", null, linkText(l))),
			links.length > 6 ? el("div.linked", null, "and " + plural(links.length - 6, "more link")) : null];
	} else if (what.row && what.row.counter) {
		const c = what.row.counter, v = counterAt(c, timeAt(x) - what.row.pane.offset);

		body = [el("b", null, c.name), list([["value", Number.isNaN(v) ? "not known" : digits(v, 5) + " " + c.unit],
			["at", atTime(timeAt(x) - what.row.pane.offset, (view.t1 - view.t0) / view.width)],
			["on", c.track >= 0 ? pathOf(model.tracks[c.track]) : "the whole run"]])];
	} else if (what.row && what.row.area && view.areas.areas.has(what.row)) {
		const area = view.areas.areas.get(what.row);

		body = [el("b", null, what.row.track.name), list([["concurrent slices", digits(area.values[Math.floor(x / area.step)], 4)],
			["scale to", digits(view.areas.most[what.row.track.kind], 4)], ["folded", "open it by its name at the left"]])];
	} else if (what.row && what.row.head) {
		const near = marksOf(what.row.pane).filter((m) => xOf(m.from + what.row.pane.offset) - 3 <= x &&
			Math.max(xOf(m.from + what.row.pane.offset) + 70, xOf(m.to + what.row.pane.offset)) >= x);

		body = near.length ? near.map((m) => [el("b", null, MARKS[m.kind] + ": " + m.text), list([["from", atTime(m.from, 1e3)],
			["to", m.to > m.from ? atTime(m.to, 1e3) : null]])]) : null;
	}
	tip.hidden = !body;
	if (!body)
		return;
	fill("tip", body);
	const left = x + view.left + 16, top = y + byId("rows").offsetTop + 14;

	tip.style.left = Math.max(4, Math.min(left, stage.width - tip.offsetWidth - 8)) + "px";
	tip.style.top = (top + tip.offsetHeight > stage.height ? Math.max(4, top - tip.offsetHeight - 28) : top) + "px";
}

function hideTip() {
	byId("tip").hidden = true;
	if (view.hovered >= 0) {
		view.hovered = -1;
		redraw();
	}
}

function select(i, look) {
	view.selected = i === undefined ? -1 : i;
	if (view.selected >= 0 && look) {
		unfoldTo(trackOf(i));
		layOut();
		resized();
		lookAtSlice(i, true);
		scrollToSlice(i);
	}
	showTab("selection");
	redraw();
	writeLink();
}

function scrollToSlice(i) {
	const p = placeOf(i);

	if (p && (p.y < 10 || p.y + p.h > view.height - 10))
		byId("rows").scrollTop = view.scroll + p.y - view.height / 2;
}

const REQUEST_MAX = 100;

/* All slices that arrows join with 'i', in order of time: where the time of the request went. */
function requestTable(i) {
	const slices = new Set([i]);

	for (const a of chainOf(i, true))
		slices.add(model.arrowFrom[a]).add(model.arrowTo[a]);
	if (slices.size < 3)
		return null;
	const inOrder = [...slices].sort((a, b) => model.start[a] - model.start[b] || model.duration[b] - model.duration[a]);
	const first = model.start[inOrder[0]];

	return grid("Joined by arrows: " + plural(slices.size, "slice") + (slices.size > REQUEST_MAX ? ", the first " + REQUEST_MAX : ""),
		["after", "name", "on", "category", "duration", "note"], inOrder.slice(0, REQUEST_MAX).map((s) => [
			inTime(model.start[s] - first), s === i ? el("b", null, nameOf(s) || "no name")
				: el("button.link", {type: "button", onclick: () => select(s, true)}, nameOf(s) || "no name"),
			pathOf(trackOf(s)), categoryOf(s).name, inTime(model.duration[s]), flagWords(s).join(", ")]), {numeric: [0, 4]});
}

function linkWords(into, answer) {
	return into ? answer ? "← answered by" : "← caused by" : answer ? "→ answers" : "→ causes";
}

function selectionPanel() {
	const i = view.selected;

	if (i < 0)
		return el("p.muted", null, "No slice is selected. Click on one, or choose one in “Slowest in view”.");
	const links = linkLines(i);

	return [el("h2", null, el("span.swatch", {id: "swatch"}), nameOf(i) || "no name",
		el("button", {type: "button", onclick: () => lookAtSlice(i)}, "Zoom to it (F)")),
	list(factsOf(i)),
	links.length ? grid("Linked slices", ["", "name", "on", "start", "duration", "link made"], links.map(([way, other, a]) =>
		[linkWords(way === "from", isAnswer(a)), el("button.link", {type: "button", onclick: () => select(other, true)}, nameOf(other) || "no name"),
			pathOf(trackOf(other)), atTime(model.start[other], 1e3), inTime(model.duration[other]), LINKS[model.arrowLink[a]]]), {numeric: [3, 4]})
		: el("p.muted", null, isSum(i) ? "Short slices that are shown as a sum have no arrows here." : "It is not linked to other slices."),
	requestTable(i)];
}
