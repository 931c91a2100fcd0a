"use strict";
/* Times and values as text. */

const UNITS = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];

/* Nanoseconds as a duration with four digits: "12.34 ms". */
function inTime(ns) {
	const a = Math.abs(ns);
	let unit = UNITS[0];

	for (const u of UNITS)
		if (a >= u[0])
			unit = u;
	if (a >= 1e14)
		return digits(ns / 8.64e13, 5) + " days";
	return digits(ns / unit[0], 4) + " " + unit[1];
}

/* A time of the run, with the precision for steps of 'step' ns: "3.204 15 s". */
function atTime(ns, step) {
	const places = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(Math.max(1, step)))));

	return (ns / 1e9).toFixed(places) + " s";
}

/* The same as wall-clock time: "2026-11-22 13:35:08.123456789 UTC". */
function byClock(ns) {
	const all = model.origin + BigInt(Math.round(ns)), ms = Number(all / 1000000n) - (all < 0n ? 1 : 0);
	const date = new Date(ms), left = ((all % 1000000000n) + 1000000000n) % 1000000000n;

	if (!Number.isFinite(date.getTime()))
		return all + " ns";
	return date.toISOString().slice(0, 19).replace("T", " ") + "." + String(left).padStart(9, "0") + " UTC";
}

/* Formats the value of an argument according to the ending of its key. */
function argumentText(key, value) {
	if (typeof value === "string")
		return value;
	if (/_ns$/.test(key))
		return inTime(Number(value));
	const exact = value.toLocaleString("en");

	return /_bytes$/.test(key) && value >= 1024 ? bytes(Number(value)) + " (" + exact + ")" : exact;
}

function flagWords(i) {
	const flags = model.kindFlags[model.kind[i]], out = [];

	if (flags & FAILED)
		out.push("failed");
	if (flags & UNFINISHED)
		out.push("its end was not seen");
	if (flags & DOUBTFUL)
		out.push("doubtful clock");
	return out;
}

function pathOf(track) {
	const names = [];

	for (let t = track; t; t = model.tracks[t.parent])
		names.unshift(t.name || KINDS[t.kind]);
	return names.join(" › ");
}

/* [term, text] of all facts about a slice except its arrows. */
function factsOf(i) {
	const facts = [["on", pathOf(trackOf(i))], ["category", categoryOf(i).name],
		["start", atTime(model.start[i], 1) + "  (" + byClock(model.start[i]) + ")"],
		["end", atTime(model.start[i] + model.duration[i], 1)], ["duration", inTime(model.duration[i])]];

	if (isSum(i))
		facts.push(["in all", inTime(busyOf(i)) + ", " + inTime(busyOf(i) / model.sumN[sumIndex(i)]) + " each on average"]);
	for (const [key, value] of argumentsOf(i))
		facts.push([key.replace(/_(ns|bytes)$/, ""), argumentText(key, value)]);
	for (const w of flagWords(i))
		facts.push(["note", w]);
	return facts;
}
