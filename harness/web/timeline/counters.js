"use strict";
/* Counters: step functions of time. Those with the same name and unit share a scale, so that
 * servers can be compared. */

function readCounters(bytes) {
	const r = new Numbers(bytes), scales = new Map();

	model.counters = index.counters.map(([track, name, unit, n, whole], id) => {
		const times = new Float64Array(n);

		r.last = 0;
		for (let i = 0; i < n; i++)
			times[i] = r.delta();
		r.last = 0;
		const values = whole ? Float64Array.from({length: n}, () => r.delta()) : r.doubles(n);
		const c = {id, track, name: word(name), unit: word(unit), times, values}, key = name + " " + unit;

		if (!scales.has(key))
			scales.set(key, {least: 0, most: 0});
		c.scale = scales.get(key);
		for (const v of values) {
			if (v > c.scale.most)
				c.scale.most = v;
			if (v < c.scale.least)
				c.scale.least = v;
		}
		if (track >= 0)
			model.tracks[track].counters.push(c);
		return c;
	});
}

/* The value at a time, or NaN. */
function counterAt(c, t) {
	const i = firstFrom(c.times, t, 0, c.times.length, true);

	return i ? c.values[i - 1] : NaN;
}

/* For each of 'width' columns from t0, 'step' ns each: minimum and maximum of the value, NaN if
 * unknown. */
function counterColumns(c, t0, step, width) {
	const least = new Float64Array(width).fill(NaN), most = new Float64Array(width).fill(NaN);
	let i = firstFrom(c.times, t0, 0, c.times.length, true), held = i ? c.values[i - 1] : NaN;

	for (let x = 0; x < width; x++) {
		const end = t0 + (x + 1) * step;
		let a = held, b = held;

		for (; i < c.times.length && c.times[i] < end; i++) {
			held = c.values[i];
			if (!(a <= held))
				a = held;
			if (!(b >= held))
				b = held;
		}
		least[x] = a;
		most[x] = b;
	}
	return {least, most};
}
