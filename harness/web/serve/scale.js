"use strict";
/* Axes: round numbers, formatted with their unit. */

function inUnit(v, unit) {
	if (v === null || v === undefined || !Number.isFinite(v))
		return "-";
	if (unit === "s")
		return duration(v);
	if (/^B(\/s)?$/.test(unit || ""))
		return bytes(v) + unit.slice(1);
	return digits(v, Math.abs(v) < 1 ? 3 : 4);
}

/* Round values from 'low' to 'high', about 'n' of them. */
function ticks(low, high, n) {
	const rough = (high - low) / Math.max(1, n), power = 10 ** Math.floor(Math.log10(rough)), f = rough / power;
	const step = (f <= 1 ? 1 : f <= 2 ? 2 : f <= 5 ? 5 : 10) * power, out = [];

	if (!Number.isFinite(step) || step <= 0)
		return [low];
	for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
		out.push(i * step);
	return out;
}

function logTicks(low, high, most) {
	const out = [], a = Math.ceil(Math.log10(low) - 1e-9), b = Math.floor(Math.log10(high) + 1e-9), skip = Math.max(1, Math.ceil((b - a + 1) / most));

	for (let i = a; i <= b; i += skip)
		out.push(10 ** i);
	return out;
}

/* Byte sizes are rounded to powers of two. */
function byteTicks(high, n) {
	let step = 2 ** Math.ceil(Math.log2(Math.max(1, high / n)));
	const out = [];

	for (let v = 0; v <= high; v += step)
		out.push(v);
	return out;
}

/* A time with enough digits to distinguish it from its neighbours, 'step' seconds away. */
function moment(t, step) {
	const places = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step || 1) - 1e-9)));

	return t.toFixed(places) + " s";
}
