"use strict";
/* The categories with their colours; a click hides or shows one; with Alt, or twice, shows only
 * that one. */

function drawLegend() {
	const order = model.categories.filter((c) => c.n).sort((a, b) => b.busy - a.busy || a.id - b.id);

	fill("legend", order.map((c) => {
		const swatch = el("span.swatch", {"aria-hidden": "true"});

		swatch.style.background = colourOfCategory(c);
		return el("button.chip", {type: "button", "aria-pressed": String(c.shown), "data-category": c.id,
			title: c.n.toLocaleString("en") + " slices, " + inTime(c.busy) + " in all. Click: hide or show; Alt-click: show only this",
			onclick: (event) => filterBy(c, event.altKey), ondblclick: () => filterBy(c, true)}, swatch, c.name || "no category",
		el("span.n", null, shortCount(c.n)));
	}), model.categories.some((c) => !c.shown) ? el("button", {type: "button", id: "all-categories", onclick: showAllCategories}, "Show all") : null);
}

function shortCount(n) {
	return n >= 1e6 ? digits(n / 1e6, 3) + " M" : n >= 1e4 ? digits(n / 1e3, 3) + " k" : String(n);
}

function filterBy(category, alone) {
	if (alone)
		for (const c of model.categories)
			c.shown = c === category;
	else
		category.shown = !category.shown;
	filtersChanged(category.id);
}

function showAllCategories() {
	for (const c of model.categories)
		c.shown = true;
	filtersChanged(null);
}

function filtersChanged(focus) {
	buildPyramid();
	view.overview = null;
	drawLegend();
	if (focus !== null)
		document.querySelector('.chip[data-category="' + focus + '"]')?.focus({preventScroll: true});
	viewChanged();
}
