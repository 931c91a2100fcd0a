"use strict";
/* One cell opened: every attempt with its chart, its verdicts and what they rest on. */

/* Whatever a detector gave as evidence, as lists and tables. */
function shown(v, key) {
	if (v === null || v === undefined)
		return "-";
	if (typeof v === "boolean")
		return v ? "yes" : "no";
	if (typeof v === "number")
		return /_s$/.test(key || "") ? duration(v) : digits(v, 5);
	if (typeof v !== "object")
		return String(v);
	if (Array.isArray(v)) {
		if (!v.length)
			return "none";
		if (v.every((x) => x && typeof x === "object" && !Array.isArray(x)))
			return rowsOf(v.map((x, i) => [String(i + 1), x]), key || "", "");
		return v.map((x) => shown(x, key)).join(", ");
	}
	const entries = Object.entries(v);

	if (!entries.length)
		return "none";
	if (entries.length > 1 && entries.every(([, x]) => x && typeof x === "object" && !Array.isArray(x)))
		return rowsOf(entries, key || "", "");
	return list(entries.map(([k, x]) => [k, shown(x, k)]));
}

const MOST_ROWS = 12;

function rowsOf(entries, caption, head) {
	const keys = [...new Set(entries.flatMap(([, x]) => Object.keys(x)))];
	const table = grid(caption || "evidence", [head, ...keys.map((k) => k.replace(/_s$/, ""))],
		entries.slice(0, MOST_ROWS).map(([k, x]) => [k, ...keys.map((c) => c in x ? flat(x[c], c) : "")]));

	return entries.length > MOST_ROWS ? [table, el("p.muted", null, "and " + (entries.length - MOST_ROWS) + " more")] : table;
}

/* Inside a table's cell: one line. */
function flat(v, key) {
	if (v && typeof v === "object" && !Array.isArray(v))
		return Object.entries(v).map(([k, x]) => k.replace(/_s$/, "") + ": " + (x && typeof x === "object" ? "{" + flat(x, k) + "}"
			: flat(x, k))).join("; ");
	if (Array.isArray(v))
		return v.map((x) => flat(x, key)).join(", ");
	return shown(v, key);
}

function badge(result) {
	return el("span.badge." + result.kind + (result.wrong ? ".wrong" : ""), null, el("span", {"aria-hidden": "true"}, result.mark + " "),
		result.text);
}

function verdictRows(cell, data) {
	return run.detectors.filter((d) => data.verdicts.some((v) => v.detector === d)).map((d) => {
		const all = data.verdicts.filter((v) => v.detector === d).sort((a, b) => (b.metric === "any") - (a.metric === "any"));

		return el("section.verdict", null, el("h5", null, d, " ", cell.results[d] ? badge(cell.results[d]) : null),
			all.map((v) => {
				const rest = Object.entries(v.verdict).filter(([k]) => !["metric", "indicted", "abstain", "evidence"].includes(k));
				const said = judged(v.verdict.indicted || [], v.verdict.abstain, cell.victims);
				const title = [v.metric, ": ", v.verdict.abstain ? "abstained" : (v.verdict.indicted || []).length ?
					"indicted " + v.verdict.indicted.join(", ") : "nobody indicted",
				rest.length ? " (" + rest.map(([k, x]) => k + ": " + flat(x, k)).join("; ") + ")" : ""].join("");
				const evidence = v.verdict.evidence;

				return evidence && Object.keys(evidence).length ?
					fold(title, {class: said.wrong ? "wrong" : "", open: v.metric === "any" && run.real.includes(d)}, shown(evidence))
					: el("p.line", null, title);
			}));
	});
}

/* Events with the same kind, place and error, put together. */
function eventTable(events) {
	const groups = new Map();

	for (const e of events) {
		const d = e.detail || {}, about = [d.call, d.error || d.signal || d.state, d.place].filter(Boolean).join(" ");
		const key = JSON.stringify([e.kind, e.server, e.client, about]);
		const g = groups.get(key) || {kind: e.kind, who: [e.server, e.client].filter(Boolean).join(" / "), about, n: 0,
			from: Infinity, to: -Infinity};

		g.n += d.count || 1;
		g.from = Math.min(g.from, e.time_s);
		g.to = Math.max(g.to, d.last_s || e.time_s);
		groups.set(key, g);
	}
	const rows = [...groups.values()].sort((a, b) => a.kind.localeCompare(b.kind) || a.who.localeCompare(b.who) || b.n - a.n);

	return grid("What the traces say besides times: failed and slow calls, quiet and ended connections", ["kind", "where", "what", "times", "first", "last"],
		rows.map((g) => [g.kind, g.who, g.about, String(g.n), duration(g.from), duration(g.to)]), {numeric: [3, 4, 5]});
}

function attemptFacts(cell, attempt, detail) {
	const window_ = faultWindow(attempt, cell.victims), d = detail || {};
	const known = ["results", "traces", "workload_exits", "verified_on", "verified_still_on"];
	const lost = Object.entries(d.traces || {}).filter(([, t]) => t.lost || !t.whole).map(([n]) => n);

	return list([
		["outcome", attempt.outcome + (attempt.reason ? ": " + attempt.reason : "")],
		["began", when(attempt.started_ns)],
		["measured", duration(attempt.seconds || 0)],
		["fault", window_ ? windowText(window_) : cell.victims.length ? "never seen to act" : "none (control)"],
		["traces", d.traces ? plural(Object.keys(d.traces).length, "log") + (lost.length ? "; records lost on " + lost.join(", ") : ", all whole, nothing lost") : null],
		["workload", d.results ? shown(d.results) : null],
		["ended with", d.workload_exits ? Object.entries(d.workload_exits).map(([n, x]) => n + ": " + flat(x.exit === undefined ? x : x.exit)).join(", ") : null],
		["seen to act", d.verified_on ? flat(d.verified_on) : null],
		["still acting", d.verified_still_on ? flat(d.verified_still_on) : null],
		...Object.entries(d).filter(([k]) => !known.includes(k)).map(([k, v]) => [k, shown(v, k)]),
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
	return el("section.attempt", {"aria-labelledby": id + "-title"}, title,
		el("div.columns", null, chart(id, data.samples, data.verdicts, attempt, cell.victims), attemptFacts(cell, attempt, data.detail)),
		data.verdicts.length ? el("div.verdicts", null, verdictRows(cell, data)) : null,
		data.events.length ? fold(plural(data.events.length, "event") + " in the traces", {}, eventTable(data.events)) : null,
		data.files.length ? fold(plural(data.files.length, "file") + " with checksums", {},
			grid("Files of this attempt, in the run's folder", ["path", "size", "SHA-256"],
				data.files.map((f) => [f.path, bytes(f.size), el("code", null, f.sha256)]), {numeric: [1]})) : null);
}
