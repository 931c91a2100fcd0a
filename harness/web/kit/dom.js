"use strict";
/* Builds elements, and formats numbers. Text from a run becomes text nodes and attribute values,
 * never markup. */

/* el("p.muted", {id: "x"}, child, ...): children are nodes, texts, arrays of them, or null. */
function el(what, attributes, ...children) {
	const [tag, ...classes] = what.split(".");
	const e = document.createElement(tag);

	if (classes.length)
		e.className = classes.join(" ");
	for (const [key, value] of Object.entries(attributes || {})) {
		if (key.startsWith("on"))
			e.addEventListener(key.slice(2), value);
		else if (value !== undefined && value !== null && value !== false)
			e.setAttribute(key, value === true ? "" : value);
	}
	e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined));
	return e;
}

function svg(tag, attributes, ...children) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", tag);

	for (const [key, value] of Object.entries(attributes))
		e.setAttribute(key, value);
	e.append(...children);
	return e;
}

function fill(id, ...children) {
	const e = document.getElementById(id);

	e.replaceChildren(...children.flat(Infinity).filter(Boolean));
	return e;
}

/* An object's own member; names come from runs, and one may be "constructor". */
function own(object, key) {
	return object && Object.hasOwn(object, key) ? object[key] : undefined;
}

/* A label that may wrap after its punctuation. */
function breakable(text) {
	return text.split(/(?<=[,(=/])/).flatMap((part, i) => i ? [el("wbr"), part] : [part]);
}

/* [{term, what}] as a definition list; entries without a value are omitted. */
function list(entries) {
	return el("dl.facts", null, entries.filter((x) => x && x[1] !== null && x[1] !== undefined && x[1] !== "").map(
		([term, what]) => el("div", null, el("dt", null, term), el("dd", null, what))));
}

/* The caption stays visible while the table is scrolled sideways. */
function tableCaption(...text) {
	return el("caption", null, el("span", null, ...text));
}

/* A table with caption, column heads, and row heads in the first column; sortable by its heads if
 * the page supports that. */
/* A long text wraps; a text without spaces, such as a boot id, stays on one line, and the table
 * scrolls. */
function textCell(cell) {
	const long = typeof cell === "string" && cell.length > 24;

	return el(!long ? "td" : /\s/.test(cell) || cell.length > 40 ? "td.long" : "td.whole", null, cell);
}

function grid(caption, heads, rows, options) {
	const numeric = new Set((options && options.numeric) || []);

	const sorting = typeof sortableTable === "function" ? sortableTable : (table) => table;

	return el("div.scroll", {tabindex: "0", role: "group", "aria-label": caption},
		sorting(el("table.grid", null, tableCaption(caption),
			el("thead", null, el("tr", null, heads.map((h, i) =>
				el(numeric.has(i) ? "th.num" : "th", {scope: "col"}, h)))),
			el("tbody", null, rows.map((row) => el("tr", null, row.map((cell, i) =>
				i === 0 ? el(numeric.has(0) ? "th.num" : "th", {scope: "row"}, cell)
					: numeric.has(i) ? el("td.num", null, cell) : textCell(cell))))))));
}

function fold(title, attributes, ...body) {
	return el("details", attributes, el("summary", null, title), el("div.folded", null, ...body));
}

function plural(n, one, many) {
	return n + " " + (n === 1 ? one : many || one + "s");
}

/* ".48", "0", "1": rounded outwards, like 'culprit table'. */
function bound(x, up) {
	const hundredths = up ? Math.ceil(x * 100 - 1e-9) : Math.floor(x * 100 + 1e-9);

	if (hundredths <= 0)
		return "0";
	return hundredths >= 100 ? "1" : "." + String(hundredths).padStart(2, "0");
}

function interval(rate) {
	return "[" + bound(rate.low, false) + "," + bound(rate.high, true) + "]";
}

function digits(x, n) {
	if (x === null || x === undefined)
		return "-";
	if (x === 0)
		return "0";
	const a = Math.abs(x);

	if (a >= 1e9 || a < 1e-6)
		return x.toExponential(n - 1);
	const places = Math.max(0, n - 1 - Math.floor(Math.log10(a)));

	return x.toLocaleString("en", {maximumFractionDigits: Math.min(places, 12)});
}

/* Formats a number according to its 'key': durations and sizes in the most readable unit. */
function quantity(x, key) {
	if (/bytes_per_second$/.test(key))
		return bytes(x) + "/s";
	if (/(^|_)bytes$/.test(key))
		return bytes(x);
	return /_s$|^seconds$/.test(key) ? duration(x) : digits(x, 5);
}

/* A duration in seconds, in the most readable unit. */
function duration(s) {
	const a = Math.abs(s);

	if (a >= 120)
		return Math.floor(s / 60) + " min " + Math.round(s % 60) + " s";
	if (a >= 1 || a === 0)
		return digits(s, 3) + " s";
	return a >= 1e-3 ? digits(s * 1e3, 3) + " ms" : digits(s * 1e6, 3) + " µs";
}

function bytes(n) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let i = 0;

	while (Math.abs(n) >= 1024 && i < units.length - 1) {
		n /= 1024;
		i++;
	}
	return digits(n, 3) + " " + units[i];
}

/* CLOCK_REALTIME in nanoseconds as "2026-11-21 13:35:08 UTC". */
function when(ns) {
	return ns ? new Date(ns / 1e6).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "-";
}

function median(values) {
	const sorted = values.filter((v) => v !== null).sort((a, b) => a - b);
	const half = sorted.length >> 1;

	if (!sorted.length)
		return null;
	return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/* False if there were no cells to compute a rate from. */
function hasRate(rate) {
	return Boolean(rate) && rate.rate !== null;
}

/* A colour based on few cells is paler. */
function paleness(n) {
	return n >= 10 ? "" : n >= 5 ? ".w3" : n >= 2 ? ".w2" : ".w1";
}

/* Cells of tables of rates: "headers" are the ids of their headings, if any. */
function heatCell(rate, n, high_is_good, headers, ...notes) {
	return el("td.heat.s" + step(rate.rate, high_is_good) + paleness(n), {headers},
		el("span.figure", null, el("b", null, rate.rate.toFixed(2)), el("span.n", null, rate.count + "/" + n)), " ", el("span.ci", null, interval(rate)), whisker(rate), ...notes);
}

function emptyCell(why, headers) {
	return el("td.heat.none", {headers}, el("span", {"aria-hidden": "true"}, "–"), el("span.sr", null, why));
}
