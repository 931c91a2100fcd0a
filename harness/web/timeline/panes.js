"use strict";
/* Comparison: two parts of the tree one above the other, the second with a separate offset in
 * time. */

function comparable() {
	return model.tracks.filter((t) => t.kind <= 1 || t.parent < 0);
}

function chooser(name, pane) {
	const whole = pane ? pane.root : null;

	return el("label", null, name + " ", el("select", {id: "pane-" + name.toLowerCase()},
		el("option", {value: "-1"}, "the whole run"),
		comparable().map((t) => el("option", {value: String(t.id), selected: t === whole}, pathOf(t)))));
}

function drawPanes() {
	const box = byId("panes");

	if (box.hidden)
		return;
	const offset = el("input", {id: "offset", inputmode: "decimal", size: "14", value: offsetText()});

	fill("panes", chooser("Top", panes[0]), chooser("Bottom", panes[1]),
		el("label", null, "Bottom is shifted by ", offset, " s"),
		el("button", {type: "button", id: "align-start", onclick: () => align(startOf)}, "Align starts"),
		el("button", {type: "button", id: "align-fault", onclick: () => align(faultOf)}, "Align faults"),
		el("button", {type: "button", id: "align-none", onclick: () => setOffsets(0, 0)}, "By the clock"),
		el("button", {type: "button", id: "one-pane", onclick: onePane}, "End comparing"));
	for (const id of ["pane-top", "pane-bottom"])
		byId(id).addEventListener("change", choosePanes);
	offset.addEventListener("change", () => {
		const s = Number(offset.value);

		if (Number.isFinite(s))
			setOffsets(panes[0].offset, panes[0].offset + s * 1e9);
	});
	box.addEventListener("keydown", (event) => event.stopPropagation());
}

function offsetText() {
	return panes[1] ? String((panes[1].offset - panes[0].offset) / 1e9) : "0";
}

function setOffsets(a, b) {
	panes[0].offset = a;
	if (panes[1])
		panes[1].offset = b;
	offsetsChanged();
}

function panesChanged() {
	foldAtFirst();
	offsetsChanged();
}

function offsetsChanged() {
	layOut();
	findWhole();
	view.overview = null;
	drawPanes();
	resized();
	lookAtAll();
}

function startOf(pane) {
	return spanOf(pane.root).from;
}

function faultOf(pane) {
	return marksOf(pane).find((m) => m.kind === 0)?.from ?? startOf(pane);
}

function align(momentOf) {
	if (panes[1])
		setOffsets(0, momentOf(panes[0]) - momentOf(panes[1]));
}

function choosePanes() {
	const root = (id) => model.tracks[Number(byId(id).value)] || null, focused = document.activeElement?.id;

	panes.length = 0;
	panes.push({id: 0, root: root("pane-top"), offset: 0}, {id: 1, root: root("pane-bottom"), offset: 0});
	panesChanged();
	if (focused)
		byId(focused)?.focus();
}

function onePane() {
	panes.length = 0;
	panes.push({id: 0, root: null, offset: 0});
	byId("panes").hidden = true;
	byId("compare").setAttribute("aria-expanded", "false");
	panesChanged();
	byId("compare").focus();
}

/* The first two servers or runs, unless others are chosen. */
function compare() {
	if (panes.length < 2) {
		const all = comparable(), nodes = all.filter((t) => t.kind === 1), two = nodes.length > 1 ? nodes : all;
		const selected = view.selected >= 0 ? nodes.find((t) => within(trackOf(view.selected), t)) : null;

		panes.length = 0;
		panes.push({id: 0, root: selected || two[0] || null, offset: 0}, {id: 1, root: two.find((t) => t !== (selected || two[0])) || null, offset: 0});
	}
	byId("panes").hidden = false;
	byId("compare").setAttribute("aria-expanded", "true");
	panesChanged();
}

function startPanes() {
	byId("compare").addEventListener("click", () => byId("panes").hidden ? compare() : onePane());
	if (panes.length > 1) {
		byId("panes").hidden = false;
		byId("compare").setAttribute("aria-expanded", "true");
		drawPanes();
	}
}
