"use strict";
/* The cost of tracing, in runs that measure it: run times under each tracer against the untraced
 * ones of the same blocks. */

function percent(x) {
	return (x > 0 ? "+" : "") + (Math.abs(x) < 10 ? x.toFixed(1) : x.toFixed(0)) + " %";
}

function overheadCell(c, names) {
	if (!c)
		return el("td.heat.none", {headers: names}, el("span", {"aria-hidden": "true"}, "–"), el("span.sr",
			null, "not measured"));
	return el("td.heat.s4", {headers: names}, el("b", null, percent(c.overhead_pct)), el("span.n", null,
		plural(c.pairs, "pair")),
		el("span.ci", null, c.low_pct === null ? "no interval below 3 pairs" : "[" + percent(c.low_pct) +
			", " + percent(c.high_pct) + "]"),
		el("span.ci", null, duration(c.mean_s) + " over " + duration(c.untraced_mean_s)),
		c.cpu_pairs ? el("span.ci", null, "processor time " + percent(c.cpu_pct) + (c.call_us === null ? "" :
			", " + c.call_us.toFixed(2) + " µs a call")) : null,
		c.lost ? el("span.ci", null, plural(c.lost, "record") + " lost") : null);
}

function drawOverhead() {
	const cells = run.timed ? run.table.cells : [];
	const tracers = [...new Set(cells.map((c) => c.tracer))], workloads = [...new Set(cells.map((c) => c.workload))];

	if (!cells.length)
		return;
	document.getElementById("overhead").hidden = document.getElementById("nav-overhead").hidden = false;
	document.getElementById("overhead").setAttribute("aria-labelledby", "overhead-title");
	fill("overhead", el("h2", {id: "overhead-title"}, "Overhead of tracing"),
		el("p.muted", null, "Increase of the mean run time over the untraced runs of the same blocks, with its 95 % interval."),
		el("div.scroll", {tabindex: "0", role: "group", "aria-label": "Overhead of tracing"},
			el("table.matrix", null, tableCaption(
				"Run time of each workload under each tracer, over the same untraced"),
				el("thead", null, el("tr", null, el("th", {scope: "col", id: "ow"}, "workload"),
					tracers.map((t, i) => el("th", {scope: "col", id: "ot" + i}, breakable(t))))),
				el("tbody", null, workloads.map((w, k) => el("tr.first", null, el("th.workload",
					{scope: "row", id: "or" + k}, breakable(w)),
					tracers.map((t, i) => overheadCell(cells.find((c) => c.tracer === t &&
						c.workload === w), "or" + k + " ot" + i))))))));
}
