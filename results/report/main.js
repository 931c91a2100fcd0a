"use strict";
/* Assembles the page; colours; printing. */

const printing = window.matchMedia("print");

function setTheme(theme) {
	if (theme === "auto")
		delete document.documentElement.dataset.theme;
	else
		document.documentElement.dataset.theme = theme;
	for (const b of document.querySelectorAll("#theme button"))
		b.setAttribute("aria-pressed", String(b.value === theme));
	try {
		localStorage.setItem("culprit-theme", theme);
	} catch {
		/* a file's page may have no storage: the choice then lasts as long as the page */
	}
	drawCharts();
}

function savedTheme() {
	try {
		return localStorage.getItem("culprit-theme") || "auto";
	} catch {
		return "auto";
	}
}

fill("theme", ["auto", "light", "dark"].map((t) => el("button.plain", {type: "button", value: t, "aria-pressed": "false",
	onclick: () => setTheme(t)}, t)));
drawHead();
drawMatrix();
drawCells();
drawUnscored();
drawDoses();
drawOverhead();
drawProvenance();
setTheme(savedTheme());
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawCharts());
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
