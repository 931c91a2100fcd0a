"use strict";
/* Names of tracks at the left, as a tree; only visible ones are in the document. */

const labelPool = [];
let focusedRow = 0;

function labelParts(row) {
	if (row.head)
		return [el("span.pane", null, paneName(row.pane))];
	if (row.counter)
		return [el("span.name", null, row.counter.name), el("span.unit", null, counterRange(row.counter))];
	const t = row.track, folds = t.children.length > 0 || t.lanes > 1;

	return [el("span.twisty", {"aria-hidden": "true"}, folds ? t.open ? "▾" : "▸" : ""), el("span.name", null, t.name || "(no name)"),
		el("span.kind", null, t.kind === 1 || t.kind === 3 ? "" : KINDS[t.kind])];
}

function counterRange(c) {
	return digits(c.scale.most, 3) + (c.unit ? " " + c.unit : "");
}

function paneName(pane) {
	return pane.root ? pathOf(pane.root) : "";
}

function fillLabel(e, row) {
	const folds = row.track && !row.counter && (row.track.children.length > 0 || row.track.lanes > 1);

	e.replaceChildren(...labelParts(row));
	e.className = "label" + (row.head ? " head" : "") + (row.counter ? " counter" : "") + (row.track && row.track.kind <= 1 && !row.counter ? " strong" : "");
	e.style.top = row.top + "px";
	e.style.height = row.height + "px";
	e.style.paddingLeft = (window.innerWidth < 700 ? 3 + row.depth * 6 : 8 + row.depth * 13) + "px";
	e.title = row.track && !row.head ? (row.counter ? row.counter.name + " of " : "") + pathOf(row.track) : "";
	e.setAttribute("aria-level", row.depth + 1);
	if (folds)
		e.setAttribute("aria-expanded", String(row.track.open));
	else
		e.removeAttribute("aria-expanded");
	e.row = row;
}

function drawLabels() {
	const shown = rowsInView();

	while (labelPool.length < shown.length) {
		const e = el("div", {role: "treeitem", tabindex: "-1"});

		labelPool.push(e);
		byId("labels").append(e);
	}
	labelPool.forEach((e, k) => {
		e.hidden = k >= shown.length;
		if (k < shown.length && (e.row !== shown[k] || e.drawnWidth !== view.left)) {
			fillLabel(e, shown[k]);
			e.drawnWidth = view.left;
		}
		e.tabIndex = k < shown.length && rows[focusedRow] === shown[k] ? 0 : -1;
	});
	if (!labelPool.some((e) => e.tabIndex === 0) && labelPool.length)
		labelPool[0].tabIndex = 0;
}

function toggle(track, open) {
	track.open = open === undefined ? !track.open : open;
	layOut();
	resized();
}

/* Scrolls a row into view and focuses its label. */
function focusRow(i) {
	const row = rows[i], box = byId("rows");

	if (!row)
		return;
	focusedRow = i;
	if (row.top < view.scroll)
		box.scrollTop = row.top;
	else if (row.top + row.height > view.scroll + view.height)
		box.scrollTop = row.top + row.height - view.height;
	view.scroll = box.scrollTop;
	drawNow();
	labelPool.find((e) => !e.hidden && e.row === row)?.focus();
}

function labelKey(event) {
	const row = event.target.row, at = rows.indexOf(row), track = row && !row.counter && row.track;
	const keys = {
		ArrowDown: () => focusRow(at + 1),
		ArrowUp: () => focusRow(at - 1),
		Home: () => focusRow(0),
		End: () => focusRow(rows.length - 1),
		ArrowRight: () => track && !track.open ? toggleAndFocus(row, true) : focusRow(at + 1),
		ArrowLeft: () => track && track.open && (track.children.length || track.lanes > 1) ? toggleAndFocus(row, false) : focusParent(row),
		Enter: () => track && toggleAndFocus(row, !track.open),
		" ": () => track && toggleAndFocus(row, !track.open),
	};

	if (at < 0 || !Object.hasOwn(keys, event.key) || event.ctrlKey || event.metaKey || event.altKey)
		return;
	event.preventDefault();
	event.stopPropagation();
	keys[event.key]();
}

function toggleAndFocus(row, open) {
	const {track, pane} = row;

	toggle(track, open);
	focusRow(rowOfTrack[pane.id].get(track));
}

function focusParent(row) {
	const parent = row.track && model.tracks[row.counter ? row.track.id : row.track.parent];

	if (parent)
		focusRow(rowOfTrack[row.pane.id].get(parent));
}

function startLabels() {
	byId("labels").addEventListener("click", (event) => {
		const row = event.target.closest(".label")?.row;

		if (row && row.track && !row.counter && (row.track.children.length || row.track.lanes > 1))
			toggle(row.track);
	});
	byId("labels").addEventListener("keydown", labelKey);
}
