"use strict";
/* The headline: what was run, when, on what, and how much of it counts. */

function tile(number, of, label, note) {
	return el("div.tile", null, el("span.number", null, String(number), of === null ? null : el("small", null, " / " + of)),
		el("span.label", null, label), note ? el("span.note", null, note) : null);
}

/* The cells of one kind that a detector judged: how many, and in how many of them 'kinds' is what came out. */
function tallied(detector, faulty, kinds) {
	const cells = run.scored.filter((c) => c.results[detector] && (faulty === null || (c.victims.length > 0) === faulty));

	return [cells.filter((c) => kinds.includes(c.results[detector].kind)).length, cells.length];
}

function sentence(detector) {
	const [named, faulty] = tallied(detector, true, ["named", "both"]);
	const [wrong, all] = tallied(detector, null, ["both", "other", "alarm"]);
	const [abstained] = tallied(detector, null, ["abstained"]);

	return el("li", null, el("b", null, detector), " named every victim in ", el("b", null, named + " of " + faulty),
		" faulty cells and indicted some healthy server in ", el("b", null, wrong + " of " + all), " cells",
		abstained ? "; it abstained in " + abstained : null, ".");
}

function clockNote() {
	const offsets = Object.values(run.hosts).filter((h) => typeof h.clock_offset_s === "number");
	const worst = Math.max(0, ...offsets.map((h) => Math.abs(h.clock_offset_s) + (h.clock_error_s || 0)));

	return offsets.length ? "clocks within " + duration(worst) : "clock offsets not recorded";
}

function drawHead() {
	const facts = run.facts, tally = run.tally, hosts = Object.values(run.hosts);
	const times = run.attempts.map((a) => [a.started_ns, a.ended_ns]).filter((t) => t[0] && t[1]);
	const from = Math.min(...times.map((t) => t[0])), to = Math.max(...times.map((t) => t[1]));
	const training = run.cells.filter((c) => c.training && c.confirmed).length;
	const role = (r) => hosts.filter((h) => h.role === r).length;
	const summary = /^\s*summary\s*=\s*"((?:[^"\\]|\\.)*)"/m.exec(facts.scenario_text || "");
	const skipped = (tally.skipped || []).reduce((n, s) => n + s.cells, 0);

	fill("name", el("span.brand", null, "culprit"), el("span.run", null, run.run));
	fill("head",
		el("h1", {id: "title"}, run.run),
		el("p.lead", null, "Scenario ", el("b", null, facts.scenario || "without a name"), summary ? ": " + summary[1] : null),
		el("p.muted", null, times.length ? [when(from), " to ", when(to).slice(11), ", ", duration((to - from) / 1e9), " · "]
			: "nothing has run yet · ", "seed " + (facts.seed || "?"), " · culprit " + (facts.culprit_version || "?")),
		el("div.tiles", null,
			tile(tally.confirmed, tally.planned, "cells confirmed", training ? training + " of them training" : "none is training"),
			tile(skipped, null, "cells skipped", skipped ? "reasons below" : null),
			tile(tally.attempts.invalid, null, "attempts invalid", tally.attempts.invalid ? "reasons below" : "none had to be tried again"),
			tile(tally.attempts.error, null, "attempts in error", null),
			tile(role("server") || run.servers.length, null, "servers", plural(role("client"), "client") + "; " + clockNote())),
		run.real.length ? el("ul.plain", null, run.real.map(sentence)) : run.timed ? el("p", null, "It measures run times; see the overhead of tracing below.") : el("p", null, "No detector has judged this run."));
}
