"use strict";
/* Mouse, touch and keys on a chart: a cursor with its values, and selecting a period. */

const DRAG_LEAST = 6;

function valuesAt(chart, t) {
	const i = Math.floor((t - chart.data.first) / chart.data.step + 1e-9), out = [];

	chart.data.series.forEach((s, k) => {
		const v = s.values[i];

		if (!chart.hidden.has(s.name) && v !== undefined && !Number.isNaN(v) && (v !== 0 || chart.kind === "line"))
			out.push({name: s.name, v, k});
	});
	return out.sort((a, b) => b.v - a.v).slice(0, 9);
}

function dotsAt(chart, t, y) {
	const near = chart.dots.rows.filter((r) => !chart.hidden.has(r[2]) && t >= r[0] - chart.dots.dt && t <= r[0] + 2 * chart.dots.dt)
		.map((r) => ({r, d: Math.abs(chart.y(r[1]) - y)})).sort((a, b) => a.d - b.d).slice(0, 6);

	return near.map(({r}) => ({name: r[2] + (r[3] > 1 ? " (" + r[3] + ")" : ""), v: r[1], k: chart.dots.series.indexOf(r[2])}));
}

function marksAt(chart, t) {
	return marksShown().filter((m) => m.kind === "fault" ? t >= m.from && (m.to === null || t < m.to) : Math.abs(chart.x(m.from) - chart.x(t)) < 5);
}

function showTip(chart, x, y) {
	const t = chart.cursor, tip = byId("tip"), found = chart.dots ? dotsAt(chart, t, y) : valuesAt(chart, t), box = chart.canvas.getBoundingClientRect();
	const step = chart.dots ? chart.dots.dt : chart.data.step;

	tip.replaceChildren(el("div", null, el("b", null, moment(t, step / 10))),
		...marksAt(chart, t).map((m) => el("div", null, el("span.n", null, m.text))),
		...found.map((f) => el("div", null, swatch(chart, f.k), el("span.n", null, f.name), el("span.v", null, inUnit(f.v, chart.unit)))),
		...(found.length ? [] : [el("div.muted", null, "nothing")]));
	tip.hidden = false;
	const w = tip.offsetWidth, h = tip.offsetHeight, at = box.left + chart.x(t);

	tip.style.left = Math.max(4, Math.min(window.innerWidth - w - 4, at + 14 + w > window.innerWidth ? at - w - 14 : at + 14)) + "px";
	tip.style.top = Math.max(4, Math.min(window.innerHeight - h - 4, box.top + y - h / 2)) + "px";
}

function hideTip() {
	byId("tip").hidden = true;
}

function swatch(chart, k) {
	const s = el("span.swatch");

	s.style.background = chart.kind === "heat" ? "rgb(" + colours().heat + ")" : "var(--c" + chart.colour[k] + ")";
	return s;
}

function inside(chart, x) {
	return Math.min(chart.box.right, Math.max(chart.box.left, x));
}

function listenTo(chart) {
	const c = chart.canvas, at = (e) => inside(chart, e.clientX - c.getBoundingClientRect().left);
	const forget = () => {
		chart.cursor = chart.drag = null;
		hideTip();
		draw(chart);
	};

	c.addEventListener("pointerdown", (e) => {
		if (e.button === 0)
			chart.drag = [at(e), at(e)];
	});
	c.addEventListener("pointermove", (e) => {
		chart.cursor = chart.t(at(e));
		if (e.buttons === 0)
			chart.drag = null; /* released outside */
		if (chart.drag) {
			chart.drag[1] = at(e);
			if (Math.abs(chart.drag[1] - chart.drag[0]) > DRAG_LEAST && !c.hasPointerCapture(e.pointerId))
				c.setPointerCapture(e.pointerId);
		}
		draw(chart);
		showTip(chart, at(e), e.clientY - c.getBoundingClientRect().top);
	});
	c.addEventListener("pointerup", () => {
		const [a, b] = chart.drag || [0, 0];

		chart.drag = null;
		if (Math.abs(b - a) > DRAG_LEAST)
			zoomTo(chart.t(Math.min(a, b)), chart.t(Math.max(a, b)));
		draw(chart);
	});
	c.addEventListener("pointercancel", forget);
	c.addEventListener("pointerleave", () => { if (!chart.drag) forget(); });
	c.addEventListener("dblclick", () => choose({from: "", to: ""}));
	c.addEventListener("keydown", (e) => key(chart, e));
	c.addEventListener("blur", forget);
}

/* Arrows move the cursor; with Shift, the period; + and - resize it; 0 and Escape show all. */
function key(chart, e) {
	const [from, to] = chart.range, span = to - from, step = chart.dots ? span / 100 : Math.max(chart.data.step, span / 300);
	const middle = chart.cursor ?? (from + to) / 2, way = e.key === "ArrowLeft" ? -1 : 1;

	if (e.ctrlKey || e.metaKey || e.altKey)
		return;
	switch (e.key) {
	case "ArrowLeft":
	case "ArrowRight":
		if (e.shiftKey) {
			zoomTo(from + way * span / 4, to + way * span / 4);
			break;
		}
		chart.cursor = Math.min(to, Math.max(from, chart.cursor === null ? middle : chart.cursor + way * step));
		draw(chart);
		showTip(chart, chart.x(chart.cursor), chart.box.top + 40);
		break;
	case "+":
	case "=": zoomTo(middle - span / 4, middle + span / 4); break;
	case "-": zoomTo(middle - span, middle + span); break;
	case "0":
	case "Escape": choose({from: "", to: ""}); break;
	default: return;
	}
	e.preventDefault();
}
