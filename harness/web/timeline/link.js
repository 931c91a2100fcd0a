"use strict";
/* The address holds the view: #t=START,LENGTH in seconds of the run, and the selected slice as
 * &s=TRACK,START_NS. */

let written = null;

function writeLink() {
	const exact = (ns) => (ns / 1e9).toFixed(9).replace(/\.?0+$/, "");
	let text = "#t=" + exact(view.t0) + "," + exact(view.t1 - view.t0);

	if (view.selected >= 0)
		text += "&s=" + trackOf(view.selected).id + "," + model.start[view.selected];
	if (text === written)
		return;
	written = text;
	try {
		history.replaceState(null, "", text);
	} catch {
		/* some browsers limit the rate; the next change writes it */
	}
}

/* The longest slice of a track that starts at this time; -1: none. */
function sliceAt(trackId, start) {
	const track = model.tracks[trackId];
	let best = -1;

	for (let l = track ? track.firstLane : 0; track && l < track.firstLane + track.lanes; l++) {
		const i = firstFrom(model.start, start, model.laneFrom[l], model.laneFrom[l + 1]);

		if (i < model.laneFrom[l + 1] && model.start[i] === start && (best < 0 || model.duration[i] > model.duration[best]))
			best = i;
	}
	return best;
}

/* "#t=12.5" shows a hundredth of the run around that second, "#t=12.5,0.2" the period that begins
 * there. */
function readLink() {
	const parts = new URLSearchParams(location.hash.slice(1)), t = (parts.get("t") || "").split(",").map(parseFloat);
	const s = (parts.get("s") || "").split(",").map(Number);

	if (location.hash === written)
		return;
	if (s.length === 2 && sliceAt(s[0], s[1]) >= 0) {
		view.selected = sliceAt(s[0], s[1]);
		unfoldTo(trackOf(view.selected));
		layOut();
		resized();
		tab = "selection";
	}
	if (Number.isFinite(t[0]) && t[1] > 0)
		lookAt(t[0] * 1e9, (t[0] + t[1]) * 1e9);
	else if (Number.isFinite(t[0]))
		lookAt(t[0] * 1e9 - model.span / 200, t[0] * 1e9 + model.span / 200);
	else if (view.selected >= 0)
		lookAtSlice(view.selected, true);
	else
		lookAtAll();
	showTab(tab);
	if (view.selected >= 0)
		scrollToSlice(view.selected);
}
