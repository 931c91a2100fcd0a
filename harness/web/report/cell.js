"use strict";
/* An opened cell: every attempt with its chart, its verdicts and their evidence. */

const MOST_ROWS = 12;

function isObject(v) {
	return v !== null && typeof v === "object" && !Array.isArray(v);
}

/* "worst_second" -> "worst second"; units are shown with the values. */
function word(key) {
	return key.replace(/_s$/, "").replace(/bytes_per_second$/, "rate").replaceAll("_", " ");
}

/* Any value as one line of text. */
function flat(v, key) {
	if (v === null || v === undefined)
		return "-";
	if (typeof v === "boolean")
		return v ? "yes" : "no";
	if (typeof v === "number")
		return quantity(v, key || "");
	if (Array.isArray(v))
		return v.length ? v.map((x) => flat(x, key)).join(", ") : "none";
	if (isObject(v))
		return Object.entries(v).map(([k, x]) => word(k) + (isObject(x) ? " {" + flat(x, k) + "}" : " " +
			flat(x, k))).join("; ") || "none";
	return String(v);
}

function rowsOf(entries, caption, head) {
	const keys = [...new Set(entries.flatMap(([, x]) => Object.keys(x)))];
	const numeric = keys.flatMap((k, i) => entries.every(([, x]) => !Object.hasOwn(x, k) ||
		typeof x[k] === "number") ? [i + 1] : []);
	const table = grid(caption, [head, ...keys.map(word)], entries.slice(0, MOST_ROWS).map(([k, x]) =>
		[k, ...keys.map((c) => Object.hasOwn(x, c) ? flat(x[c], c) : "")]), {numeric});

	return entries.length > MOST_ROWS ? [table, el("p.muted", null, "and " + (entries.length - MOST_ROWS) +
		" more")] : table;
}

/* Any object: simple members as a list, structured members as tables below it. */
function shown(v, title) {
	if (Array.isArray(v) && v.length && v.every(isObject))
		return rowsOf(v.map((x, i) => [String(i + 1), x]), title, "");
	if (!isObject(v))
		return el("p", null, flat(v, title));
	const entries = Object.entries(v);
	const parts = ([, x]) => (Array.isArray(x) && x.length > 0 && x.every(isObject)) || (isObject(x) &&
		Object.values(x).some(isObject));

	if (entries.length && entries.every(([, x]) => isObject(x)))
		return rowsOf(entries, title, "");
	return [list(entries.filter((x) => !parts(x)).map(([k, x]) => [word(k), flat(x, k)])),
		entries.filter(parts).map(([k, x]) => shown(x, word(k)))];
}

/* Null detectors are shown without emphasis. */
function badge(result, detector) {
	return el("span.badge." + result.kind +
		(run.real.includes(detector) ? result.wrong ? ".wrong" : "" : ".guess"), null, el("span",
		{"aria-hidden": "true"}, result.mark + " "),
		result.text);
}

function verdictRows(cell, data) {
	return run.detectors.filter((d) => data.verdicts.some((v) => v.detector === d)).map((d) => {
		const all = data.verdicts.filter((v) => v.detector === d).sort((a,
			b) => (b.metric === "any") - (a.metric === "any"));

		return el(run.real.includes(d) ? "section.verdict" : "section.verdict.null", null, el("h5", null, d, " ", cell.results[d] ? badge(cell.results[d],
			d) : null),
			all.map((v) => {
				const rest = Object.entries(v.verdict).filter(([k]) => !["metric", "indicted",
					"abstain", "evidence", "time_s"].includes(k));
				const said = judged(v.verdict.indicted || [], v.verdict.abstain, cell.victims);
				const title = [v.metric, ": ", v.verdict.abstain ? "abstained" : (v.verdict.indicted ||
					[]).length ?
					"indicted " + v.verdict.indicted.map((s) => s + (typeof own(v.verdict.time_s,
						s) === "number" ? " at " +
					duration(v.verdict.time_s[s]) : "")).join(", ") : "nobody indicted",
				rest.length ? " (" + rest.map(([k, x]) => k + ": " + flat(x, k)).join("; ") +
					")" : ""].join("");
				const evidence = v.verdict.evidence;

				return evidence && Object.keys(evidence).length ?
					fold(title, {class: said.wrong && v.metric === "any" ? "wrong" : null,
						open: run.real.includes(d) && (v.metric === "any" ||
						(v.verdict.indicted || []).length > 0)}, shown(Object.fromEntries(Object.entries(evidence).filter(([k]) => k !== "scores")),
						"evidence"))
					: el("p.line", null, title);
			}));
	});
}

/* Events grouped by kind, place and error. */
function eventTable(events) {
	const groups = new Map();

	for (const e of events) {
		const d = e.detail || {}, about = [d.call, d.error || d.signal || d.state,
			d.place].filter(Boolean).join(" ");
		const key = JSON.stringify([e.kind, e.server, e.client, about]);
		const g = groups.get(key) || {kind: e.kind, who: [e.server, e.client].filter(Boolean).join(" / "),
			about, n: 0,
			from: Infinity, to: -Infinity};

		g.n += d.count || 1;
		g.from = Math.min(g.from, e.time_s);
		g.to = Math.max(g.to, d.last_s || e.time_s);
		groups.set(key, g);
	}
	const rows = [...groups.values()].sort((a, b) => a.kind.localeCompare(b.kind) || a.who.localeCompare(b.who) ||
		b.n - a.n);

	return grid("Events in the traces: failed and slow calls, quiet and ended connections", ["kind",
		"where", "what", "times", "first", "last"],
		rows.map((g) => [g.kind, g.who, g.about, String(g.n), duration(g.from), duration(g.to)]),
			{numeric: [3, 4, 5]});
}

/* Measures of the application that are known of some cell, as a line each. */
function impactLines(impact) {
	const lines = Object.entries(impact || {}).map(([m, i]) => el("div", null, m + " " + impactText(i) +
		(i.ratio === null ? "" : " of that of controls, during the fault against before it")));

	return lines.length ? lines : null;
}

function attemptFacts(cell, attempt, detail, samples) {
	const window_ = faultWindow(attempt), d = detail || {};
	const known = ["steps", "results", "runtime_s", "times", "traces", "workload_exits", "verified_on", "verified_still_on"];
	const lost = Object.entries(d.traces || {}).filter(([, t]) => t.lost || !t.whole).map(([n]) => n);

	return list([
		["outcome", attempt.outcome + (attempt.reason ? ": " + attempt.reason : "")],
		["began", when(attempt.started_ns)],
		["key", attempt.key ? el("code", null, attempt.key) : null],
		["measured", Object.keys(samples).length ? duration(attempt.seconds) : "without times of single calls"],
		[window_ && !cell.victims.length ? "look-alike" : "fault", window_ ? windowText(window_) : cell.fault !== "none" ? "never seen to act" : "none (control)"],
		["application", attempt === cell.confirmed && cell.victims.length ? impactLines(cell.impact) : null],
		["traces", d.traces ? plural(Object.keys(d.traces).length, "log") +
			(lost.length ? "; records lost on " + lost.join(", ") : ", all whole, nothing lost") : null],
		["run time", d.runtime_s ? duration(d.runtime_s) : null],
		["workload", d.results ? Object.entries(d.results).map(([n, x]) => el("div", null, n + ": " +
			flat(x))) : null],
		["ended with", d.workload_exits ? Object.entries(d.workload_exits).map(([n, x]) => n + ": " +
			flat(x.exit === undefined ? x : x.exit)).join(", ") : null],
		["seen to act", d.verified_on ? Object.entries(d.verified_on).map(([n, x]) => el("div", null, n +
			": " + flat(x))) : null],
		["still acting", d.verified_still_on ? Object.entries(d.verified_still_on).map(([n, x]) => el("div",
			null, n + ": " + flat(x))) : null],
		...Object.entries(d).filter(([k]) => !known.includes(k)).map(([k, v]) => [word(k),
			isObject(v) ? fold("show", {}, shown(v, word(k))) : flat(v, k)]),
	]);
}

async function attemptPanel(cell, attempt) {
	const id = "c" + cell.number + "a" + attempt.number;
	const title = el("h4", {id: id + "-title"}, "Attempt " + attempt.number + ": " + attempt.outcome);
	let data;

	try {
		data = await block(attempt.id);
	} catch (e) {
		return el("section.attempt", {"aria-labelledby": id + "-title"}, title, el("p", null, String(e.message)));
	}
	const facts = attemptFacts(cell, attempt, data.detail, data.samples);

	const measured = Object.keys(data.samples).length > 0;
	const figure = measured ? chart(id, data.samples, data.verdicts, attempt, cell) : null;
	const multiples = measured ? fold(plural(metricsIn(data.samples).length, "metric") + " side by side", {}, el("p")) : null;

	if (multiples)
		multiples.addEventListener("toggle", () => {
			if (multiples.open && multiples.querySelector("p"))
				multiples.querySelector("div").replaceChildren(smallMultiples(data.samples, attempt, cell.victims, figure.show));
			drawPlots(multiples);
		});
	return el("section.attempt", {"aria-labelledby": id + "-title"}, title,
		measured ? el("div.columns", null, figure, facts) : facts,
		attempt.seconds ? el("div.plot-grid", null, whatHappened(cell, attempt, data), scoreCharts(cell, attempt, data.verdicts)) : null,
		multiples,
		data.verdicts.length ? el("div.verdicts", null, verdictRows(cell, data)) : null,
		further(cell, attempt),
		data.events.length ? fold(plural(data.events.length, "event") + " in the traces", {},
			eventTable(data.events)) : null,
		data.files.length ? fold(plural(data.files.length, "file") + " with checksums", {},
			grid("Files of this attempt, in the run's folder", ["path", "size", "SHA-256"],
				data.files.map((f) => [f.path, bytes(f.size), el("code", null, f.sha256)]),
					{numeric: [1]})) : null);
}

/* Quotes a word for the shell. */
function shellWord(word) {
	const safe = word.startsWith("-") ? "./" + word : word;

	return /^[A-Za-z0-9_.,:=@%+/-]+$/.test(safe) ? safe : "'" + safe.replaceAll("'", "'\\''") + "'";
}

/* Other views of this cell: pages next to this one, and commands. */
function further(cell, attempt) {
	const name = shellWord(run.run), page = own(run.pages, String(cell.number));
	const commands = [["its measurements", "culprit query --samples " + name],
		attempt.outcome === "confirmed" && !cell.training ? ["its verdicts anew", "culprit diagnose " + name + " --cell " + cell.number + " --evidence"] : null,
		...attempt.logs ? [["requests and calls on a timeline", "culprit timeline " + name + " --cell " + cell.number],
			["where their time went", "culprit slow " + name + " --cell " + cell.number],
			["its logs on a live page", "culprit serve " + name],
			["its calls in SQL", "culprit query " + name + " --cell " + cell.number + " \"SELECT node, call, sum(calls) FROM totals GROUP BY node, call\""]] : []];

	return fold("Look further", {class: "further"}, page ? el("p", null, el("a", {href: encodeURIComponent(page)}, "Its timeline: " + page)) : null,
		el("p.muted", null, attempt.logs ? "In the folder that holds the run:" : "Its logs were not in the run's folder when this page was made. In the folder that holds the run:"),
		el("dl.commands", null, commands.filter(Boolean).map(([what, command]) => el("div", null, el("dt", null, what),
			el("dd", null, el("code", null, command))))));
}
