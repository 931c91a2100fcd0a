"use strict";
/* The fleet detector's findings: head line, table of findings, a plot for each of the worst
 * members. */

const fleet = JSON.parse(document.getElementById("index").textContent);
const unix = fleet.clock === "unix";
const kind_words = {shift: "lasting", bursts: "in bursts", group: "whole group", class: "class"};

/* "2026-11-02 14:00", or "150 s". */
function moment(t) {
	if (t === null)
		return "-";
	return unix ? new Date(t * 1000).toISOString().replace("T", " ").slice(0, fleet.to_s - fleet.from_s < 6 * 3600 ? 19 : 16)
		: digits(t, 9) + " s";
}

function number(x) {
	return x === null ? "-" : x >= 9.995 || x < .1 ? digits(x, 3) : x.toFixed(2);
}

function share(x) {
	const p = 100 * x;

	return (p >= 9.95 ? Math.round(x < 1 ? Math.min(p, 99) : 100) : digits(p, 2)) + " %";
}

/* "1 h", "90 s": whole units only. */
function step(s) {
	const units = [["w", 604800], ["d", 86400], ["h", 3600], ["min", 60]].find(([, u]) => s >= u && s % u === 0);

	return units ? s / units[1] + " " + units[0] : duration(s);
}

function times(effect) {
	return number(effect) + " times its peers";
}

function whom(f) {
	return f.member !== undefined ? f.member : f.group;
}

/* A long path may wrap after its slashes. */
function path(name) {
	return name.split(/(?<=\/)/).flatMap((part, i) => i ? [el("wbr"), part] : [part]);
}

function drawHead() {
	const s = fleet.summary, options = fleet.options;
	const tile = (count, label, note) => el("div.tile", null, el("span.number", null, count.toLocaleString("en")),
		el("span.label", null, label), note ? el("span.note", null, note) : null);

	fill("name", el("span.brand", null, "culprit"), el("span.run", null, fleet.input.source));
	fill("head", el("h1", {id: "title"}, plural(s.findings, "finding"), s.partial ? " in partial data of " : " in ", fleet.input.source),
		s.partial ? el("p.lead", null, "Partial data: ", fleet.input.partial, "; members may be missing here.") : null,
		el("p.lead", null, moment(fleet.from_s), " to ", moment(fleet.to_s), unix ? " UTC" : "", "; detector fleet, ",
			"false alarms asked for: ", options.false_alarms > 0 && options.false_alarms < .5
				? "1 in " + Math.round(1 / options.false_alarms).toLocaleString("en") : String(options.false_alarms),
			" series and weeks; least ratio ", number(options.least), "."),
		el("div.tiles", null, tile(s.shift, "lasting", "off for most of the time since a time"),
			tile(s.bursts, "in bursts", "off repeatedly, for short times"),
			tile(s.group, plural(s.group, "whole group").replace(/^\S+ /, ""), "a group against the other groups"),
			tile(s.class, s.class === 1 ? "class" : "classes", "members of many groups that differ in the same way"),
			tile(s.judged, "members judged", s.judged < s.members ? "of " + s.members.toLocaleString("en") +
				(s.left_out ? "; " + s.left_out.toLocaleString("en") + " left out" : "") +
				(s.judged + s.left_out < s.members ? "; the others have too few peers or samples" : "") : "all of them")));
}

/* [head, numeric, what a cell shows, what it is sorted by] */
function findingColumns() {
	return [
		["severity", true, (f) => number(f.severity), (f) => f.severity],
		["who", false, (f) => f.trace !== undefined ? el("a", {href: "#member-" + f.trace}, path(whom(f))) : path(whom(f)), whom],
		["metric", false, (f) => path(f.metric), (f) => f.metric],
		["times its peers", true, (f) => number(f.effect), (f) => f.effect],
		["over", true, (f) => f.over_share < 1 ? step(f.over_s) : "all", (f) => f.over_share < 1 ? f.over_s : Infinity],
		["of the time", true, (f) => share(f.share), (f) => f.share],
		["since", false, (f) => el("span.when", null, moment(f.since_s)), (f) => f.since_s],
		["until", false, (f) => el("span.when", null, f.open ? "still" : moment(f.until_s)), (f) => f.open ? Infinity : f.until_s],
		["kind", false, (f) => kind_words[f.kind] + (f.members ? " of " + f.members : ""), (f) => f.kind],
		...fleet.windows ? [["windows", true, (f) => f.windows + " of " + fleet.windows.filter((w) => w.judged).length,
			(f) => f.windows]] : [],
		...fleet.summary.partial ? [["data", false, () => "partial", () => 0]] : [],
		...fleet.findings.some((f) => f.other_metrics) ? [["other metrics", true, (f) => String(f.other_metrics),
			(f) => f.other_metrics]] : [],
	];
}

/* The table of 'columns', sorted by the clicked head. */
function sortableFindings(caption, columns, rows, sorted) {
	const body = el("tbody"), heads = columns.map(([name, numeric], i) => el(numeric ? "th.num" : "th", {scope: "col"},
		el("button.sort", {type: "button", onclick: () => sort(i)}, name)));
	let by = sorted, down = true;

	const show = () => {
		const key = columns[by][3], sign = down ? -1 : 1;
		const compare = (a, b) => a === b ? 0 : (typeof a === "string" ? a.localeCompare(b, "en", {numeric: true}) : a - b);

		heads.forEach((h, i) => i === by ? h.setAttribute("aria-sort", down ? "descending" : "ascending")
			: h.removeAttribute("aria-sort"));
		body.replaceChildren(...rows.slice().sort((a, b) => sign * compare(key(a), key(b))).map((row) =>
			el("tr", null, columns.map(([name, numeric, cell], i) => el((i === 1 ? "th" : "td") + (numeric ? ".num" : ""),
				{"data-head": name, scope: i === 1 ? "row" : null}, cell(row))))));
	};
	const sort = (i) => {
		down = i === by ? !down : columns[i][1];
		by = i;
		show();
	};

	show();
	return el("div.scroll", {tabindex: "0", role: "group", "aria-label": caption},
		el("table.grid.findings", null, tableCaption(caption), el("thead", null, el("tr", null, heads)), body));
}

function drawFindings() {
	const rows = fleet.findings;
	const left_out = fleet.summary.findings - rows.length;

	fill("findings", el("h2", {id: "findings-title"}, "Findings"),
		rows.length ? sortableFindings("Members that differ from their peers. Severity 1 is the limit." + (unix ? " Times are UTC." : ""),
			findingColumns(), rows, 0)
			: el("p", null, "No member differs from its peers by more than the limits below", fleet.summary.partial ? ", in partial data." : "."),
		left_out > 0 ? el("p.muted", null, "The ", plural(left_out, "finding"), " of least severity are omitted here;  ",
			el("code", null, "culprit diagnose --json"), " lists all.") : null,
		fleet.summary.group ? el("p.muted", null, "A whole group differs from the other groups; none of its members is accused.") : null,
		fleet.summary.class ? el("p.muted", null, "A class is many members of many groups that differ in the same way, such as another model or role.") : null);
}

/* Where each of the equal parts of the time begins on the axis; long times without samples are
 * narrow. */
function axisParts(traces) {
	const n = traces[0].values.length, has = (i) => traces.some((t) => t.values[i] !== null), at = [0], gaps = [];

	for (let i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && has(end) === has(i);)
			end++;
		const gap = !has(i) && end - i > n / 12, width = gap ? n / 60 : end - i;

		if (gap)
			gaps.push([at[i], at[i] + width]);
		for (let k = 1; k <= end - i; k++)
			at.push(at[i] + width * k / (end - i));
	}
	return {at, gaps, inGap: (part) => gaps.some(([from, to]) => part > from && part < to)};
}

/* Like scale(), for times on that axis; place(part) maps the parts themselves. */
function timeScale(parts, from_s, to_s, left, right) {
	const n = parts.at.length - 1, place = (part) => left + (right - left) * part / parts.at[n];
	const partOf = (t) => {
		const i = Math.max(0, Math.min(n, (t - from_s) / (to_s - from_s) * n)), k = Math.min(n - 1, Math.floor(i));

		return parts.at[k] + (parts.at[k + 1] - parts.at[k]) * (i - k);
	};

	return Object.assign((t) => place(partOf(t)), {low: from_s, high: to_s, place, partOf});
}

/* The ratio of one member or group to its peers over time: a line at 1, a member's limit, and its
 * findings shaded. */
function tracePlot(t, parts) {
	const values = [...t.values, ...t.peaks].filter((v) => v !== null && v > 0), span = fleet.to_s - fleet.from_s;
	const low = Math.min(.8, ...values, .98 / (t.limit || 1)), high = Math.max(1.25, ...values, 1.02 * (t.limit || 1));
	const spans = t.findings.map((i) => fleet.findings[i]);
	const label = whom(t) + ", " + t.metric + ": ratio to its peers over time; median of the parts shown " +
		number(median(t.values)) + (t.limit ? ", limit " + number(t.limit) : "") + ". " +
		spans.map((f) => kind_words[f.kind] + " from " + moment(f.since_s) + (f.open ? " on" : " to " + moment(f.until_s))).join("; ");

	return plotPlace(label, 170, (width, height) => {
		const box = {left: 36, right: width - 6, top: 8, bottom: height - 20};
		const x = timeScale(parts, fleet.from_s, fleet.to_s, box.left, box.right), y = scale(low, high, box.bottom, box.top, true);
		const step = span / t.values.length, limit = t.effect < 1 ? 1 / t.limit : t.limit;
		const ticks = high / low < 4 ? [.5, .6, .7, .8, .9, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3].filter((v) => v >= low && v <= high) : logSteps(low, high, 8);

		const curve = (v) => v.map((one, i) => one === null || one <= 0 ? null : [x(fleet.from_s + (i + .5) * step), y(one)]);
		let last = -Infinity;
		const times = timeSteps(fleet.from_s, fleet.to_s, width / 75 * (parts.gaps.length ? 8 : 1)).filter((s) => {
			const free = !parts.gaps.length || (!parts.inGap(x.partOf(s)) && x(s) - last >= 70);

			last = free ? x(s) : last;
			return free;
		});

		return [parts.gaps.map(([from, to]) => svg("rect", {class: "gap", x: x.place(from), width: x.place(to) - x.place(from), y: box.top,
			height: box.bottom - box.top})),
		spans.map((f) => svg("rect", {class: "shade", x: x(f.since_s), y: box.top, height: box.bottom - box.top,
			width: Math.max(1.5, x(f.open ? fleet.to_s : f.until_s) - x(f.since_s))})),
		axes(x, y, box, times, (v) => timeLabel(v, unix, span), ticks, (v) => digits(v, 2)),
		svg("line", {class: "one", x1: box.left, x2: box.right, y1: y(1), y2: y(1)}),
		t.limit ? svg("line", {class: "limit", x1: box.left, x2: box.right, y1: y(limit), y2: y(limit)}) : [],
		lines(curve(t.peaks), "peak"), lines(curve(t.values))];
	});
}

function drawMembers() {
	const groups = fleet.traces.filter((t) => t.group !== undefined), members = fleet.traces.length - groups.length;
	const title = el("h2", {id: "members-title"}, groups.length ? "The worst groups and members over time" : "The worst members over time");

	if (!fleet.traces.length) {
		document.getElementById("members").hidden = document.getElementById("nav-members").hidden = true;
		return;
	}
	const parts = axisParts(fleet.traces);
	const unseen = fleet.findings.filter((f) => f.kind !== "class" && f.trace === undefined).length;
	const ill = [...groups, ...fleet.traces.filter((t) => t.group === undefined && t.findings.length)], others = fleet.traces.filter((t) => !t.findings.length);
	const card = (t) => {
		const i = fleet.traces.indexOf(t);

		return el("figure.card", {id: "member-" + i}, el("h3", null, path(whom(t))), tracePlot(t, parts),
			el("figcaption", null, t.group === undefined ? (i + 1) + ". " : null, t.metric, ", ", times(t.effect), ", severity ", number(t.severity),
				t.findings.length ? t.findings.map((k) => "; " + kind_words[fleet.findings[k].kind] + ", " +
					share(fleet.findings[k].share) + " of the time since " + moment(fleet.findings[k].since_s) +
					(fleet.findings[k].open ? "" : ", until " + moment(fleet.findings[k].until_s))) : "; no finding"));
	};
	const more = fold("The next " + plural(others.length, "member") + " in the ranking, without a finding", {open: !ill.length},
		el("div.plot-grid", null, others.map(card)));

	more.addEventListener("toggle", () => drawPlots(more));
	fill("members", title, el("p.muted", null, "Ratio of a member to its peers, or of a group's median to the other groups', as means over equal parts of the time, with the worst of each part as a thin line; above 1 is worse. ",
		parts.gaps.length ? "Grey: a long time without samples, drawn narrow. " : "",
		"Dashed: the ratio that a member's lasting difference must exceed. Shaded: the time of its findings."),
	unseen ? el("p.muted", null, plural(unseen, "finding"), unseen === 1 ? " has" : " have", " no plot: only the worst ",
		plural(members, "member"), groups.length ? " and " + plural(groups.length, "group") : "", " are drawn.") : null,
	el("div.plot-grid", null, ill.map(card)), others.length ? more : null);
}
