"use strict";
/* The visible part of the time, and the sizes of the canvases. */

const LEAST_SPAN = 20;
const view = {t0: 0, t1: 1, whole: {from: 0, to: 1}, left: 220, width: 800, height: 400, scroll: 0, selected: -1,
	hovered: -1, found: null, slower: Infinity, hops: "all"};

function byId(id) {
	return document.getElementById(id);
}

function xOf(t) {
	return (t - view.t0) / (view.t1 - view.t0) * view.width;
}

function timeAt(x) {
	return view.t0 + x / view.width * (view.t1 - view.t0);
}

/* The time range of all panes, with a margin. */
function findWhole() {
	let from = Infinity, to = -Infinity;

	for (const p of panes) {
		const s = spanOf(p.root);

		from = Math.min(from, s.from + p.offset);
		to = Math.max(to, s.to + p.offset);
	}
	const margin = Math.max(LEAST_SPAN, (to - from) * .01);

	view.whole = {from: from - margin, to: to + margin};
}

/* Shows [t0, t1), moved and cut to the range of the data. */
function lookAt(t0, t1) {
	const whole = view.whole, room = whole.to - whole.from;
	let span = Math.min(Math.max(t1 - t0, LEAST_SPAN, room * 1e-15), room), middle = (t0 + t1) / 2;

	if (!Number.isFinite(span) || !Number.isFinite(middle)) {
		span = room;
		middle = whole.from + room / 2;
	}
	middle = Math.min(Math.max(middle, whole.from + span / 2), whole.to - span / 2);
	view.t0 = middle - span / 2;
	view.t1 = middle + span / 2;
	viewChanged();
}

function zoom(factor, x) {
	const at = timeAt(x === undefined ? view.width / 2 : x);

	lookAt(at - (at - view.t0) * factor, at + (view.t1 - at) * factor);
}

function pan(share) {
	const by = (view.t1 - view.t0) * share;

	lookAt(view.t0 + by, view.t1 + by);
}

function lookAtAll() {
	lookAt(view.whole.from, view.whole.to);
}

/* Shows a slice with some room around it; with 'near', zooms only as far as needed. */
function lookAtSlice(i, near) {
	const offset = paneOf(i).offset, start = model.start[i] + offset, d = model.duration[i], span = view.t1 - view.t0;

	if (!near || d > span || d < span / 400) {
		const room = Math.max(d, LEAST_SPAN) * (near ? 4 : .25);

		lookAt(start - room, start + d + room);
	} else if (start < view.t0 || start + d > view.t1) {
		lookAt(start + d / 2 - span / 2, start + d / 2 + span / 2);
	}
}

/* The pane that shows a slice: the first that contains its track. */
function paneOf(i) {
	const track = trackOf(i);

	return panes.find((p) => within(track, p.root)) || panes[0];
}

let viewTimer = 0;

function viewChanged() {
	redraw();
	clearTimeout(viewTimer);
	viewTimer = setTimeout(viewSettled, 150);
}

/* Makes a canvas of this size in CSS pixels; its context uses CSS pixels. */
function sized(canvas, width, height) {
	const ratio = window.devicePixelRatio || 1, w = Math.round(width * ratio), h = Math.round(height * ratio);

	if (canvas.width !== w || canvas.height !== h) {
		canvas.width = w;
		canvas.height = h;
		canvas.style.width = width + "px";
		canvas.style.height = height + "px";
	}
	const c = canvas.getContext("2d", {alpha: false});

	c.setTransform(ratio, 0, 0, ratio, 0, 0);
	return c;
}

function measure() {
	const stage = byId("rows");

	view.left = window.innerWidth < 700 ? 108 : 230;
	document.documentElement.style.setProperty("--labels", view.left + "px");
	view.width = Math.max(50, stage.clientWidth - view.left);
	view.height = stage.clientHeight;
}
