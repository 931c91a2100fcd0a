"use strict";
/* Assembles the page; printing. */

const printing = window.matchMedia("print");

drawHead();
drawMatrix();
drawCells();
drawUnscored();
drawDoses();
drawOverhead();
drawProvenance();
drawThemes(() => drawCharts());
printing.addEventListener("change", () => drawCharts());

/* Opened cells are printed with the evidence of their verdicts. */
let folded = [];
window.addEventListener("beforeprint", () => {
	folded = [...document.querySelectorAll(".verdicts details:not([open])")];
	folded.forEach((d) => { d.open = true; });
	drawCharts();
});
window.addEventListener("afterprint", () => folded.forEach((d) => { d.open = false; }));

let resized = 0;
window.addEventListener("resize", () => {
	clearTimeout(resized);
	resized = setTimeout(() => drawCharts(), 100);
});

/* #cell-12 opens that cell; #all opens every one, for a print that holds everything. */
async function followFragment() {
	const r = rows_of_cells.find((x) => "#" + x.button.id === location.hash);

	if (location.hash === "#all")
		await openAll(true);
	else if (r) {
		await openCell(r, true);
		r.row.scrollIntoView();
	}
}
window.addEventListener("hashchange", followFragment);
followFragment();
