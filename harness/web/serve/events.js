"use strict";
/* The events, page by page, sorted by time. */

const events = {starts: [{}], wanted: "", asked: null};

function drawEvents() {
	const before = el("button", {type: "button", id: "events-before", disabled: true, onclick: () => {
		events.starts.pop();
		askEvents();
	}}, "Earlier");
	const after = el("button", {type: "button", id: "events-after", disabled: true, onclick: () => {
		events.starts.push(events.next);
		askEvents();
	}}, "Later");

	byId("events").append(el("div.bar", null, before, after, el("span.muted", {id: "events-said", role: "status"})), el("div", {id: "events-rows"}));
}

function showEvents() {
	const q = focus();

	if (recent() && !app.chosen.from) { /* its period moves by itself */
		delete q.from;
		delete q.to;
	}
	const wanted = JSON.stringify(q);

	if (events.wanted === wanted)
		return;
	events.wanted = wanted;
	events.starts = [{}];
	askEvents();
}

const MOMENT = 0, FAILED = 7;

async function askEvents() {
	const start = events.starts[events.starts.length - 1], q = focus(), x = app.state.extent;

	if (events.asked)
		events.asked.abort();
	const asked = events.asked = new AbortController();

	if (start.from !== undefined)
		Object.assign(q, {from: String(start.from), to: q.to || String(x.to + 1), skip: start.skip});
	fill("events-said", "asking …");
	try {
		const answer = await ask("events", {...q, limit: 200}, {signal: asked.signal});

		events.next = answer.next;
		byId("events-before").disabled = events.starts.length < 2;
		byId("events-after").disabled = !answer.next;
		fill("events-said", answer.rows.length ? answer.rows[0][MOMENT].toFixed(6) + " s to " + answer.rows[answer.rows.length - 1][MOMENT].toFixed(6) + " s: " +
			plural(answer.rows.length, "event") + (answer.problems.length ? "; " + answer.problems.join("; ") : "") : "no events");
		fill("events-rows", eventTable(answer));
	} catch (e) {
		if (e.name === "AbortError")
			return;
		fill("events-said", e.message);
		fill("events-rows");
	}
}

/* Omits columns that are empty on this page. */
function eventTable(answer) {
	const used = answer.columns.map((c, i) => answer.rows.some((r) => r[i] !== null) && c !== "number" && (c !== "log" || app.state.run));
	const pick = (r) => r.filter((_, i) => used[i]);
	const table = tableOf({columns: pick(answer.columns), rows: answer.rows.map((r) => pick([r[MOMENT].toFixed(6), ...r.slice(1)]))}, "Events", LINKS);

	table.querySelectorAll("tbody tr").forEach((tr, i) => tr.classList.toggle("failed", answer.rows[i][FAILED] !== null));
	return table;
}
