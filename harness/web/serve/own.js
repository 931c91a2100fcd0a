"use strict";
/* The user's own query, and the view file for it. */

function drawOwn() {
	const sql = el("textarea", {id: "own-sql", "aria-label": "SELECT", spellcheck: "false"}), chart = el("select", {id: "own-chart"},
		["line", "area", "bars", "heat", "dots", "table"].map((c) => el("option", {value: c}, c)));
	const unit = el("input", {type: "text", class: "short", id: "own-unit", placeholder: "s, B/s …"}), out = el("div", {id: "own-answer"}), file = el("pre", {id: "own-file"});
	const text = () => "title: My view\nchart: " + chart.value + (unit.value ? "\nunit: " + unit.value : "") + "\nquery:\n" + sql.value.trim() + "\n";
	const run = () => {
		const view = {title: "Answer", chart: chart.value, unit: unit.value, sql: "", log: false};
		const old = panels.findIndex((p) => p.own);

		if (old >= 0) {
			watcher.unobserve(panels[old].box);
			panels.splice(old, 1);
		}
		const panel = newPanel(view, (signal) => ask("query", {chart: view.chart, ...focus()}, {method: "POST", body: sql.value, signal}));

		panel.own = true;
		panel.box.classList.add("wide");
		out.replaceChildren(panel.box);
		file.textContent = text();
	};

	sql.value = "select slot / 1e9 as t, call, sum(calls) / :slot_s as \"calls/s\"\nfrom totals\ngroup by slot, call";
	chart.value = "area";
	sql.addEventListener("keydown", (e) => {
		if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
			e.preventDefault();
			run();
		}
	});
	byId("own").append(el("p.muted", null, "A SELECT over events, totals, readings … ('culprit query --schema' lists them). The first column is t in seconds, then come names of series, " +
		"then numbers; a table may have any columns. The filters above also apply here."), sql,
	el("div.bar", null, el("label", null, "chart ", chart), el("label", null, "unit ", unit), el("button", {type: "button", id: "own-run", onclick: run}, "Ask (Ctrl+Enter)")), out,
	el("p.muted", null, "To keep it as a panel, save this as ~/.config/culprit/views/NAME.view:"), file);
	for (const e of [sql, chart, unit])
		e.addEventListener("input", () => { file.textContent = text(); });
	file.textContent = text();
}
