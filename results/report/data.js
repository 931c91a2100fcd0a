"use strict";
/* The run: the joined index of the page; the details of each attempt are unpacked on demand. */

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

/* Adds to each cell: victims, attempts (in order), confirmed (the attempt that counts, or undefined), results {detector: judged}. */
function joinRun() {
	const cells = new Map(), attempts = new Map();

	for (const c of run.cells) {
		c.victims = parsed(c.victims) || [];
		c.attempts = [];
		c.results = Object.create(null); /* a detector's name may be that of an inherited member */
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
			const any = all.filter((v) => v.metric === "any");
			const said = any.length ? any : all;

			c.results[d] = judged([...new Set(said.flatMap((v) => v.indicted || []))],
				said.every((v) => v.abstain), c.victims);
		}
	}
	run.cells.sort((a, b) => a.number - b.number);
	run.scores = run.table.scores || [];
	run.totals = run.table.summary ? run.table.summary.detectors : [];
	run.real = run.totals.filter((d) => !d.null).map((d) => d.detector);
	run.detectors = [...run.real,
		...run.totals.filter((d) => d.null).map((d) => d.detector)]; /* null detectors come last */
	run.servers = parsed(run.facts.servers) || [];
	run.hosts = parsed(run.facts.hosts) || {};
	run.scored = run.cells.filter((c) => !c.training);
	run.tracers = [...new Set(run.cells.map((c) => c.tracer).filter(Boolean))];
	run.timed = run.table.measure === "runtime";
}

/* A cell's outcome in a word. */
function outcome(c) {
	if (c.confirmed)
		return "confirmed";
	if (c.skipped)
		return "skipped";
	return c.attempts.length ? c.attempts[c.attempts.length - 1].outcome : "not run";
}

const blocks = new Map();

/* The rest of an attempt: {detail, samples, events, verdicts, files}; see page.h. */
async function block(id) {
	if (!blocks.has(id)) {
		const coded = document.getElementById("attempt-" + id);

		if (!coded)
			throw new Error("there are no details of attempt " + id);
		if (typeof DecompressionStream === "undefined")
			throw new Error("this browser cannot unpack the measurements (it has no DecompressionStream)");
		const packed = Uint8Array.from(atob(coded.textContent), (c) => c.charCodeAt(0));
		const text = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).text();

		blocks.set(id, text.then(JSON.parse));
	}
	return blocks.get(id);
}

joinRun();
