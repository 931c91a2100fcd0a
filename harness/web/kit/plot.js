"use strict";
/* Plots as SVG, drawn for their current width. The style sheet sets colours by class. */

const plots = new Set();

/* A container for a plot; 'draw(width)' makes its elements, again whenever the width changes. */
function plotPlace(label, height, draw) {
	const place = svg("svg", {class: "svg-plot", role: "img", "aria-label": label, height});

	place.drawAgain = () => {
		if (!place.parentElement.clientWidth)
			return; /* hidden */
		const width = Math.max(150, Math.round(place.parentElement.clientWidth - 2 * parseFloat(getComputedStyle(place.parentElement).paddingLeft)));

		if (place.drawnFor === width)
			return;
		place.drawnFor = width;
		place.setAttribute("viewBox", "0 0 " + width + " " + height);
		place.replaceChildren(...draw(width, height).flat(Infinity).filter(Boolean));
	};
	plots.add(place);
	return place;
}

/* Redraws the plots inside an element that was just shown, or all plots. */
function drawPlots(within) {
	for (const place of plots) {
		if (!place.isConnected)
			plots.delete(place);
		else if (!within || within.contains(place))
			place.drawAgain();
	}
}

/* Maps [low, high] to [from, to], logarithmically if 'log'. */
function scale(low, high, from, to, log) {
	const f = log ? Math.log10 : (x) => x, a = f(low), b = f(high);
	const at = (x) => from + (to - from) * (b > a ? (f(x) - a) / (b - a) : .5);

	return Object.assign((x) => Math.max(Math.min(from, to), Math.min(Math.max(from, to), at(x))), {low, high, log});
}

/* About 'n' round numbers between low and high. */
function roundSteps(low, high, n) {
	const rough = (high - low) / n || 1, power = 10 ** Math.floor(Math.log10(rough));
	const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * .999);
	const ticks = [];

	for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-12); i++)
		ticks.push(i * step);
	return ticks;
}

/* 1, 2, 5, 10 ... between low and high; only powers of ten if there are many. */
function logSteps(low, high, n) {
	const all = [];

	for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++)
		for (const m of [1, 2, 5])
			all.push(m * 10 ** p);
	const inside = all.filter((x) => x >= low * .999 && x <= high * 1.001);
	const tens = inside.filter((x) => Number.isInteger(Math.round(Math.log10(x) * 1e6) / 1e6));

	if (inside.length < 2)
		return [...new Set([low, high])];
	return inside.length <= n ? inside : tens.length > n ? tens.filter((_, i) => i % Math.ceil(tens.length / n) === 0) : tens;
}

const spans_of_time = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 345600,
	604800, 1209600, 2592000, 7776000, 31536000];

function timeSteps(low, high, n) {
	const step = spans_of_time.find((s) => (high - low) / s <= n) || (high - low) / n;
	const ticks = [];

	for (let t = Math.ceil(low / step) * step; t <= high; t += step)
		ticks.push(t);
	return ticks;
}

/* Unix seconds: "11-02" at midnight, otherwise "14:00"; other times: the number. */
function timeLabel(t, unix, span) {
	if (!unix)
		return digits(t, 6);
	const iso = new Date(t * 1000).toISOString();

	if (span > 30 * 86400 || t % 86400 === 0)
		return span > 2 * 31536000 ? iso.slice(0, 7) : iso.slice(5, 10);
	return span > 900 ? iso.slice(11, 16) : iso.slice(11, 19);
}

function text(x, y, anchor, content, more) {
	return svg("text", {x, y, "text-anchor": anchor, ...more}, content);
}

/* Grid lines with labels below and at the left. */
function axes(x, y, box, x_ticks, x_label, y_ticks, y_label) {
	return [y_ticks.map((v) => [svg("line", {class: "rule", x1: box.left, x2: box.right, y1: y(v), y2: y(v)}),
		text(box.left - 5, y(v) + 4, "end", y_label(v))]),
	x_ticks.map((v, i) => [svg("line", {class: "rule", x1: x(v), x2: x(v), y1: box.top, y2: box.bottom}),
		text(x(v), box.bottom + 14, i || x(v) > box.left + 15 ? x(v) > box.right - 15 ? "end" : "middle" : "start", x_label(v))])];
}

/* A line through [x, y] in pixels; null interrupts it, and an isolated point becomes a dot. */
function lines(points, more, dash) {
	const parts = [[]];

	for (const p of points) {
		if (p)
			parts[parts.length - 1].push(p);
		else if (parts[parts.length - 1].length)
			parts.push([]);
	}
	return parts.filter((p) => p.length).map((p) => p.length > 1
		? svg("polyline", {class: "line " + (more || ""), "stroke-dasharray": (dash || []).join(" ") || "none", points: p.map(([x, y]) => x.toFixed(1) + "," + y.toFixed(1)).join(" ")})
		: svg("circle", {class: "lone " + (more || ""), cx: p[0][0].toFixed(1), cy: p[0][1].toFixed(1), r: 1.5}));
}

/* Curves in the unit square: [{points: [[x, y]], class, dash, mark: [x, y]}]. */
function squarePlot(label, curves, steps, x_name, y_name, diagonal) {
	return plotPlace(label, 300, (width, height) => {
		const size = Math.min(width - 56, height - 46), box = {left: 44, right: 44 + size, top: 8, bottom: 8 + size};
		const x = scale(0, 1, box.left, box.right), y = scale(0, 1, box.bottom, box.top), ticks = [0, .2, .4, .6, .8, 1];
		const path_ = (points) => points.flatMap(([a, b], i) => i && steps ? [[x(a), y(points[i - 1][1])], [x(a), y(b)]] : [[x(a), y(b)]]);

		return [axes(x, y, box, ticks, String, ticks, String),
			diagonal ? svg("line", {class: "diagonal", x1: box.left, x2: box.right, y1: box.bottom, y2: box.top}) : null,
			curves.map((c) => [lines(path_(c.points), c.class, c.dash), c.mark ? svg("circle", {class: "found " + (c.class || ""), cx: x(c.mark[0]), cy: y(c.mark[1]), r: 4}) : null]),
			text((box.left + box.right) / 2, box.bottom + 30, "middle", x_name),
			text(12, (box.top + box.bottom) / 2, "middle", y_name, {transform: "rotate(-90 12 " + (box.top + box.bottom) / 2 + ")"})];
	});
}
