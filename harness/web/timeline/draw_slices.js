"use strict";
/* Lanes and areas. Slices narrower than a pixel are drawn together: a column has the colour of the longest slice, and its
 * strength is the share of its time with slices. So each lane costs as many steps as it has pixels. */

const STRENGTHS = 8, LABEL_LEAST = 26, LETTER = 6.1;

/* Merges adjacent rectangles of one colour. */
class Strip {
	constructor(c, y, h) {
		Object.assign(this, {c, y, h, x: 0, end: -1, colour: ""});
	}

	add(x, end, colour) {
		if (colour === this.colour && x <= this.end + .01) {
			this.end = Math.max(end, this.end);
			return;
		}
		this.flush();
		this.x = x;
		this.end = end;
		this.colour = colour;
	}

	flush() {
		if (this.end > this.x) {
			this.c.fillStyle = this.colour;
			this.c.fillRect(this.x, this.y, this.end - this.x, this.h);
		}
		this.end = -1;
		this.colour = "";
	}
}

/* First slice of [i, b) that starts at or after 't', which is near. */
function gallop(i, b, t) {
	let step = 1;

	while (i + step < b && model.start[i + step] < t)
		step *= 2;
	return firstFrom(model.start, t, i + (step >> 1), Math.min(b, i + step + 1));
}

function colourOf(i, strength) {
	return palette.categories[model.kindCategory[model.kind[i]] % palette.categories.length].steps[
		view.found && !view.found.kinds[model.kind[i]] ? 0 : strength];
}

function label(c, text, x, end, y, h, i) {
	const from = Math.max(x, 0) + 4, room = Math.min(end, view.width) - from - 3;

	if (room < LABEL_LEAST - 7)
		return;
	const letters = Math.floor(room / LETTER);

	c.fillStyle = view.found && !view.found.kinds[model.kind[i]] ? palette.muted
		: palette.categories[model.kindCategory[model.kind[i]] % palette.categories.length].text;
	c.fillText(text.length > letters ? text.slice(0, Math.max(1, letters - 1)) + "…" : text, from, y + h / 2 + .5, room);
}

function drawWide(c, strip, i, x, end, y, h) {
	const flags = model.kindFlags[model.kind[i]];
	const shownEnd = end - x > 3 && end < view.width ? end - .75 : end;

	strip.flush();
	c.fillStyle = colourOf(i, flags & SUM ? Math.max(1, strengthOf(busyOf(i) / Math.max(1, model.duration[i]))) : STRENGTHS);
	c.fillRect(Math.max(x, -2), y, Math.min(shownEnd, view.width + 2) - Math.max(x, -2), h);
	if (flags & FAILED) {
		c.fillStyle = palette.fault;
		c.fillRect(Math.max(x, 0), y + h - 3, Math.min(end, view.width) - Math.max(x, 0), 3);
	}
	if (flags & (UNFINISHED | DOUBTFUL) && end - x > 4) {
		c.strokeStyle = palette.bg;
		c.setLineDash([3, 3]);
		c.beginPath();
		c.moveTo(Math.min(end, view.width) - 2, y);
		c.lineTo(Math.min(end, view.width) - 2, y + h);
		c.stroke();
		c.setLineDash([]);
	}
	if (end - x >= LABEL_LEAST)
		label(c, nameOf(i), x, end, y, h, i);
}

/* A column always covers some time. */
function strengthOf(share) {
	return Math.min(STRENGTHS, Math.max(2, Math.ceil(share * STRENGTHS)));
}

function drawLane(c, lane, offset, y, h) {
	const t0 = view.t0 - offset, t1 = view.t1 - offset, perNs = view.width / (t1 - t0), nsPerPixel = 1 / perNs;
	const strip = new Strip(c, y, h), b = model.laneFrom[lane + 1];
	let i = firstEndingAfter(lane, t0);

	while (i < b && model.start[i] < t1) {
		const x = (model.start[i] - t0) * perNs, w = model.duration[i] * perNs;

		if (w >= 1.5) {
			if (model.kindShown[model.kind[i]])
				drawWide(c, strip, i, x, x + w, y, h);
			i++;
			continue;
		}
		const pixel = Math.max(0, Math.floor(x)), end = gallop(i, b, t0 + (pixel + 1) * nsPerPixel);
		let next = Math.max(end, i + 1);

		/* Slices of a lane do not overlap: only the last one that begins in a column can
		 * extend beyond it. */
		if (next > i + 1 && model.duration[next - 1] * perNs >= 1.5)
			next--;
		const longest = longestOf(i, next);

		if (model.kindShown[model.kind[longest]]) {
			const share = (model.busyBefore[next] - model.busyBefore[i]) * perNs;

			strip.add(pixel, pixel + 1, colourOf(longest, strengthOf(share)));
		}
		i = next;
	}
	strip.flush();
}

/* Time before 't' covered by slices of a lane, from cumulative sums. 'near' is the end of the
 * last search. */
function busyUntil(lane, t, near) {
	const a = model.laneFrom[lane], b = model.laneFrom[lane + 1];
	let step = 1, i = near.i;

	while (i + step < b && model.start[i + step] <= t)
		step *= 2;
	i = firstFrom(model.start, t, i + (step >> 1), Math.min(b, i + step + 1), true) - 1;
	near.i = Math.max(a, i);
	if (i < a)
		return model.busyBefore[a];
	const d = model.duration[i], share = d > 0 ? Math.min(1, (t - model.start[i]) / d) : 1;

	return model.busyBefore[i] + share * (model.busyBefore[i + 1] - model.busyBefore[i]);
}

/* Average number of concurrent slices in each column of 'step' pixels. */
function depths(lanes, offset, step) {
	const n = Math.ceil(view.width / step), out = new Float64Array(n), ns = (view.t1 - view.t0) / view.width * step;

	for (const lane of lanes) {
		const near = {i: model.laneFrom[lane]};
		let before = busyUntil(lane, view.t0 - offset, near);

		for (let k = 0; k < n; k++) {
			const until = busyUntil(lane, view.t0 - offset + (k + 1) * ns, near);

			out[k] += (until - before) / ns;
			before = until;
		}
	}
	return out;
}

function areaOf(row) {
	const lanes = lanesBelow(row.track), step = Math.min(8, Math.max(1, Math.ceil(lanes.length * view.width / 40000)));

	return {step, values: depths(lanes, row.pane.offset, step)};
}

function drawArea(c, row, area, most, y) {
	const h = row.height - 5, bottom = y + row.height - 2;

	c.fillStyle = palette.area;
	area.values.forEach((v, k) => {
		if (v > 0) {
			const height = Math.max(1, v / most * h);

			c.fillRect(k * area.step, bottom - height, area.step, height);
		}
	});
}

function drawCounter(c, row, y) {
	const {least, most} = counterColumns(row.counter, view.t0 - row.pane.offset, (view.t1 - view.t0) / view.width, Math.ceil(view.width));
	const scale = row.counter.scale, h = row.height - 8, bottom = y + row.height - 3, range = scale.most - scale.least || 1;
	const yOf = (v) => bottom - (v - scale.least) / range * h;

	for (let x = 0; x < least.length; x++) {
		if (!(most[x] <= Infinity))
			continue;
		c.fillStyle = palette.counterFill;
		c.fillRect(x, yOf(most[x]), 1, yOf(Math.min(0, scale.least)) - yOf(most[x]) + 1);
		c.fillStyle = palette.counter;
		c.fillRect(x, yOf(most[x]) - 1, 1, Math.max(1.5, yOf(least[x]) - yOf(most[x]) + 1));
	}
}
