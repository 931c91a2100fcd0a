"use strict";
/* A chart on a canvas. chart: {canvas, kind, unit, log, data, hidden, cursor, drag}; times in seconds. */

const HEIGHT = 210, FOOT = 20, TOP = 8;

function begin(chart) {
	const c = chart.canvas, ratio = window.devicePixelRatio || 1, width = c.clientWidth || 300, height = heightOf(chart);

	if (c.width !== Math.round(width * ratio) || c.height !== Math.round(height * ratio)) {
		c.width = Math.round(width * ratio);
		c.height = Math.round(height * ratio);
		c.style.height = height + "px";
	}
	const g = c.getContext("2d");

	g.setTransform(ratio, 0, 0, ratio, 0, 0);
	g.clearRect(0, 0, width, height);
	g.font = "11px system-ui, sans-serif";
	g.textBaseline = "middle";
	const [from, to] = chart.range, left = chart.kind === "heat" ? Math.min(130, width * .3) : 62;

	chart.box = {left, right: width - 8, top: TOP + LABEL_HIGH * labelled(chart).length, bottom: height - FOOT};
	chart.x = (t) => left + (t - from) / (to - from) * (width - 8 - left);
	chart.t = (x) => from + (x - left) / (width - 8 - left) * (to - from);
	return g;
}

function heightOf(chart) {
	return chart.kind === "heat" ? Math.max(60, 15 * chart.data.series.length + FOOT + TOP) : HEIGHT + LABEL_HIGH * labelled(chart).length;
}

function drawTimes(g, chart, colour) {
	const {left, right, top, bottom} = chart.box, [from, to] = chart.range, marks = ticks(from, to, Math.max(2, (right - left) / 90));

	g.textAlign = "center";
	for (const t of marks) {
		const x = Math.round(chart.x(t)) + .5;

		g.strokeStyle = colour.grid;
		g.beginPath();
		g.moveTo(x, top);
		g.lineTo(x, bottom);
		g.stroke();
		g.fillStyle = colour.muted;
		if (x > left + 8 && x < right - 12)
			g.fillText(moment(t, marks.length > 1 ? marks[1] - marks[0] : to - from), x, bottom + 11);
	}
	g.textAlign = "left";
}

function drawValues(g, chart, colour) {
	const {left, right, top, bottom} = chart.box, n = 4;
	const marks = chart.log ? logTicks(chart.low, chart.high, 5) : /^B/.test(chart.unit || "") ? byteTicks(chart.high, n) : ticks(0, chart.high, n);

	g.textAlign = "right";
	for (const v of marks) {
		const y = Math.round(chart.y(v)) + .5;

		if (y < top - 1 || y > bottom + 1)
			continue;
		g.strokeStyle = colour.grid;
		g.beginPath();
		g.moveTo(left, y);
		g.lineTo(right, y);
		g.stroke();
		g.fillStyle = colour.muted;
		g.fillText(inUnit(v, chart.unit), left - 5, y);
	}
	g.textAlign = "left";
}

/* Does a series' name begin with the faulty or accused node? Then its line is thicker, and its
 * legend says why. */
function concerned(name) {
	const node = name.split(" ")[0], [from, to] = shown(), about = marksShown().filter((m) => m.server === node && m.from <= to && endOf(m) >= from);
	const words = [about.some((m) => m.kind === "fault") ? "fault" : null, about.some((m) => m.kind !== "fault") ? "accused" : null].filter(Boolean);

	return words.length ? " (" + words.join(", ") + ")" : "";
}

/* A verdict is a moment; a fault without an end is still active. */
function endOf(m) {
	return m.kind === "fault" ? m.to === null ? Infinity : m.to : m.from;
}

/* The marks with text above the chart, each on a separate line: those that begin inside it, if
 * they are few. */
const LABELS_MAX = 6, LABEL_HIGH = 13;

function labelled(chart) {
	const [from, to] = chart.range, begun = chart.kind === "heat" ? [] : marksShown().filter((m) => isDrawn(m) && m.from >= from && m.from <= to);

	return begun.length > LABELS_MAX ? [] : begun;
}

/* A verdict that accuses nobody has no line. */
function isDrawn(m) {
	return m.kind === "fault" || m.server !== null;
}

function labelMarks(g, chart, colour) {
	labelled(chart).forEach((m, i, all) => {
		const x = chart.x(m.from), y = TOP + LABEL_HIGH * i, wide = g.measureText(m.text).width, after = x + 4 + wide < chart.box.right;

		g.strokeStyle = g.fillStyle = m.kind === "fault" ? colour.fault : colour.verdict;
		g.textAlign = after ? "left" : "right";
		g.fillText(m.text, after ? x + 4 : x - 4, y + 3);
		g.beginPath();
		g.moveTo(Math.round(x) + .5, y - 3);
		g.lineTo(Math.round(x) + .5, TOP + LABEL_HIGH * all.length);
		g.stroke();
	});
	g.textAlign = "left";
}

/* The fault's time is shaded, verdicts are lines. */
function drawMarks(g, chart, colour) {
	const {left, right, top, bottom} = chart.box, clip = (x) => Math.min(right, Math.max(left, x));

	for (const m of marksShown().filter(isDrawn)) {
		const a = clip(chart.x(m.from)), b = m.kind === "fault" ? clip(m.to === null ? right : chart.x(m.to)) : a;

		if (m.kind === "fault" && b > a) {
			g.fillStyle = colour.area;
			g.fillRect(a, top, b - a, bottom - top);
		}
		if (chart.x(m.from) < left || chart.x(m.from) > right)
			continue;
		g.strokeStyle = m.kind === "fault" ? colour.fault : colour.verdict;
		g.setLineDash(m.kind === "fault" ? [] : [3, 3]);
		g.beginPath();
		g.moveTo(a + .5, top);
		g.lineTo(a + .5, bottom);
		g.stroke();
		g.setLineDash([]);
	}
	labelMarks(g, chart, colour);
}

function slotEdges(chart, i) {
	const {left, right} = chart.box, t = chart.data.first + i * chart.data.step;

	return [Math.max(left, chart.x(t)), Math.min(right, chart.x(t + chart.data.step))];
}

function drawStacked(g, chart, colour) {
	const base = new Float64Array(chart.data.n), gap = chart.kind === "bars" ? 1 : 0;

	chart.data.series.forEach((s, k) => {
		if (chart.hidden.has(s.name))
			return;
		g.fillStyle = colour.series[chart.colour[k]];
		for (let i = 0; i < s.values.length; i++) {
			const v = s.values[i];

			if (!(v > 0))
				continue;
			const [a, b] = slotEdges(chart, i), y = chart.y(base[i] + v), height = chart.y(base[i]) - y;

			base[i] += v;
			if (b > a)
				g.fillRect(a, y, Math.max(1, b - a - gap), Math.max(height, .5));
		}
	});
}

function drawLines(g, chart, colour) {
	const {left, right, top, bottom} = chart.box, bridge = Math.max(2, Math.ceil((chart.range[1] - chart.range[0]) / chart.data.step / 60));

	g.save();
	g.beginPath();
	g.rect(left, top - 2, right - left, bottom - top + 4);
	g.clip();
	chart.data.series.forEach((s, k) => {
		let last = -Infinity, drawn = false;

		if (chart.hidden.has(s.name))
			return;
		g.strokeStyle = g.fillStyle = colour.series[chart.colour[k]];
		g.lineWidth = concerned(s.name) ? 2.5 : 1.5;
		g.beginPath();
		for (let i = 0; i < s.values.length; i++) {
			const v = s.values[i];

			if (Number.isNaN(v) || (chart.log && !(v > 0)))
				continue;
			const x = chart.x(chart.data.first + (i + .5) * chart.data.step), y = chart.y(v);

			if (i - last > bridge) {
				g.moveTo(x, y);
				g.rect(x - .75, y - .75, 1.5, 1.5);
				g.moveTo(x, y);
			} else {
				g.lineTo(x, y);
			}
			last = i;
			drawn = true;
		}
		if (drawn)
			g.stroke();
	});
	g.restore();
}

function drawHeat(g, chart, colour) {
	const {left, bottom, top} = chart.box, rows = chart.data.series, high = rows.length ? (bottom - top) / rows.length : 0;
	let largest = 0;

	for (const s of rows)
		for (const v of s.values)
			if (v > largest)
				largest = v;
	rows.forEach((s, k) => {
		const y = top + k * high;

		for (let i = 0; i < s.values.length; i++) {
			const [a, b] = slotEdges(chart, i), v = s.values[i];

			if (!(v > 0) || b <= a)
				continue;
			g.fillStyle = "rgba(" + colour.heat + "," + (.12 + .88 * Math.sqrt(v / largest)).toFixed(3) + ")";
			g.fillRect(a, y + 1, Math.max(1, b - a), high - 2);
		}
		g.fillStyle = colour.fg;
		g.textAlign = "right";
		g.fillText(clipped(g, s.name, left - 10), left - 5, y + high / 2);
		g.textAlign = "left";
	});
}

function clipped(g, text, width) {
	if (g.measureText(text).width <= width)
		return text;
	while (text.length > 1 && g.measureText(text + "…").width > width)
		text = text.slice(0, -1);
	return text + "…";
}

function drawDots(g, chart, colour) {
	const {left, right} = chart.box, {rows, dt, dy, series} = chart.dots;
	const wide = Math.max(2, chart.x(dt) - chart.x(0));
	let most = 1;

	for (const r of rows)
		most = Math.max(most, r[3]);
	for (const [t, v, name, n] of rows) {
		const x = chart.x(t), high = Math.max(2, chart.y(v) - chart.y(v + dy)), k = series.indexOf(name);

		if (chart.hidden.has(name) || x < left - wide || x > right)
			continue;
		g.globalAlpha = .45 + .55 * n / most;
		g.fillStyle = colour.series[chart.colour[k]];
		g.fillRect(Math.max(left, x), chart.y(v) - high, Math.min(wide, right - x), high);
	}
	g.globalAlpha = 1;
}

function setScale(chart) {
	const {top, bottom} = chart.box;

	chart.high = chart.dots ? Math.max(...chart.dots.rows.map((r) => r[1] + chart.dots.dy), 1) : highest(chart) || 1;
	if (chart.log) {
		chart.low = 10 ** Math.floor(Math.log10(Math.min(lowestAbove(chart), chart.high)));
		chart.high = Math.max(chart.high, chart.low * 10);
		chart.y = (v) => bottom - Math.log(Math.max(v, chart.low) / chart.low) / Math.log(chart.high / chart.low) * (bottom - top);
	} else {
		chart.low = 0;
		chart.high *= 1.04;
		chart.y = (v) => bottom - v / chart.high * (bottom - top);
	}
}

function draw(chart) {
	const colour = colours(), g = begin(chart), {left, right, top, bottom} = chart.box;

	setScale(chart);
	drawTimes(g, chart, colour);
	if (chart.kind !== "heat")
		drawValues(g, chart, colour);
	if (chart.kind === "heat")
		drawHeat(g, chart, colour);
	else if (chart.kind === "dots")
		drawDots(g, chart, colour);
	else if (chart.kind === "line")
		drawLines(g, chart, colour);
	else
		drawStacked(g, chart, colour);
	drawMarks(g, chart, colour);
	g.strokeStyle = colour.rule;
	g.beginPath();
	g.moveTo(left, bottom + .5);
	g.lineTo(right, bottom + .5);
	g.stroke();
	if (chart.drag) {
		g.fillStyle = colour.select;
		g.fillRect(Math.min(...chart.drag), top, Math.abs(chart.drag[1] - chart.drag[0]), bottom - top);
	}
	if (chart.cursor !== null && chart.cursor >= chart.range[0] && chart.cursor <= chart.range[1]) {
		const x = Math.round(chart.x(chart.cursor)) + .5;

		g.strokeStyle = colour.muted;
		g.beginPath();
		g.moveTo(x, top);
		g.lineTo(x, bottom);
		g.stroke();
	}
}
