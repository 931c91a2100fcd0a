"use strict";
/* Draws the rows, the axis, the overview, marks and arrows on their canvases, at most once per
 * frame. */

const palette = {};

/* Colours of categories, light and dark: hues that are distinct with colour blindness, in two
 * rounds of lightness. */
const HUES = {
	light: ["#4f90d4", "#e08a1e", "#2f9e77", "#d069a0", "#8a6fc9", "#a58a12", "#4fb0c6", "#b5533c", "#7d8792", "#6d9a2f", "#d979a8", "#5b6fb5"],
	dark: ["#5b9be0", "#f0a04b", "#3fb78c", "#dd78ad", "#a48ae0", "#c7aa35", "#62c3d8", "#d4745c", "#97a2ae", "#8bb84c", "#f099c2", "#7f93dc"],
};

function rgbOf(hex) {
	return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

function mixed(from, to, share) {
	return "rgb(" + from.map((v, i) => Math.round(v + (to[i] - v) * share)).join() + ")";
}

function readPalette() {
	const style = getComputedStyle(document.documentElement), dark = style.getPropertyValue("--dark").trim() === "1";

	for (const name of ["bg", "fg", "muted", "rule", "grid", "area", "counter", "fault", "verdict", "trigger", "phase", "select", "head"])
		palette[name] = style.getPropertyValue("--" + name).trim();
	palette.counterFill = mixed(rgbOf(palette.bg), rgbOf(palette.counter), .22);
	palette.categories = HUES[dark ? "dark" : "light"].map((hex) => {
		const rgb = rgbOf(hex), bg = rgbOf(palette.bg);
		const light = rgb.map((v) => v / 255).map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
		const luminance = .2126 * light[0] + .7152 * light[1] + .0722 * light[2];

		return {hex, text: luminance > .176 ? "#101418" : "#ffffff",
			steps: Array.from({length: STRENGTHS + 1}, (_, i) => mixed(bg, rgb, i === 0 ? .13 : .15 + .85 * i / STRENGTHS))};
	});
}

function colourOfCategory(c) {
	return palette.categories[c.id % palette.categories.length].hex;
}

let frame = 0;
const frameTimes = [];

function redraw() {
	if (!frame)
		frame = requestAnimationFrame(() => {
			frame = 0;
			drawNow();
		});
}

function drawNow() {
	const begun = performance.now();

	drawOverview();
	drawAxis();
	drawRows();
	drawLabels();
	frameTimes.push(performance.now() - begun);
	if (frameTimes.length > 200)
		frameTimes.shift();
}

/* Round steps of the axis: 1, 2 or 5 times a power of ten ns. */
function tickStep(span, least) {
	const wanted = span / Math.max(1, view.width / least), power = 10 ** Math.floor(Math.log10(Math.max(1, wanted)));

	return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= wanted) || 10 * power;
}

function eachTick(draw) {
	const step = tickStep(view.t1 - view.t0, 90);

	for (let k = Math.ceil(view.t0 / step), n = 0; k * step < view.t1 && n < 200; k++, n++)
		draw(xOf(k * step), k * step, step);
}

function drawAxis() {
	const h = 24, c = sized(byId("axis"), view.width, h);

	c.fillStyle = palette.bg;
	c.fillRect(0, 0, view.width, h);
	c.font = "11px " + FONT;
	c.textBaseline = "middle";
	eachTick((x, t, step) => {
		c.fillStyle = palette.rule;
		c.fillRect(Math.round(x), h - 7, 1, 7);
		c.fillStyle = palette.muted;
		if (x > -40)
			c.fillText(axisText(t, step), x + 3, h / 2);
	});
	c.fillStyle = palette.rule;
	c.fillRect(0, h - 1, view.width, 1);
}

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";

/* In seconds; below a millisecond also the part after it, which would otherwise be unreadable. */
function axisText(t, step) {
	return (t < 0 ? "−" : "") + atTime(Math.abs(t), step);
}

function drawOverview() {
	const h = 34, c = sized(byId("overview"), view.width, h), whole = view.whole, span = whole.to - whole.from;
	const x = (t) => (t - whole.from) / span * view.width;

	c.fillStyle = palette.head;
	c.fillRect(0, 0, view.width, h);
	if (!view.overview || view.overview.width !== view.width)
		view.overview = {width: view.width, values: overviewDepths()};
	const most = Math.max(...view.overview.values, 1e-9);

	c.fillStyle = palette.area;
	view.overview.values.forEach((v, k) => c.fillRect(2 * k, h - v / most * (h - 4), 2, v / most * (h - 4)));
	for (const m of model.marks) {
		if (m.kind === 3)
			continue;
		const pane = panes.find((p) => m.track < 0 || within(model.tracks[m.track], p.root));

		c.fillStyle = palette[MARKS[m.kind]];
		if (!pane)
			continue;
		c.globalAlpha = m.to > m.from ? .25 : 1;
		c.fillRect(x(m.from + pane.offset), 0, Math.max(1.5, x(m.to + pane.offset) - x(m.from + pane.offset)), h);
		c.globalAlpha = 1;
	}
	const a = x(view.t0), b = Math.max(a + 3, x(view.t1));

	c.fillStyle = palette.bg;
	c.globalAlpha = .6;
	c.fillRect(0, 0, a, h);
	c.fillRect(b, 0, view.width - b, h);
	c.globalAlpha = 1;
	c.strokeStyle = palette.select;
	c.lineWidth = 1.5;
	c.strokeRect(a + .75, .75, b - a - 1.5, h - 1.5);
}

/* Concurrent slices over the whole run, in steps of two pixels. */
function overviewDepths() {
	const kept = [view.t0, view.t1], out = new Float64Array(Math.ceil(view.width / 2));

	[view.t0, view.t1] = [view.whole.from, view.whole.to];
	for (const p of panes) {
		const lanes = p.root ? lanesBelow(p.root) : Array.from({length: model.laneTrack.length}, (_, l) => l);
		const step = Math.max(2, Math.ceil(lanes.length * view.width / 400000)), values = depths(lanes, p.offset, step);

		for (let k = 0; k < out.length; k++)
			out[k] += values[Math.min(values.length - 1, Math.floor(2 * k / step))];
	}
	[view.t0, view.t1] = kept;
	return out;
}

function rowsInView() {
	return rows.filter((r) => r.top + r.height > view.scroll && r.top < view.scroll + view.height);
}

function drawRows() {
	const c = sized(byId("canvas"), view.width, view.height), shown = rowsInView(), areas = new Map();
	const most = {};

	c.fillStyle = palette.bg;
	c.fillRect(0, 0, view.width, view.height);
	c.fillStyle = palette.grid;
	eachTick((x) => c.fillRect(Math.round(x), 0, 1, view.height));
	for (const row of shown)
		if (row.area) {
			const area = areaOf(row), kind = row.track.kind;

			areas.set(row, area);
			most[kind] = Math.max(most[kind] || 1e-9, ...area.values);
		}
	for (const row of shown)
		drawRowBack(c, row, row.top - view.scroll);
	drawMarkBands(c, shown);
	c.textBaseline = "middle";
	for (const row of shown) {
		const y = row.top - view.scroll;

		c.font = "11px " + FONT;
		if (row.counter)
			drawCounter(c, row, y);
		else if (row.area)
			drawArea(c, row, areas.get(row), most[row.track.kind], y);
		else if (row.track)
			drawTrack(c, row, y);
	}
	view.areas = {areas, most};
	drawMarkLines(c, shown);
	drawArrows(c);
	drawFrames(c);
}

function drawRowBack(c, row, y) {
	if (row.head) {
		c.fillStyle = palette.head;
		c.fillRect(0, y, view.width, row.height);
	}
	c.fillStyle = palette.grid;
	c.fillRect(0, y + row.height - 1, view.width, 1);
}

function laneTop(row, lane) {
	return row.lanes > 1 ? row.top + 2 + (lane - row.track.firstLane) * ROW.lane : row.top + 2;
}

function laneHeight(row) {
	return row.lanes > 1 ? ROW.lane - 1 : ROW.track - 4;
}

function drawTrack(c, row, y) {
	for (let k = 0; k < row.lanes; k++) {
		const lane = row.track.firstLane + k, top = laneTop(row, lane) - view.scroll;

		if (top + ROW.lane > 0 && top < view.height)
			drawLane(c, lane, row.pane.offset, top, laneHeight(row));
	}
	return y;
}

/* Rows affected by a mark: those at or below its track, in panes that contain it; all rows if it
 * has no track. */
function concerns(mark, row) {
	return mark.track < 0 || row.track && within(row.track, model.tracks[mark.track]);
}

/* Marks of a pane: those of its tracks, those above it, and those of the whole run. */
function marksOf(pane) {
	return model.marks.filter((m) => m.track < 0 || within(model.tracks[m.track], pane.root) ||
		pane.root && within(pane.root, model.tracks[m.track]));
}

function drawMarkBands(c, shown) {
	for (const m of model.marks) {
		if (m.kind === 3 || m.to <= m.from)
			continue;
		c.fillStyle = palette[MARKS[m.kind]];
		c.globalAlpha = .14;
		for (const row of shown) {
			const x = xOf(m.from + row.pane.offset), end = xOf(m.to + row.pane.offset);

			if (concerns(m, row) && end > 0 && x < view.width)
				c.fillRect(Math.max(0, x), row.top - view.scroll, Math.min(end, view.width) - Math.max(0, x), row.height);
		}
		c.globalAlpha = 1;
	}
}

function drawMarkLines(c, shown) {
	c.font = "600 11px " + FONT;
	for (const m of model.marks) {
		if (m.kind === 3)
			continue;
		c.fillStyle = palette[MARKS[m.kind]];
		for (const row of shown)
			for (const t of concerns(m, row) ? m.to > m.from ? [m.from, m.to] : [m.from] : []) {
				const x = Math.round(xOf(t + row.pane.offset)), y = row.top - view.scroll;

				if (x < -2 || x > view.width + 2)
					continue;
				if (m.kind === 0)
					c.fillRect(x, y, 2, row.height);
				else
					for (let k = 0; k < row.height; k += 6)
						c.fillRect(x, y + k, 2, 4);
			}
	}
	for (const row of shown)
		if (row.head)
			drawFlags(c, row, row.top - view.scroll);
}

/* Texts of marks in a pane's head, each from its moment on, as far as the next lets it; before a moment where there is
   room only there. */
function drawFlags(c, row, y) {
	const flags = marksOf(row.pane).map((m) => ({m, x: xOf(m.from + row.pane.offset), end: xOf(m.to + row.pane.offset)}))
		.filter((f) => f.x < view.width && Math.max(f.end, f.x + 60) > 0).sort((a, b) => a.x - b.x);

	let left = 0;

	flags.forEach((f, k) => {
		const x = Math.max(0, f.x), next = k + 1 < flags.length ? Math.max(x, flags[k + 1].x) : view.width;
		const letters = Math.floor((next - x - 16) / 6.4), width = f.m.text.length * 6.4;
		const before = f.m.to === f.m.from && letters < f.m.text.length && x - left - 6 > width;

		c.fillStyle = palette[MARKS[f.m.kind]];
		if (f.m.to > f.m.from)
			c.fillRect(x, y + row.height - 4, Math.min(f.end, view.width) - x, 3);
		c.beginPath();
		c.moveTo(x, y + 3);
		c.lineTo(x + 8, y + 7);
		c.lineTo(x, y + 11);
		c.fill();
		if (before) {
			c.textAlign = "right";
			c.fillText(f.m.text, x - 4, y + 9);
			c.textAlign = "left";
		} else if (letters > 2)
			c.fillText(f.m.text.length > letters ? f.m.text.slice(0, letters - 1) + "…" : f.m.text, x + 11, y + 9);
		left = before ? x + 8 : x + 11 + Math.min(width, Math.max(0, letters * 6.4));
	});
}

/* The position of a slice: {x, end, y, h, row}, also outside the view; the row of a folded
 * track. */
function placeOf(i) {
	const track = trackOf(i), pane = paneOf(i), row = rowShowing(track, pane);

	if (!row)
		return null;
	const x = xOf(model.start[i] + pane.offset), end = xOf(model.start[i] + model.duration[i] + pane.offset);
	const open = row.track === track && row.lanes > 0;
	const y = open ? laneTop(row, laneOf(i)) : row.top + 2;

	return {x, end, y: y - view.scroll, h: open ? laneHeight(row) : row.height - 4, row, folded: !open};
}

function drawFrames(c) {
	for (const [i, colour] of [[view.hovered, palette.muted], [view.selected, palette.select]]) {
		const p = i >= 0 ? placeOf(i) : null;

		if (!p || p.folded || p.end < -5 || p.x > view.width + 5)
			continue;
		const x = Math.max(-4, p.x), end = Math.min(view.width + 4, Math.max(p.end, p.x + 3));

		c.strokeStyle = colour;
		c.lineWidth = 2;
		c.strokeRect(x - 1, p.y - 1, end - x + 2, p.h + 2);
	}
}
