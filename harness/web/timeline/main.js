"use strict";
/* Reads the run and draws it. */

function resized() {
	byId("scrolled").style.height = rowsHeight + "px";
	measure();
	view.scroll = byId("rows").scrollTop;
	redraw();
}

function coloursChanged() {
	readPalette();
	drawLegend();
	drawPanel();
	redraw();
}

/* Text above the drawing. */
function sayWhatIsMissing() {
	const lines = model.notes.filter(([term]) => /(^|, )missing$/.test(term)).map(([term, text]) => term + ": " + text + ".");

	if (index.summed)
		lines.push("Of " + (model.n - index.sums + index.summed).toLocaleString("en") + " slices, all of " + inTime(index.least_ns) +
			" or more are shown one by one; shorter ones as sums. “About” says more.");
	fill("trouble", lines.map((line) => el("div", null, line))).hidden = !lines.length;
}

/* Applies the run's own settings. */
function firstView() {
	if (index.all_arrows_shown)
		byId("hops").value = view.hops = "every";
	if (index.about_shown)
		tab = "run";
}

async function start() {
	const isLive = index.live;

	if (isLive)
		await firstRun();
	else
		await loadModel();
	fill("title", word(index.title) || "Timeline");
	firstPanes();
	firstView();
	measure();
	foldAtFirst();
	layOut();
	findWhole();
	readPalette();
	drawThemes(coloursChanged);
	drawLegend();
	startLabels();
	startSearch();
	startPanes();
	startInput();
	measure();
	resized();
	readLink();
	byId("rows").addEventListener("scroll", () => {
		view.scroll = byId("rows").scrollTop;
		redraw();
	});
	new ResizeObserver(resized).observe(byId("rows"));
	window.addEventListener("hashchange", readLink);
	sayWhatIsMissing();
	if (isLive)
		startLive();
	drawNow();
	view.openedMs = performance.now(); /* since the page was requested */
	document.documentElement.dataset.ready = "true";
}

start().catch((why) => {
	fill("trouble", "This timeline cannot be shown: " + why.message).hidden = false;
	document.documentElement.dataset.ready = "failed";
	throw why;
});
