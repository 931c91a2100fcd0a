"use strict";
/* Windows, metrics, input; assembles the page. */

function drawWindows() {
	if (!fleet.windows)
		return;
	const section = document.getElementById("windows");

	section.hidden = document.getElementById("nav-windows").hidden = false;
	section.setAttribute("aria-labelledby", "windows-title");
	fill("windows", el("h2", {id: "windows-title"}, "Windows"),
		fold(plural(fleet.windows.length, "window"), {open: fleet.windows.length <= 14}, grid("Findings of each window",
			["from", "to", "findings", "not judged because"], fleet.windows.map((w) => [moment(w.from_s), moment(w.to_s),
				w.judged ? String(w.findings) : "-", w.reason || ""]), {numeric: [2]})));
}

const worse_words = {more: "more is worse", less: "less is worse", load: "load: explains differences, accuses nobody", none: "not judged"};

function drawMetrics() {
	fill("metrics", el("h2", {id: "metrics-title"}, "Metrics and limits"),
		grid("Dispersion: the factor by which healthy peers typically differ permanently. Limit: the factor that a lasting difference must exceed.",
			["metric", "meaning", "median", "dispersion", "limit", "step", "samples"], fleet.metrics.map((m) => [path(m.name),
				worse_words[m.worse] + ", " + m.kind + (m.per ? " per " + m.per : "") + (m.guessed ? " (guessed from its name)" : ""),
				digits(m.median, 4) + (m.unit ? " " + m.unit : ""), m.judged ? number(m.dispersion) : "-", m.judged ? number(m.limit) : "-",
				step(m.step_s), m.samples.toLocaleString("en")]), {numeric: [2, 3, 4, 5, 6]}));
}

function drawInput() {
	const i = fleet.input, notes = [...(i.notes || []), ...fleet.notes];

	fill("input", el("h2", {id: "input-title"}, "Input"),
		list([["source", i.source], ["read as", i.form], ["samples", i.samples !== undefined ? i.samples.toLocaleString("en") + ", " +
			i.missing.toLocaleString("en") + " without a value" : null],
		["windows", fleet.options.window_s > 0 ? "of " + step(fleet.options.window_s) : null],
		["least share of time", share(fleet.options.shortest)],
		["report", "made " + when(fleet.report.made_s * 1e9) + " by culprit " + fleet.report.culprit_version]]),
		notes.length ? el("ul.plain", null, notes.map((n) => el("li", null, n))) : null);
	fill("foot", el("p.muted", null, "The same for programs: ", el("code", null, "culprit diagnose --json"), "."));
}

drawHead();
drawFindings();
drawMembers();
drawWindows();
drawRanking();
drawLabels();
drawMetrics();
drawInput();
drawThemes(() => {});
drawPlots();

let resized = 0;
window.addEventListener("resize", () => {
	clearTimeout(resized);
	resized = setTimeout(drawPlots, 100);
});
if (location.hash.length > 1)
	document.getElementById(location.hash.slice(1))?.scrollIntoView();
