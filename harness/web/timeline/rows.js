"use strict";
/* The rows from top to bottom: for each pane its head, then its tracks, folded or not. */

const ROW = {head: 22, track: 20, lane: 16, counter: 34, area: 26};
const OPEN_LANES = 6;

/* A pane shows the tracks below 'root' (null: all), shifted by 'offset' ns. */
const panes = [];
let rows = [], rowOfTrack = [], rowsHeight = 0;

function within(track, root) {
	for (let t = track; t; t = model.tracks[t.parent])
		if (t === root)
			return true;
	return root === null;
}

/* The time range of everything below 'root'. */
function spanOf(root) {
	let from = Infinity, to = -Infinity;

	for (const t of model.tracks) {
		if (!within(t, root))
			continue;
		for (let l = t.firstLane; l < t.firstLane + t.lanes; l++) {
			const a = model.laneFrom[l], b = model.laneFrom[l + 1];

			if (a < b) {
				from = Math.min(from, model.start[a]);
				to = Math.max(to, model.start[b - 1] + model.duration[b - 1]);
			}
		}
		for (const c of t.counters)
			if (c.times.length) {
				from = Math.min(from, c.times[0]);
				to = Math.max(to, c.times[c.times.length - 1]);
			}
	}
	return from <= to ? {from, to} : {from: 0, to: model.span};
}

/* A tree not much larger than the window is unfolded; otherwise processes are folded, then layers of several tracks, and
in large clusters nodes. Tracks affected by a fault or a verdict are unfolded again while there is room. */
function foldAtFirst() {
	const fits = () => {
		layOut();
		return rowsHeight <= (panes.length > 1 ? 1.2 : 2) * Math.max(400, view.height);
	};

	for (const t of model.tracks)
		t.open = t.lanes <= OPEN_LANES || t.children.length > 0;
	for (const kind of [2, 4, 1]) {
		if (fits())
			break;
		for (const t of model.tracks)
			if (t.kind === kind && t.children.length)
				t.open = false;
	}
	for (const {kind, track} of model.marks) {
		const node = model.tracks[track];

		if (kind === MARKS.indexOf("phase") || !node || node.open || node.kind !== KINDS.indexOf("node"))
			continue;
		node.open = true;
		node.open = fits();
	}
	layOut();
}

function addTrack(pane, track, depth) {
	const lanes = track.open ? track.lanes : 0, area = !track.open && (track.lanes > 1 || track.children.length > 0);
	const single = !track.open && track.lanes === 1 && !track.children.length ? 1 : lanes;

	rows.push({pane, track, depth, lanes: single, area,
		height: area ? ROW.area : single > 1 ? single * ROW.lane + 4 : ROW.track});
	rowOfTrack[pane.id].set(track, rows.length - 1);
	for (const counter of track.counters)
		if (track.open || !track.children.length)
			rows.push({pane, track, depth: depth + 1, counter, lanes: 0, height: ROW.counter});
	if (track.open)
		for (const child of track.children)
			addTrack(pane, child, depth + 1);
}

function layOut() {
	let top = 0;

	rows = [];
	rowOfTrack = panes.map(() => new Map());
	for (const pane of panes) {
		rows.push({pane, head: true, depth: 0, lanes: 0, height: ROW.head});
		for (const counter of model.counters)
			if (counter.track < 0 && pane.id === 0)
				rows.push({pane, track: null, depth: 0, counter, lanes: 0, height: ROW.counter});
		for (const root of pane.root ? [pane.root] : model.roots)
			addTrack(pane, root, 0);
	}
	for (const row of rows) {
		row.top = top;
		top += row.height;
	}
	rowsHeight = top;
}

/* The row that shows a track in a pane: its own, or that of its folded ancestor. */
function rowShowing(track, pane) {
	for (let t = track; t; t = model.tracks[t.parent]) {
		const i = rowOfTrack[pane.id].get(t);

		if (i !== undefined)
			return rows[i];
	}
	return null;
}

/* All lanes of a track and its descendants: [first, last) pairs are contiguous only per track. */
function lanesBelow(track) {
	if (!track.allLanes) {
		const out = [], walk = (t) => {
			for (let l = t.firstLane; l < t.firstLane + t.lanes; l++)
				out.push(l);
			t.children.forEach(walk);
		};

		walk(track);
		track.allLanes = out;
	}
	return track.allLanes;
}

function unfoldTo(track) {
	for (let t = model.tracks[track.parent]; t; t = model.tracks[t.parent])
		t.open = true;
	if (track.lanes > 1)
		track.open = true;
}

/* Two runs in one file are shown one above the other, each from its own start. */
function firstPanes() {
	const clusters = model.roots.filter((t) => t.kind === 0), [top, bottom] = (index.panes || []).map((id) => model.tracks[id]);

	panes.length = 0;
	if (top && bottom)
		panes.push({id: 0, root: top, offset: 0}, {id: 1, root: bottom, offset: 0});
	else if (clusters.length === 2 && model.roots.length === 2)
		clusters.forEach((root, id) => panes.push({id, root, offset: -spanOf(root).from}));
	else
		panes.push({id: 0, root: null, offset: 0});
}
