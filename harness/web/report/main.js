"use strict";
/* Assembles the page; printing. */

const printing = window.matchMedia("print");

drawHead();
drawMatrix();
drawRunCharts();
drawCompared();
drawCells();
drawUnscored();
drawDoses();
drawOverhead();
drawProvenance();
drawNulls();
drawThemes(() => drawCharts());
printing.addEventListener("change", () => drawCharts());

/* Opened cells are printed with the evidence of their verdicts. */
let folded = [];
window.addEventListener("beforeprint", () => {
	folded = [...document.querySelectorAll(".verdicts details:not([open])")];
	folded.forEach((d) => { d.open = true; });
	drawCharts();
	drawPlots();
});
window.addEventListener("afterprint", () => folded.forEach((d) => { d.open = false; }));

let resized = 0;
window.addEventListener("resize", () => {
	clearTimeout(resized);
	resized = setTimeout(() => {
		drawCharts();
		drawPlots();
	}, 100);
});

/* #cell-12 opens that cell; #all opens all cells; #print also unpacks them, for a complete
 * printout. */
async function followFragment() {
	const r = rows_of_cells.find((x) => "#" + x.button.id === location.hash);

	if (location.hash === "#all" || location.hash === "#print")
		await openAll(true, location.hash === "#print");
	else if (r) {
		openCell(r, true);
		await fillCell(r);
		r.row.scrollIntoView();
	}
}
window.addEventListener("hashchange", followFragment);
followFragment();
