"use strict";
/* The run: tracks, their lanes, slices in columns, arrows. A slice is identified by its position
 * in the columns. */

const KINDS = ["cluster", "node", "process", "thread", "layer"];
const MARKS = ["fault", "verdict", "trigger", "phase"];
const LINKS = ["exact", "by thread", "by content"];
const FAILED = 1, UNFINISHED = 2, DOUBTFUL = 4, SUM = 8;
const LANES_MAX = 256;

let index = JSON.parse(document.getElementById("index").textContent);
const model = {words: []};

function word(i) {
	return model.words[i] ?? "";
}

function readTracks() {
	let lane = 0, at = 0;
	const from = [];

	model.tracks = index.tracks.map(([parent, kind, name, counts], id) => {
		const track = {id, parent, kind, name: word(name), children: [], counters: [], firstLane: lane, lanes: counts.length, from: at};

		for (const n of counts) {
			from.push(at);
			at += n;
		}
		lane += counts.length;
		track.to = at;
		return track;
	});
	from.push(at);
	model.laneFrom = Uint32Array.from(from);
	model.roots = [];
	for (const t of model.tracks)
		(t.parent < 0 ? model.roots : model.tracks[t.parent].children).push(t);
	model.laneTrack = new Uint32Array(lane);
	for (const t of model.tracks)
		model.laneTrack.fill(t.id, t.firstLane, t.firstLane + t.lanes);
}

function readKinds() {
	const k = index.kinds, n = k.length / 4, categories = new Map();

	for (const w of index.categories || [])
		categories.set(w, categories.size);
	model.kindName = new Int32Array(n);
	model.kindCategory = new Uint32Array(n);
	model.kindFlags = new Uint8Array(n);
	model.kindShape = new Uint32Array(n);
	for (let i = 0; i < n; i++) {
		if (!categories.has(k[4 * i + 1]))
			categories.set(k[4 * i + 1], categories.size);
		model.kindName[i] = k[4 * i] - 1;
		model.kindCategory[i] = categories.get(k[4 * i + 1]);
		model.kindFlags[i] = k[4 * i + 2];
		model.kindShape[i] = k[4 * i + 3];
	}
	model.categories = [...categories.keys()].map((w, i) => ({id: i, name: word(w), shown: true, n: 0, busy: 0}));
}

function readSlices(starts, durations, kinds) {
	const s = new Numbers(starts), d = new Numbers(durations), k = new Numbers(kinds), n = model.n;

	model.start = new Float64Array(n);
	model.duration = new Float64Array(n);
	model.kind = model.kindName.length > 65535 ? new Uint32Array(n) : new Uint16Array(n);
	for (let lane = 0; lane < model.laneTrack.length; lane++) {
		const track = model.tracks[model.laneTrack[lane]], overlaps = lane - track.firstLane === LANES_MAX - 1;
		let last = 0;

		for (let i = model.laneFrom[lane]; i < model.laneFrom[lane + 1]; i++) {
			const start = last + s.next(), duration = d.next();

			model.start[i] = start;
			model.duration[i] = duration;
			model.kind[i] = k.next();
			last = overlaps ? start : start + duration;
		}
	}
}

/* Sums of short slices: number and total duration of each. */
function readSums(bytes) {
	const r = new Numbers(bytes), at = model.sumAt = new Uint32Array(index.sums);

	model.sumN = new Float64Array(index.sums);
	model.sumBusy = new Float64Array(index.sums);
	for (let i = 0, k = 0; i < model.n && k < index.sums; i++)
		if (model.kindFlags[model.kind[i]] & SUM) {
			at[k] = i;
			model.sumN[k] = r.next();
			model.sumBusy[k++] = r.next();
		}
}

/* Arrows are sorted by origin; 'intoOrder' has them by destination. */
function readArrows(bytes) {
	const r = new Numbers(bytes), n = index.arrows;
	const from = model.arrowFrom = new Uint32Array(n), to = model.arrowTo = new Uint32Array(n);
	const into = model.intoFirst = new Uint32Array(model.n + 1), out = model.outFirst = new Uint32Array(model.n + 1);

	model.arrowLink = new Uint8Array(n);
	for (let i = 0, last = 0; i < n; i++) {
		const coded = r.next();

		model.arrowLink[i] = coded % 3;
		from[i] = last += Math.floor(coded / 3);
		to[i] = r.delta();
		out[from[i] + 1]++;
		into[to[i] + 1]++;
	}
	for (let i = 0; i < model.n; i++) {
		out[i + 1] += out[i];
		into[i + 1] += into[i];
	}
	const free = into.slice();

	model.intoOrder = new Uint32Array(n);
	for (let i = 0; i < n; i++)
		model.intoOrder[free[to[i]]++] = i;
}

function readMarks() {
	model.marks = index.marks.map(([kind, track, from, to, text]) => ({kind, track, from, to, text: word(text)}));
	model.table = (index.table || []).map((row) => row.map(word));
	model.notes = index.notes.map(([term, text]) => [word(term), word(text)]);
}

/* First position in [a, b) at which 'values' is at least 'x' (with 'above': more than 'x'). */
function firstFrom(values, x, a, b, above) {
	while (a < b) {
		const middle = (a + b) >>> 1;

		if (values[middle] < x || above && values[middle] === x)
			a = middle + 1;
		else
			b = middle;
	}
	return a;
}

function sumIndex(i) {
	return firstFrom(model.sumAt, i, 0, model.sumAt.length);
}

function isSum(i) {
	return (model.kindFlags[model.kind[i]] & SUM) !== 0;
}

/* Total duration of the slices that 'i' represents. */
function busyOf(i) {
	return isSum(i) ? model.sumBusy[sumIndex(i)] : model.duration[i];
}

function laneOf(i) {
	return firstFrom(model.laneFrom, i, 0, model.laneFrom.length, true) - 1;
}

function trackOf(i) {
	return model.tracks[model.laneTrack[laneOf(i)]];
}

function categoryOf(i) {
	return model.categories[model.kindCategory[model.kind[i]]];
}

function nameOf(i) {
	if (isSum(i))
		return plural(model.sumN[sumIndex(i)].toLocaleString("en"), "slice") + " of " + (categoryOf(i).name || "no category");
	return word(model.kindName[model.kind[i]]);
}

/* First slice of a lane that ends after 't'. In the last lane slices may overlap, so it is
 * searched linearly. */
function firstEndingAfter(lane, t) {
	const overlaps = lane - model.tracks[model.laneTrack[lane]].firstLane === LANES_MAX - 1;
	let a = model.laneFrom[lane], b = model.laneFrom[lane + 1];

	if (overlaps) {
		while (a < b && model.start[a] + model.duration[a] <= t)
			a++;
		return a;
	}
	while (a < b) {
		const middle = (a + b) >>> 1;

		if (model.start[middle] + model.duration[middle] <= t)
			a = middle + 1;
		else
			b = middle;
	}
	return a;
}

/* Queries of drawing and tables about ranges of visible slices: the longest, and the total time. Each level of the
 * pyramid has the longest of sixteen entries below. */
const FAN = 16;

function buildPyramid() {
	const shown = Uint8Array.from(model.kindCategory, (c) => Number(model.categories[c].shown));
	const busy = model.busyBefore ||= new Float64Array(model.n + 1), weights = model.weights ||= new Float32Array(model.n);
	let sum = 0, k = 0;

	for (let i = 0; i < model.n; i++) {
		const isShown = shown[model.kind[i]];
		let d = model.duration[i], each = d;

		if (model.sumAt[k] === i) {
			d = model.sumBusy[k];
			each = d / model.sumN[k++];
		}
		busy[i] = sum;
		if (isShown)
			sum += d;
		weights[i] = isShown ? each : -1;
	}
	busy[model.n] = sum;
	model.kindShown = shown;
	model.levels = [];
	for (let below = null, n = model.n; n > 1;) {
		const size = Math.ceil(n / FAN), level = new Uint32Array(size);

		for (let i = 0; i < size; i++) {
			let best = below ? below[i * FAN] : i * FAN;

			for (let j = i * FAN + 1, end = Math.min(n, (i + 1) * FAN); j < end; j++) {
				const other = below ? below[j] : j;

				if (weights[other] > weights[best])
					best = other;
			}
			level[i] = best;
		}
		model.levels.push(level);
		below = level;
		n = size;
	}
}

/* The duration, for a sum the mean; -1 if its category is hidden. */
function weight(i) {
	return model.weights[i];
}

function longer(a, b) {
	return weight(b) > weight(a) ? b : a;
}

/* The longest visible slice of [a, b), which is not empty. */
function longestOf(a, b) {
	let best = a, level = -1;

	for (;;) {
		const from = level < 0 ? null : model.levels[level];

		while (a < b && a % FAN) {
			best = longer(best, from ? from[a] : a);
			a++;
		}
		while (b > a && b % FAN) {
			b--;
			best = longer(best, from ? from[b] : b);
		}
		if (a >= b)
			return best;
		a /= FAN;
		b /= FAN;
		level++;
		if (level === model.levels.length)
			return best;
	}
}

function countCategories() {
	for (const c of model.categories)
		c.n = c.busy = 0;
	for (let i = 0, k = 0; i < model.n; i++) {
		const c = model.categories[model.kindCategory[model.kind[i]]];

		if (model.sumAt[k] === i) {
			c.n += model.sumN[k];
			c.busy += model.sumBusy[k++];
		} else {
			c.n++;
			c.busy += model.duration[i];
		}
	}
}

/* Arguments are decoded on first use: [key, value text] of slice 'i'. */
function argumentsOf(i) {
	const shape = model.kindShape[model.kind[i]];

	if (!shape)
		return [];
	readArguments();
	const row = model.argRow[i];

	return model.shapes[shape].map((column) => {
		const value = column.values[row];

		return [column.key, column.isText ? word(Number(value)) : value];
	});
}

function readArguments() {
	if (model.shapes)
		return;
	const r = new Numbers(model.argBytes);

	model.argBytes = null;
	model.shapes = index.shapes.map(([n, ...columns], shape) => {
		const path = [];

		for (let s = shape; s > 0; s = index.shape_tree[s - 1][0])
			path.unshift(index.shape_tree[s - 1]);
		return columns.map((coded, i) => ({key: word(path[i][1]), isText: path[i][2] === 1, values: readColumn(r, n, coded)}));
	});
	const rows = new Uint32Array(model.shapes.length);

	model.argRow = new Uint32Array(model.n);
	for (let i = 0; i < model.n; i++)
		model.argRow[i] = rows[model.kindShape[model.kind[i]]]++;
}

/* 'coded': twice the column's bytes, and 1 if its numbers need 64 bits. */
function readColumn(r, n, coded) {
	const column = new Numbers(r.bytes.subarray(r.at, r.at + Math.floor(coded / 2)));

	r.at += Math.floor(coded / 2);
	return coded % 2 ? column.bigDeltas(n) : Float64Array.from({length: n}, () => column.delta());
}

/* Reads the index and its blocks; replaces all previous data. */
async function loadModel() {
	const [words, starts, durations, kinds, sums, args, arrows, counters] = await Promise.all(
		["words", "starts", "durations", "kinds", "sums", "args", "arrows", "counters"].map(unpacked));

	for (const key of Object.keys(model))
		delete model[key];
	Object.assign(model, {n: index.slices, span: Math.max(1, index.span_ns), origin: BigInt(index.origin_ns)});
	/* Characters that change the text direction would affect neighbouring text. */
	model.words = new TextDecoder().decode(words).replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd").split("\n");
	readTracks();
	readKinds();
	readSlices(starts, durations, kinds);
	readSums(sums);
	readArrows(arrows);
	readCounters(counters);
	readMarks();
	model.argBytes = args;
	countCategories();
	buildPyramid();
}
