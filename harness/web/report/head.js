"use strict";
/* The head of the page: the run, its time and hosts, and how many cells count. */

function tile(number, of, label, note) {
	return el("div.tile", null, el("span.number", null, String(number), of === null ? null : el("small", null,
		" / " + of)),
		el("span.label", null, label), note ? el("span.note", null, note) : null);
}

/* 'rate' is null if none applies; its own rate is null if there is no such cell. */
function totalCell(rate, n, high_is_good) {
	return hasRate(rate) ? heatCell(rate, n, high_is_good, null) : emptyCell(rate ? "no such cell" : "does not apply");
}

function delayText(delay) {
	if (!delay || !delay.n)
		return delay && delay.early ? delay.early + " before the onset" : "–";
	return [el("b", null, duration(delay.median)), el("span.ci", null, duration(delay.min) + " to " +
		duration(delay.max) + ", in " + delay.n),
		delay.early ? el("span.ci", null, delay.early + " before the onset") : null];
}

/* The conclusions that so few cells allow, in the words of 'culprit table'. */
function powerText(p) {
	return plural(p.faulty, "faulty cell") + " are few: a detector that is right in " + (p.rate === 1 ? "all" : p.rate.toFixed(2)) +
		" of them needs " + p.faulty_needed + " to be distinguished from one that never is (with a probability of 80 %). " + (p.controls ? "The " +
		plural(p.controls, "control") + " leave a rate of false alarms of up to " + p.false_alarm_up_to.toFixed(2) + " possible (95 %); " +
		p.controls_needed + " without one would leave no more than 0.05." : "");
}

/* Rates over all cells, as in the first table of 'culprit table': fault detected, right server, right resource. */
function totalsTable() {
	/* Omits a column in which no detector has a figure. */
	const columns = [["faulty", "detected", "detected", "faulty cells in which any server is indicted"],
		["faulty", "right_server", "right server", "faulty cells in which every victim is indicted (TP)"],
		["faulty", "wrong_server", "wrong server", "faulty cells in which a healthy server is indicted"],
		["controls", "false_alarm", "false alarm", "controls in which any server is indicted"],
		["faulty", "resource", "resource", "faulty cells in which victim and resource are named"],
		["faulty", "cause", "cause", "faulty cells in which victim, resource and cause are named"]]
		.filter(([part, key]) => run.totals.some((t) => t[part] && hasRate(t[part][key])));
	const order = run.table.summary.comparisons || [];
	const than = (d, how) => order.flatMap((c) => c.detector === d &&
		c.right_server === how ? [c.other] : c.other === d && c.right_server ===
		({above: "below", below: "above"}[how] || how) ? [c.detector] : []);
	const faulty = run.totals.some((t) => t.faulty && t.faulty.n);
	const said = !faulty ? [] : run.real.map((d) => {
		const above = than(d, "above"), below = than(d, "below"), same = than(d, "not distinguishable");
		const differs = [above.length ? "more often than " + above.join(", ") : "", below.length ? "less often than " +
			below.join(", ") : ""].filter(Boolean).join("; ");

		return el("li", null, el("b", null, d), [differs ? " names the right server " + differs : "", same.length ?
			" cannot be distinguished from " + same.join(", ") + " by these cells" + (differs ? "" : " (right server)") : ""]
			.filter(Boolean).join(";"), ".");
	});
	const power = run.table.summary.power;

	return [el("div.scroll", {tabindex: "0", role: "group", "aria-label": "Detectors over all cells"},
		el("table.matrix", null, tableCaption(
			"Over all faults and workloads: rate, count, exact 95 % interval." + (faulty ? " Delay: from the verified " +
			"onset to the first indictment of the victim; median, least and most." : "")),
		el("thead", null, el("tr", null, el("th.workload", {scope: "col"}, "detector"), columns.map(([, , head,
			title]) => el("th", {scope: "col"}, el("abbr", {title}, head))),
			(faulty ? ["abstained", "delay"] : ["abstained"]).map((h) => el("th", {scope: "col"}, h)))),
		el("tbody", null, run.detectors.map((name) => {
			const d = run.totals.find((t) => t.detector === name), f = d.faulty, c = d.controls;
			const silent = (f ? f.abstained : 0) + (c ? c.abstained : 0), failed = (f ? f.failed ||
				0 : 0) + (c ? c.failed || 0 : 0);

			return el(d.null ? "tr.first.null" : "tr.first", null, el(d.null ? "th.workload.null" : "th.workload", {scope: "row"},
				d.null ? name + " (null)" : el("b", null, name)),
				columns.map(([part, key]) => totalCell(d[part] && d[part][key], d[part] && d[part].n,
					key !== "wrong_server" && key !== "false_alarm")),
				el("td.plain-cell", null, String(silent), failed ? el("span.ci", null, failed +
					" failed") : null), faulty ? el("td.plain-cell", null, delayText(f && f.delay_s)) : null);
		})))), order.length && said.length ? el("ul.plain", null, said) : null, power ? el("p.muted.power", null, powerText(power)) : null];
}

/* Null detectors are hidden until requested. */
function drawNulls() {
	const names = run.detectors.filter((d) => !run.real.includes(d));
	const show = (shown) => {
		document.body.classList.toggle("folded-nulls", !shown);
		for (const b of document.querySelectorAll("button.nulls"))
			b.setAttribute("aria-pressed", String(shown));
	};

	for (const b of document.querySelectorAll("button.nulls")) {
		b.hidden = !names.length || !run.real.length;
		b.title = names.join(", ");
		b.addEventListener("click", () => show(b.getAttribute("aria-pressed") !== "true"));
	}
	show(!run.real.length);
}

function nullsButton() {
	return el("button.plain.nulls", {type: "button", "aria-pressed": "false"}, "Null detectors: what guessing scores");
}

function clockNote() {
	const offsets = Object.values(run.hosts).filter((h) => typeof h.clock_offset_s === "number");
	const worst = Math.max(0, ...offsets.map((h) => Math.abs(h.clock_offset_s) + (h.clock_error_s || 0)));

	return offsets.length ? "clocks within " + duration(worst) : "clock offsets not recorded";
}

/* The part of the plan in this run, if it is a shard or made of shards. */
function shardNote() {
	const first = run.shards[0] || {}, all = first.cells - first.training;
	const here = run.shards.map((s) => s.index + "/" + s.of).join(", ");
	const missing = Array.from({length: first.of || 0}, (_, i) => i + 1).filter((i) =>
		!run.shards.some((s) => s.index === i)).map((i) => i + "/" + first.of);

	return run.shards.length ? el("p", null, (run.shards.length > 1 ? "Shards " : "Shard ") + here + ": " +
		run.scored.length + " of the plan's " + all + " scored cells", missing.length ? "; missing: " +
		missing.join(", ") : null, ".") : null;
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
		el("p.lead", null, "Scenario ", el("b", null, facts.scenario || "without a name"), summary ? ": " +
			summary[1] : null),
		el("p.muted", null, times.length ? [when(from), " to ", when(to).slice(11), ", ",
			duration((to - from) / 1e9), " · "]
			: "nothing has run yet · ", "seed " + (facts.seed || "?"), " · culprit " +
				(facts.culprit_version || "?")),
		shardNote(),
		facts.tracer_replaced ? el("p", null, el("b", null, "Note: "), facts.tracer_replaced, ".") : null,
		el("div.tiles", null,
			tile(tally.confirmed, tally.planned, "cells confirmed", training ? training +
				" of them training" : "without training cells"),
			tile(skipped, null, "cells skipped", skipped ? "reasons below" : null),
			tile(tally.attempts.invalid, null, "attempts invalid",
				tally.attempts.invalid ? "reasons below" : "no retries"),
			tile(tally.attempts.error, null, "attempts in error", null),
			tile(role("server") || run.servers.length, null, "servers",
				hosts.length ? plural(role("client"), "client") + "; " + clockNote() : "hosts not recorded")),
		run.totals.length && !run.real.length ? el("p", null, "Only null detectors have judged this run.") : null,
		run.totals.length ? [totalsTable(), nullsButton()] : run.timed ? el("p", null,
			"It measures run times: see the overhead of tracing below.") : el("p", null,
			"No detector has judged this run."));
}
