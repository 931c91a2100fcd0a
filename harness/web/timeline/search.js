"use strict";
/* Finds slices by part of their name, category or track name; other slices are drawn faintly. */

function searchFor(text) {
	const wanted = text.trim().toLowerCase();

	view.found = null;
	byId("found").textContent = "";
	if (wanted && model.n) {
		const kinds = Uint8Array.from(model.kind.length ? model.kindName : [], (name, k) => {
			const category = model.categories[model.kindCategory[k]].name;

			return Number((name >= 0 && word(name).toLowerCase().includes(wanted)) || category.toLowerCase().includes(wanted));
		});
		const tracks = model.tracks.filter((t) => t.name.toLowerCase().includes(wanted));
		let n = 0;

		for (let i = 0; i < model.n; i++)
			n += kinds[model.kind[i]];
		view.found = {kinds, n, tracks, text: wanted, track: -1};
		byId("found").textContent = foundText(n, tracks.length);
		if (!n && tracks.length)
			view.found.kinds.fill(1);
	}
	redraw();
}

function foundText(n, tracks) {
	const parts = [];

	if (n)
		parts.push(n.toLocaleString("en") + (n === 1 ? " slice" : " slices"));
	if (tracks)
		parts.push(plural(tracks, "track"));
	return parts.join(", ") || "nothing";
}

/* The next match in time after (or before) the selected slice; if only tracks match, the next
 * track. */
function nextFound(back) {
	const f = view.found;

	if (!f)
		return;
	if (!f.n) {
		nextTrack(f, back);
		return;
	}
	const at = view.selected >= 0 ? {t: model.start[view.selected], i: view.selected} : {t: back ? Infinity : -Infinity, i: -1};
	let best = -1, first = -1;
	const before = (i, k) => model.start[i] < model.start[k] || model.start[i] === model.start[k] && i < k;
	const later = (i) => model.start[i] > at.t || model.start[i] === at.t && i > at.i;

	for (let i = 0; i < model.n; i++) {
		if (!f.kinds[model.kind[i]] || !model.kindShown[model.kind[i]] || i === at.i)
			continue;
		if (first < 0 || (back ? before(first, i) : before(i, first)))
			first = i;
		if (later(i) !== Boolean(back) && (best < 0 || (back ? before(best, i) : before(i, best))))
			best = i;
	}
	if (best < 0)
		best = first;
	if (best >= 0)
		select(best, true);
}

function nextTrack(f, back) {
	if (!f.tracks.length)
		return;
	f.track = (f.track + (back ? -1 : 1) + f.tracks.length) % f.tracks.length;
	const track = f.tracks[f.track];

	unfoldTo(track);
	layOut();
	resized();
	const row = rowShowing(track, panes.find((p) => within(track, p.root)) || panes[0]);

	if (row)
		byId("rows").scrollTop = row.top - 20;
}

function startSearch() {
	const box = byId("search");
	let timer = 0;

	box.addEventListener("input", () => {
		clearTimeout(timer);
		timer = setTimeout(() => searchFor(box.value), 120);
	});
	box.addEventListener("keydown", (event) => {
		if (event.key === "Enter") {
			clearTimeout(timer);
			if (view.found?.text !== box.value.trim().toLowerCase())
				searchFor(box.value);
			nextFound(event.shiftKey);
			event.preventDefault();
		} else if (event.key === "Escape") {
			box.value = "";
			searchFor("");
			byId("canvas").focus();
		}
		event.stopPropagation();
	});
}
