"use strict";
/* Two sessions, or two cells of a run, side by side. */

const comparing = {wanted: "", asked: null, most: 25};

function drawCompare() {
	const select = el("select", {id: "other", onchange: () => choose({other: select.value})});
	const per = el("input", {type: "checkbox", id: "per-second", onchange: () => showCompare(true)});

	byId("compare").append(el("div.bar", null, el("label", null, "B: ", select), el("label", null, per, " per second"), el("span.muted", {id: "compare-said", role: "status"})),
		el("div", {id: "compare-tables"}));
}

/* The choices for B: the other session's cells, or this run's. */
function others() {
	const {other, attempts} = app.state;

	if (other)
		return other.attempts.length ? other.attempts : [{attempt: 0, name: other.name}];
	return attempts.filter((a) => a.attempt !== attempt());
}

async function showCompare(again) {
	const all = others(), select = byId("other");

	if (!all.length) {
		fill("compare-said", "There is nothing to compare with: start 'culprit serve' with --compare.");
		select.parentElement.hidden = true;
		fill("compare-tables");
		return;
	}
	select.replaceChildren(...all.map((a) => el("option", {value: a.attempt}, a.name || (app.state.other ? app.state.other.name + ", " : "") + attemptText(a))));
	select.value = String(all.some((a) => String(a.attempt) === app.chosen.other) ? app.chosen.other : all[0].attempt);
	const q = {...focus(), from: "", to: "", other: select.value, per_second: byId("per-second").checked ? 1 : 0}, wanted = JSON.stringify([q, app.state.generation]);

	if (comparing.wanted === wanted && !again)
		return;
	comparing.wanted = wanted;
	if (comparing.asked)
		comparing.asked.abort();
	comparing.asked = new AbortController();
	fill("compare-said", "asking …");
	try {
		const answer = await ask("compare", q, {signal: comparing.asked.signal});

		fill("compare-said", "A: " + answer.a.name + ", " + duration(answer.a.seconds) + ". B: " + answer.b.name + ", " + duration(answer.b.seconds) + ".",
			answer.problems.length ? " " + answer.problems.join("; ") : "");
		fill("compare-tables", answer.tables.filter((t) => t.rows.length).map(compareTable));
	} catch (e) {
		if (e.name !== "AbortError") {
			fill("compare-said", e.message);
			fill("compare-tables");
		}
	}
}

function ratio(a, b) {
	if (a === null || b === null)
		return a === null ? "new" : "gone";
	if (!a)
		return b ? "new" : "";
	return "×" + digits(b / a, 3);
}

function compareTable(t) {
	const rows = t.rows.slice(0, comparing.most), at = (row, side, i) => row[side] ? row[side][i] : null;

	return el("section", {"aria-label": t.title}, el("h2", null, t.title), el("div.scroll", {tabindex: "0", role: "group", "aria-label": t.title}, el("table", null,
		el("thead", null, el("tr", null, el("th", {scope: "col"}, t.key), t.measures.map((m) => [el("th.num", {scope: "col"}, m.name + " A"), el("th.num", {scope: "col"}, m.name + " B"),
			el("th.num", {scope: "col"}, "B/A")]))),
		el("tbody", null, rows.map((row) => el("tr", null, el("td.text", null, row[0]), t.measures.map((m, i) => {
			const a = at(row, 1, i), b = at(row, 2, i);

			return [el("td.num", null, inUnit(a, m.unit)), el("td.num", null, inUnit(b, m.unit)),
				el(m.unit === "s" && a && b / a >= 2 ? "td.num.worse" : "td.num", null, ratio(a, b))];
		})))))), t.rows.length > rows.length ? el("p.foot", null, "the " + rows.length + " largest of " + t.rows.length) : null);
}
