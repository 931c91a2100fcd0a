"use strict";
/* Arrows: of the selected slice (one hop or the whole chain), of slices above a duration, or all
 * in view. */

const CHAIN_MAX = 5000, SLOW_MAX = 400, EVERY_MAX = 2000, HEADS_MAX = 100;

function arrowsOut(i) {
	const out = [];

	for (let a = model.outFirst[i]; a < model.outFirst[i + 1]; a++)
		out.push(a);
	return out;
}

function arrowsInto(i) {
	return Array.from(model.intoOrder.subarray(model.intoFirst[i], model.intoFirst[i + 1]));
}

/* An answer leads to a slice that started before it. */
function isAnswer(a) {
	return model.start[model.arrowTo[a]] < model.start[model.arrowFrom[a]];
}

/* Follows arrows from 'i' to its effects, or back to its causes; ignores arrows of answers, which lead back to the
origin. */
function walkChain(i, arrows, step, end) {
	const seen = new Set([i]), todo = [i];

	while (todo.length && arrows.size < CHAIN_MAX) {
		for (const a of step(todo.shift())) {
			const next = end[a];

			arrows.add(a);
			if (!isAnswer(a) && !seen.has(next)) {
				seen.add(next);
				todo.push(next);
			}
		}
	}
}

/* Arrows that touch slice 'i', or the whole chain: all of its causes and all of its effects. Other effects of a common
 * cause (the further requests of one call) are not included. */
function chainOf(i, whole) {
	const arrows = new Set([...arrowsOut(i), ...arrowsInto(i)]);

	if (!whole)
		return arrows;
	walkChain(i, arrows, arrowsOut, model.arrowTo);
	walkChain(i, arrows, (at) => arrowsInto(at).filter((a) => !isAnswer(a)), model.arrowFrom);
	return arrows;
}

/* The 'most' longest slices in view in unfolded rows, of at least 'least' ns: by binary search. */
function slowestInView(most, least) {
	const heap = [], out = [];
	const push = (a, b) => {
		if (a >= b)
			return;
		const i = longestOf(a, b);

		if (weight(i) >= least && weight(i) >= 0)
			heap.push({a, b, i, weight: weight(i)});
	};

	for (const row of rows)
		for (const lane of row.head || row.counter ? [] : row.area ? lanesBelow(row.track) : ownLanes(row)) {
			const a = firstEndingAfter(lane, view.t0 - row.pane.offset);

			push(a, firstFrom(model.start, view.t1 - row.pane.offset, a, model.laneFrom[lane + 1]));
		}
	while (heap.length && out.length < most) {
		let best = 0;

		for (let k = 1; k < heap.length; k++)
			if (heap[k].weight > heap[best].weight)
				best = k;
		const {a, b, i} = heap[best];

		heap[best] = heap[heap.length - 1];
		heap.pop();
		out.push(i);
		push(a, i);
		push(i + 1, b);
	}
	return out;
}

function ownLanes(row) {
	return Array.from({length: row.lanes}, (_, k) => row.track.firstLane + k);
}

/* Arrows into the visible slices of unfolded tracks: all, or a sample if there are more than
 * EVERY_MAX. */
function everyArrow() {
	const ranges = [], out = [];
	let n = 0;

	for (const row of rowsInView())
		for (const lane of row.head || row.counter || row.area ? [] : ownLanes(row)) {
			const a = firstEndingAfter(lane, view.t0 - row.pane.offset), b = firstFrom(model.start, view.t1 - row.pane.offset, a, model.laneFrom[lane + 1]);

			ranges.push([model.intoFirst[a], model.intoFirst[b]]);
			n += model.intoFirst[b] - model.intoFirst[a];
		}
	const step = Math.max(1, Math.ceil(n / EVERY_MAX));

	for (const [from, to] of ranges)
		for (let k = from + (step - from % step) % step; k < to; k += step) {
			const a = model.intoOrder[k];

			if (isShown(model.arrowFrom[a]) && isShown(model.arrowTo[a]))
				out.push(a);
		}
	view.everyStep = step;
	return out;
}

function isShown(i) {
	return model.kindShown[model.kind[i]];
}

/* The arrows for drawArrows; recomputed when the selection, the choice or the view has changed. */
function arrowsToDraw() {
	const arrows = new Set();

	if (view.selected >= 0 && view.hops !== "0")
		for (const a of chainOf(view.selected, view.hops !== "1" && view.hops !== "every"))
			arrows.add(a);
	if (Number.isFinite(view.slower))
		for (const i of slowestInView(SLOW_MAX, view.slower))
			for (const a of chainOf(i, false))
				arrows.add(a);
	return arrows;
}

/* A cause leads from within its slice to the start of its effect; an effect that started before, like that of an answer,
is reached at the end of the slice that leads to it. */
function arrowEnds(a) {
	const from = model.arrowFrom[a], to = model.arrowTo[a], p = placeOf(from), q = placeOf(to);

	if (!p || !q)
		return null;
	const cut = (x, place) => Math.min(Math.max(x, place.x), place.end);
	const x = q.x >= p.x ? cut(q.x, p) : p.end, x2 = q.x >= p.x ? q.x : cut(p.end, q);
	const down = q.y > p.y;

	return {x, y: down ? p.y + p.h : p.y, x2, y2: down ? q.y : q.y + q.h, link: model.arrowLink[a]};
}

function drawArrow(c, {x, y, x2, y2, link}, headless) {
	const bend = Math.min(40, Math.max(8, Math.abs(y2 - y) / 3)), sign = y2 > y ? 1 : -1;

	c.setLineDash([[], [6, 3], [2, 3]][link]);
	c.beginPath();
	c.moveTo(x, y);
	c.bezierCurveTo(x, y + sign * bend, x2, y2 - sign * bend, x2, y2);
	c.stroke();
	c.setLineDash([]);
	if (headless)
		return;
	c.beginPath();
	c.moveTo(x2, y2);
	c.lineTo(x2 - 2.7 * c.lineWidth, y2 - sign * 4.7 * c.lineWidth);
	c.lineTo(x2 + 2.7 * c.lineWidth, y2 - sign * 4.7 * c.lineWidth);
	c.fill();
}

function drawEach(c, arrows, colour, headless) {
	c.strokeStyle = c.fillStyle = colour;
	for (const a of arrows) {
		const ends = arrowEnds(a);

		if (!ends || Math.max(ends.x, ends.x2) < -200 || Math.min(ends.x, ends.x2) > view.width + 200 ||
			Math.max(ends.y, ends.y2) < 0 || Math.min(ends.y, ends.y2) > view.height)
			continue;
		drawArrow(c, ends, headless);
	}
}

function drawArrows(c) {
	view.everyStep = 1;
	if (view.hops === "every") {
		const every = everyArrow();

		c.lineWidth = 1;
		c.globalAlpha = every.length > HEADS_MAX ? .4 : .7;
		drawEach(c, every, palette.muted, every.length > HEADS_MAX);
		c.globalAlpha = 1;
	}
	c.lineWidth = 1.5;
	drawEach(c, arrowsToDraw(), palette.select, false);
}
