"use strict";
/* Pointer, wheel, touch and keys. */

const pointers = new Map();
let drag = null;

function placeIn(event) {
	const box = byId("canvas").getBoundingClientRect();

	return {x: event.clientX - box.left, y: event.clientY - box.top};
}

function pointerDown(event) {
	const p = placeIn(event);

	if (event.button > 0)
		return;
	byId("canvas").setPointerCapture(event.pointerId);
	pointers.set(event.pointerId, p);
	drag = {x: p.x, y: p.y, t0: view.t0, t1: view.t1, moved: false, range: event.shiftKey, scroll: view.scroll,
		touch: event.pointerType === "touch"};
	if (pointers.size === 2)
		startPinch();
	hideTip();
}

function startPinch() {
	const [a, b] = [...pointers.values()];

	drag = {pinch: true, moved: true, at: [timeAt(a.x), timeAt(b.x)]};
}

function pointerMove(event) {
	const p = placeIn(event);

	if (!pointers.has(event.pointerId)) {
		hover(p);
		return;
	}
	pointers.set(event.pointerId, p);
	if (drag.pinch)
		pinch();
	else
		moveDrag(p);
}

function moveDrag(p) {
	if (Math.abs(p.x - drag.x) > 3 || Math.abs(p.y - drag.y) > 3)
		drag.moved = true;
	if (!drag.moved)
		return;
	if (drag.range) {
		drag.to = p.x;
		showRange();
		return;
	}
	const by = (drag.x - p.x) / view.width * (drag.t1 - drag.t0);

	if (!drag.touch)
		byId("rows").scrollTop = drag.scroll + drag.y - p.y;
	lookAt(drag.t0 + by, drag.t1 + by);
}

/* Both fingers stay on the times that they touched first. */
function pinch() {
	const [a, b] = [...pointers.values()], [ta, tb] = drag.at;

	if (!b || Math.abs(b.x - a.x) < 12)
		return;
	const perPixel = Math.abs((tb - ta) / (b.x - a.x)), middle = (ta + tb) / 2, x = (a.x + b.x) / 2;

	lookAt(middle - x * perPixel, middle + (view.width - x) * perPixel);
}

function pointerUp(event) {
	const was = drag;

	if (!pointers.delete(event.pointerId))
		return;
	if (pointers.size === 1 && was.pinch) {
		const [p] = pointers.values();

		drag = {x: p.x, y: p.y, t0: view.t0, t1: view.t1, moved: true, touch: true, scroll: view.scroll};
		return;
	}
	drag = null;
	if (was.range && was.moved) {
		byId("tip").hidden = true;
		lookAt(timeAt(Math.min(was.x, was.to)), timeAt(Math.max(was.x, was.to)));
	} else if (!was.moved && event.type === "pointerup") {
		const p = placeIn(event), what = hit(p.x, p.y);

		if (what.slice !== undefined)
			select(what.slice);
		else if (what.row && what.row.area)
			toggle(what.row.track, true);
		else
			select(undefined);
		if (was.touch)
			showTip(p.x, p.y, what);
	}
}

function showRange() {
	const [a, b] = [drag.x, drag.to].sort((x, y) => x - y), c = byId("canvas").getContext("2d");

	drawNow();
	c.fillStyle = palette.select;
	c.globalAlpha = .2;
	c.fillRect(a, 0, b - a, view.height);
	c.globalAlpha = 1;
	fill("tip", el("b", null, inTime(timeAt(b) - timeAt(a))));
	byId("tip").hidden = false;
	byId("tip").style.left = view.left + a + "px";
	byId("tip").style.top = byId("rows").offsetTop + "px";
}

function hover(p) {
	const what = hit(p.x, p.y), i = what.slice === undefined ? -1 : what.slice;

	if (i !== view.hovered) {
		view.hovered = i;
		redraw();
	}
	showTip(p.x, p.y, what);
}

/* The wheel zooms with Ctrl or Alt, pans with Shift or sideways, and otherwise scrolls the rows. */
function wheel(event) {
	const p = placeIn(event), unit = event.deltaMode === 1 ? 16 : 1;

	hideTip();
	if (event.ctrlKey || event.altKey || event.metaKey) {
		event.preventDefault();
		zoom(Math.exp(Math.max(-240, Math.min(240, event.deltaY * unit)) * .003), p.x);
	} else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
		event.preventDefault();
		pan((event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX) * unit / view.width);
	}
}

function overviewMove(event) {
	if (event.buttons !== 1)
		return;
	const box = byId("overview").getBoundingClientRect(), whole = view.whole, span = view.t1 - view.t0;
	const at = whole.from + (event.clientX - box.left) / box.width * (whole.to - whole.from);

	lookAt(at - span / 2, at + span / 2);
}

/* The previous or next slice in the lane of the selected one; without a selection, the longest in
 * view. */
function stepSlice(by) {
	if (view.selected < 0) {
		const [i] = slowestInView(1, 0);

		if (i !== undefined)
			select(i, true);
		return;
	}
	const lane = laneOf(view.selected);
	let i = view.selected + by;

	while (i >= model.laneFrom[lane] && i < model.laneFrom[lane + 1] && !model.kindShown[model.kind[i]])
		i += by;
	if (i >= model.laneFrom[lane] && i < model.laneFrom[lane + 1])
		select(i, true);
}

function follow(back) {
	if (view.selected < 0)
		return;
	const arrows = back ? arrowsInto(view.selected) : arrowsOut(view.selected);

	if (arrows.length)
		select(back ? model.arrowFrom[arrows[0]] : model.arrowTo[arrows[0]], true);
}

const KEYS = [
	["W or +", "zoom in", "w+=", () => zoom(.6)],
	["S or −", "zoom out", "s-", () => zoom(1 / .6)],
	["A or ←", "earlier", "a", () => pan(-.2), "ArrowLeft"],
	["D or →", "later", "d", () => pan(.2), "ArrowRight"],
	["↑ ↓", "scroll the tracks", "", () => scrollRows(-60), "ArrowUp"],
	["", "", "", () => scrollRows(60), "ArrowDown"],
	["0", "the whole run", "0", () => lookAtAll()],
	["F", "zoom to the selected slice", "f", () => view.selected >= 0 && lookAtSlice(view.selected)],
	[", and .", "slice before and after in its lane", ",", () => stepSlice(-1)],
	["", "", ".", () => stepSlice(1)],
	["[ and ]", "along the first arrow, back and on", "[", () => follow(true)],
	["", "", "]", () => follow(false)],
	["C", "compare two servers or runs", "c", () => byId("compare").click()],
	["/", "search; Enter and Shift-Enter: next and previous", "/", () => byId("search").focus()],
	["Esc", "nothing selected", "", () => select(undefined), "Escape"],
	["?", "these keys", "?", () => toggleHelp()],
];

function scrollRows(by) {
	byId("rows").scrollTop += by;
}

function keyDown(event) {
	if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName))
		return;
	const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
	const found = KEYS.find((k) => k[4] === key || key.length === 1 && k[2].includes(key));

	if (!found || /^Arrow/.test(key) && event.target.closest("#details"))
		return;
	event.preventDefault();
	hideTip();
	found[3]();
}

function toggleHelp() {
	const box = byId("help");

	box.hidden = !box.hidden;
	byId("help-button").setAttribute("aria-expanded", String(!box.hidden));
	fill("help", list([...KEYS.filter((k) => k[0]).map((k) => [k[0], k[1]]), ["drag", "move; with Shift: zoom to what is marked"],
		["Ctrl + wheel", "zoom; Shift + wheel: move"], ["double click", "zoom to a slice"], ["fingers", "one moves, two zoom"],
		["arrows", "solid: exact; dashed: by thread; dotted: by content"]]));
	resized();
}

function startInput() {
	const canvas = byId("canvas");

	canvas.addEventListener("pointerdown", pointerDown);
	canvas.addEventListener("pointermove", pointerMove);
	canvas.addEventListener("pointerup", pointerUp);
	canvas.addEventListener("pointercancel", pointerUp);
	canvas.addEventListener("pointerleave", hideTip);
	canvas.addEventListener("wheel", wheel, {passive: false});
	canvas.addEventListener("dblclick", (event) => {
		const p = placeIn(event), what = hit(p.x, p.y);

		if (what.slice !== undefined)
			lookAtSlice(what.slice);
	});
	byId("overview").addEventListener("pointerdown", (event) => {
		byId("overview").setPointerCapture(event.pointerId);
		overviewMove(event);
	});
	byId("overview").addEventListener("pointermove", overviewMove);
	byId("zoom-in").addEventListener("click", () => zoom(.6));
	byId("zoom-out").addEventListener("click", () => zoom(1 / .6));
	byId("zoom-all").addEventListener("click", lookAtAll);
	byId("help-button").addEventListener("click", toggleHelp);
	byId("hops").addEventListener("change", (event) => {
		view.hops = event.target.value;
		redraw();
	});
	byId("slower").addEventListener("input", (event) => {
		const ms = parseFloat(event.target.value.replace(",", "."));

		view.slower = ms >= 0 ? ms * 1e6 : Infinity;
		redraw();
	});
	document.addEventListener("keydown", keyDown);
	byId("tabs").addEventListener("keydown", tabKey);
}
