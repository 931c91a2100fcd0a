"use strict";
/* The run: the page's index; the details of each attempt are unpacked on demand. */

const run = JSON.parse(document.getElementById("index").textContent);

function parsed(text) {
	try {
		return text === null || text === undefined ? null : JSON.parse(text);
	} catch {
		return null;
	}
}

/* One verdict compared with the truth: {kind, mark, text, wrong}. 'victims' is empty for a control. */
function judged(indicted, abstain, victims) {
	const healthy = indicted.filter((s) => !victims.includes(s));
	const all = victims.length > 0 && victims.every((v) => indicted.includes(v));

	if (all && healthy.length)
		return {kind: "both", mark: "◐", text: "victim and " + healthy.join(", "), wrong: true};
	if (all)
		return {kind: "named", mark: "✓", text: "named " + indicted.join(", "), wrong: false};
	if (healthy.length && victims.length)
		return {kind: "other", mark: "✗", text: "wrong: " + healthy.join(", "), wrong: true};
	if (healthy.length)
		return {kind: "alarm", mark: "✗", text: "false alarm: " + healthy.join(", "), wrong: true};
	if (indicted.length)
		return {kind: "part", mark: "◐", text: "only " + indicted.join(", "), wrong: true};
	if (abstain)
		return {kind: "abstained", mark: "○", text: "abstained", wrong: victims.length > 0};
	if (victims.length)
		return {kind: "missed", mark: "–", text: "missed", wrong: true};
	return {kind: "quiet", mark: "✓", text: "quiet", wrong: false};
}

/* A detector's verdict on a cell: {indicted, abstain, at: {server: seconds}, severity: {server: 1
 * is the limit}, or null}. */
function saying(all) {
	const any = all.filter((v) => v.metric === "any"), said = any.length ? any : all;
	const indicted = [...new Set(said.flatMap((v) => v.indicted || []))], at = Object.create(null);
	let severity = null;

	for (const v of said)
		for (const s of v.indicted || []) {
			const t = typeof v.time_s === "number" ? v.time_s : own(v.time_s, s);

			if (typeof t === "number" && !(at[s] <= t))
				at[s] = t;
		}
	for (const v of all)
		for (const [s, x] of Object.entries(v.severity || {})) {
			severity = severity || Object.create(null);
			severity[s] = Math.max(own(severity, s) ?? -Infinity, x);
		}
	return {indicted, abstain: said.every((v) => v.abstain), at, severity};
}

/* Adds to each cell: victims, attempts (in order), confirmed (the valid attempt, or undefined), results {detector: judged},
 * said {detector: verdict}. */
function joinRun() {
	const cells = new Map(), attempts = new Map();

	for (const c of run.cells) {
		c.victims = parsed(c.victims) || [];
		c.attempts = [];
		c.results = Object.create(null); /* a detector may have the name of an inherited member */
		c.said = Object.create(null);
		cells.set(c.number, c);
	}
	for (const a of run.attempts) {
		a.verdicts = [];
		attempts.set(a.id, a);
		const c = cells.get(a.cell);

		if (c) {
			c.attempts.push(a);
			if (a.outcome === "confirmed")
				c.confirmed = a;
		}
	}
	for (const v of run.verdicts)
		if (attempts.has(v.attempt))
			attempts.get(v.attempt).verdicts.push(v);
	for (const c of run.cells) {
		if (!c.confirmed || c.training)
			continue;
		for (const d of new Set(c.confirmed.verdicts.map((v) => v.detector))) {
			const all = c.confirmed.verdicts.filter((v) => v.detector === d);
			c.said[d] = saying(all);
			c.results[d] = judged(c.said[d].indicted, c.said[d].abstain, c.victims);
		}
	}
	run.cells.sort((a, b) => a.number - b.number);
	run.scores = run.table.scores || [];
	run.totals = run.table.summary ? run.table.summary.detectors : [];
	run.real = run.totals.filter((d) => !d.null).map((d) => d.detector);
	run.detectors = [...run.real,
		...run.totals.filter((d) => d.null).map((d) => d.detector)]; /* null detectors come last */
	run.servers = parsed(run.facts.servers) || [];
	run.shards = parsed(run.facts.shards) || (run.facts.shard ? [parsed(run.facts.shard)] : []);
	run.hosts = parsed(run.facts.hosts) || {};
	run.scored = run.cells.filter((c) => !c.training);
	run.tracers = [...new Set(run.cells.map((c) => c.tracer).filter(Boolean))];
	run.timed = run.table.measure === "runtime";
}

/* A cell's outcome in one word. */
function outcome(c) {
	if (c.confirmed)
		return "confirmed";
	if (c.skipped)
		return "skipped";
	return c.attempts.length ? c.attempts[c.attempts.length - 1].outcome : "not run";
}

const blocks = new Map();

/* Clients of verdicts that were recorded with aliases: numbered by first occurrence in the
 * events. */
function nameClients(v, names) {
	if (typeof v === "string")
		return names.get(v) || v;
	if (Array.isArray(v))
		return v.map((x) => nameClients(x, names));
	if (v === null || typeof v !== "object")
		return v;
	return Object.fromEntries(Object.entries(v).map(([k, x]) => [names.get(k) || k, nameClients(x, names)]));
}

function withClients(data) {
	const clients = [...new Set(data.events.filter((e) => e.client).map((e) => e.client))];
	const names = new Map(clients.map((c, i) => ["client-" + String(i + 1).padStart(4, "0"), c]));

	for (const v of data.verdicts)
		v.verdict = nameClients(v.verdict, names);
	return data;
}

/* The details of an attempt: {detail, samples, events, verdicts, files}; see page.h. */
async function block(id) {
	if (!blocks.has(id)) {
		const coded = document.getElementById("attempt-" + id);

		if (!coded)
			throw new Error("there are no details of attempt " + id);
		blocks.set(id, inflated(coded.textContent).then((buffer) => {
			const length = new DataView(buffer).getUint32(0, true);
			const data = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));

			data.samples = unpackSamples(data.samples, new Uint8Array(buffer, 4 + length));
			return withClients(data);
		}));
	}
	return blocks.get(id);
}

joinRun();
