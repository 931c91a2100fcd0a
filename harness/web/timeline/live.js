"use strict";
/* A page served by a running program: polls the run once a second, and keeps the user's view. */

const live = {blocks: null, generation: 0, paused: false};
const LIVE_EVERY_MS = 1000, LIVE_RETRY_MS = 5000;

/* The run's current state: {generation, index, blocks}, or null if unchanged. */
async function fetchRun() {
	const answer = await fetch("data" + location.search + "&have=" + live.generation, {cache: "no-store"});

	if (answer.status === 204)
		return null;
	if (!answer.ok)
		throw new Error("the program answers " + answer.status);
	return answer.json();
}

/* The user's choices, by name: numbers of tracks and slices change with the next data. */
function remember() {
	const whole = view.t1 - view.t0 > .98 * (view.whole.to - view.whole.from);

	return {origin: model.origin, t0: view.t0, t1: view.t1, whole, follows: whole || view.t1 >= view.whole.to - 1,
		open: new Map(model.tracks.map((t) => [pathOf(t), t.open])),
		hidden: new Set(model.categories.filter((c) => !c.shown).map((c) => c.name)),
		panes: panes.map((p) => ({path: p.root && pathOf(p.root), offset: p.offset})),
		selected: view.selected < 0 ? null : {path: pathOf(trackOf(view.selected)), at: model.origin + BigInt(model.start[view.selected])}};
}

function byPath(path) {
	return model.tracks.find((t) => pathOf(t) === path) || null;
}

function recall(kept) {
	const shift = Number(kept.origin - model.origin);

	panes.length = 0;
	kept.panes.forEach((p, id) => panes.push({id, root: p.path === null ? null : byPath(p.path), offset: p.offset}));
	foldAtFirst();
	for (const t of model.tracks)
		t.open = kept.open.get(pathOf(t)) ?? t.open;
	for (const c of model.categories)
		c.shown = !kept.hidden.has(c.name);
	buildPyramid();
	const track = kept.selected && byPath(kept.selected.path);

	view.selected = track ? sliceAt(track.id, Number(kept.selected.at - model.origin)) : -1;
	view.hovered = -1;
	view.overview = null;
	layOut();
	findWhole();
	resized();
	if (kept.whole)
		lookAtAll();
	else if (kept.follows)
		lookAt(view.whole.to - (kept.t1 - kept.t0), view.whole.to);
	else
		lookAt(kept.t0 + shift, kept.t1 + shift);
}

async function show(run) {
	const kept = live.generation ? remember() : null;

	index = run.index;
	live.blocks = run.blocks;
	await loadModel();
	live.blocks = null;
	live.generation = run.generation;
	if (!kept)
		return;
	recall(kept);
	fill("title", word(index.title) || "Timeline");
	searchFor(byId("search").value);
	drawLegend();
	if (!byId("panel").contains(document.activeElement))
		drawPanel();
}

/* Until the page is closed; a program that has ended is polled less often. */
async function listen() {
	let wait = LIVE_EVERY_MS;

	try {
		const run = live.paused || document.hidden ? null : await fetchRun();

		if (run)
			await show(run);
		sayWhatIsMissing();
	} catch (why) {
		wait = LIVE_RETRY_MS;
		fill("trouble", "The run is no longer reported (" + why.message + "); this is its last state.").hidden = false;
	}
	setTimeout(listen, wait);
}

/* Waits for the first data of a live page. */
async function firstRun() {
	for (;;) {
		const run = await fetchRun();

		if (run) {
			await show(run);
			return;
		}
		fill("trouble", "Waiting for the first requests.").hidden = false;
		await new Promise((done) => setTimeout(done, LIVE_EVERY_MS));
	}
}

function startLive() {
	const button = el("button", {type: "button", id: "pause", "aria-pressed": "false", title: "Stop following the run; the run continues"}, "Pause");

	button.addEventListener("click", () => {
		live.paused = !live.paused;
		button.setAttribute("aria-pressed", String(live.paused));
		button.textContent = live.paused ? "Resume" : "Pause";
	});
	byId("compare").before(button);
	setTimeout(listen, LIVE_EVERY_MS);
}
