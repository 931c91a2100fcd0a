"use strict";
/* Cells and attempts without a score, with the reasons; the run's provenance. */

function drawUnscored() {
	const bad = run.attempts.filter((a) => a.outcome !== "confirmed");
	const missing = run.cells.filter((c) => !c.confirmed && !c.skipped);
	const skipped = run.tally.skipped || [];
	const cell = (n) => run.cells.find((c) => c.number === n) || {workload: "?", fault: "?"};

	fill("unscored", el("h2", {id: "unscored-title"}, "Not scored"),
		bad.length || missing.length || skipped.length ? null : el("p", null,
			"Nothing: every planned cell has a confirmed attempt, and no attempt was lost."),
		skipped.length ? grid("Faults that could not run here", ["fault", "cells", "reason"],
			skipped.map((s) => [s.fault, String(s.cells), s.reason]),
			{numeric: [1]}) : null,
		bad.length ? grid("Attempts that do not count", ["cell", "attempt", "workload", "fault", "outcome",
			"reason", "began"], bad.map((a) => [
			String(a.cell), String(a.number), cell(a.cell).workload, cell(a.cell).fault, a.outcome,
				a.reason || "", when(a.started_ns)]), {numeric: [0, 1]}) : null,
		missing.length ? grid("Cells without a confirmed attempt", ["cell", "workload", "fault", "attempts"],
			missing.map((c) => [
			String(c.number), c.workload, c.fault, String(c.attempts.length)]), {numeric: [0, 3]}) : null);
}

function hostTable() {
	const rows = Object.entries(run.hosts).map(([name, h]) => [name, h.role || "", (h.agent || {}).host || "",
		typeof h.clock_offset_s === "number" ? duration(h.clock_offset_s) : "-",
		typeof h.clock_error_s === "number" ? duration(h.clock_error_s) : "-", (h.agent || {}).version || "",
			(h.agent || {}).boot_id || ""]);

	return rows.length ? grid("Hosts, and the offsets of their clocks from the orchestrator's", ["node", "role", "host name",
		"clock offset", "known to ±", "agent", "boot id"], rows,
		{numeric: [3, 4]}) : el("p", null, "No hosts are recorded.");
}

function drawProvenance() {
	const facts = run.facts, detectors = parsed(facts.detectors) || [];
	const known = ["scenario", "scenario_text", "seed", "hosts", "servers", "detectors", "culprit_version",
		"store_version", "file_system"];
	const models = (run.models || []).map((m) => fold("Model of " + m.detector, {}, shown(m.model,
		"model of " + m.detector), el("p.muted", null, "parameters: " + flat(parsed(m.params)))));

	fill("provenance", el("h2", {id: "provenance-title"}, "Environment and provenance"),
		list([["run", run.run], ["scenario", facts.scenario], ["seed", facts.seed], ["culprit",
			facts.culprit_version],
			["store", facts.store_version ? "version " + facts.store_version : null],
			["report", "made " + when(run.report.made_s * 1e9) + " by culprit " + run.report.culprit_version],
			["detectors", detectors.map((d) => d.name + (d.params && Object.keys(d.params).length ? " (" +
				flat(d.params) + ")" : "")).join(", ")],
			["file system", facts.file_system ? fold("meaning of its errors", {},
				shown(parsed(facts.file_system), "file system")) : null],
			...Object.entries(facts).filter(([k]) => !known.includes(k)).map(([k, v]) => [k, parsed(v) &&
				typeof parsed(v) === "object" ? fold("show", {}, shown(parsed(v), word(k))) : v])]),
		hostTable(),
		models.length ? [el("h3", null, "Trained models"), models] : null,
		facts.scenario_text ? [el("h3", null, "Scenario"), el("pre", {tabindex: "0", role: "region",
			"aria-label": "Text of the scenario"}, facts.scenario_text)] : null,
		el("p.muted", null, "Files of an attempt, with sizes and SHA-256, are listed in its cell. The inventory is kept in run.db and not shown here."));
	fill("foot", el("p.muted", null, "Same figures: ", el("code", null, "culprit table RUN --format json"),
		". To judge again: ", el("code", null, "culprit rescore RUN"),
		". Measurements have three digits here; all: ", el("code", null, "culprit query --samples RUN"), ". ", run.brief ?
			"To keep this file below 10 MB, the largest values of readings and the gates that confirmed attempts passed are omitted. " : null,
		"Charts: uPlot 1.6.32 (MIT licence, in this file's source). Printing includes the cells that are open and were visible; ",
		el("a", {href: "#print"}, "open all of them for a print"), "."));
}
