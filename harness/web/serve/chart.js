"use strict";
/* Converts rows of an answer to chart data: series over slots of time. */

const SERIES_MAX = 10, ROWS_MAX = 24;

/* The shortest interval between two times. */
function stepOf(moments, least) {
	let step = Infinity;

	for (let i = 1; i < moments.length; i++)
		if (moments[i] - moments[i - 1] > 1e-9)
			step = Math.min(step, moments[i] - moments[i - 1]);
	return Number.isFinite(step) ? step : least || 1;
}

/* {step, first, n, series: [{name, values: Float64Array, sum}], left: names of series not drawn}.
 * A slot without a row is NaN. */
function shape(answer, chart) {
	const rows = answer.rows, named = rows.some((r) => typeof r[1] === "string"), columns = answer.columns;
	const values = [], found = new Map();
	const moments = [...new Set(rows.map((r) => r[0]))].sort((a, b) => a - b);
	const step = stepOf(moments, answer.slot), first = moments[0] || 0;
	const n = moments.length ? Math.round((moments[moments.length - 1] - first) / step) + 1 : 0;
	let names = 0;

	while (named && columns.length > names + 1 && rows.every((r) => r[names + 1] === null || typeof r[names + 1] === "string"))
		names++;
	for (let c = names + 1; c < columns.length; c++)
		values.push(c);
	for (const r of rows) {
		const slot = Math.round((r[0] - first) / step), label = r.slice(1, names + 1).map((x) => x === null ? "?" : x).join(" ");

		for (const c of values) {
			const name = [label, values.length > 1 || !label ? columns[c] : ""].filter(Boolean).join(" ");
			let one = found.get(name);

			if (typeof r[c] !== "number" || slot > 100000)
				continue;
			if (!one)
				found.set(name, one = {name, values: new Float64Array(n).fill(NaN), sum: 0});
			one.values[slot] = (one.values[slot] || 0) + r[c];
			one.sum += r[c];
		}
	}
	return {step, first, n, ...most([...found.values()], chart, n)};
}

/* The largest series, and the rest: together if sums make sense. */
function most(all, chart, n) {
	const max = chart === "heat" ? ROWS_MAX : SERIES_MAX;

	all.sort((a, b) => b.sum - a.sum || (a.name < b.name ? -1 : 1));
	if (chart === "line") /* sorted by name, which stays stable as data arrives */
		return {series: all.slice(0, max).sort((a, b) => a.name.localeCompare(b.name, "en", {numeric: true})), left: all.slice(max).map((s) => s.name)};
	if (all.length <= max)
		return {series: all, left: []};
	if (chart === "heat")
		return {series: all.slice(0, max), left: all.slice(max).map((s) => s.name)};
	const rest = {name: "other (" + (all.length - max + 1) + ")", values: new Float64Array(n).fill(NaN), sum: 0};

	for (const s of all.slice(max - 1)) {
		rest.sum += s.sum;
		s.values.forEach((v, i) => { if (!Number.isNaN(v)) rest.values[i] = (rest.values[i] || 0) + v; });
	}
	return {series: [...all.slice(0, max - 1), rest], left: []};
}

/* Assigns one of the ten colours to each series: a name keeps its colour while a panel shows it.
 * 'kept' has the previous assignment. */
function colourOf(kept, series) {
	const names = new Set(series.map((s) => s.name));

	for (const name of kept.keys())
		if (!names.has(name))
			kept.delete(name);
	for (const {name} of series) {
		const used = new Set(kept.values());

		if (!kept.has(name))
			kept.set(name, [...Array(10).keys()].find((k) => !used.has(k)) ?? kept.size % 10);
	}
	return series.map((s) => kept.get(s.name));
}

function colours() {
	const style = getComputedStyle(document.documentElement), get = (name) => style.getPropertyValue(name).trim();

	return {fg: get("--fg"), muted: get("--muted"), grid: get("--grid"), rule: get("--rule"), card: get("--card"), fault: get("--fault"), area: get("--fault-area"),
		verdict: get("--verdict"), select: get("--select"), heat: get("--heat"), series: Array.from({length: 10}, (_, i) => get("--c" + i))};
}

/* The largest drawn value; for stacked series the largest sum. */
function highest(chart) {
	const stacked = chart.kind === "area" || chart.kind === "bars", sums = new Float64Array(chart.data.n);
	let high = 0;

	for (const s of chart.data.series) {
		if (chart.hidden.has(s.name))
			continue;
		for (let i = 0; i < s.values.length; i++) {
			const v = s.values[i];

			if (Number.isNaN(v))
				continue;
			sums[i] += v;
			high = Math.max(high, stacked ? sums[i] : v);
		}
	}
	return high;
}

function lowestAbove(chart) {
	let low = Infinity;

	for (const s of chart.data.series)
		if (!chart.hidden.has(s.name))
			for (const v of s.values)
				if (v > 0 && v < low)
					low = v;
	return low;
}
