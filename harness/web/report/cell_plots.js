"use strict";
/* Plots of an opened cell on the same time axis: a line per server, a row per server, events,
 * scores against limits. */

const plot_left = 80, plot_right = 10;

function shortened(name, n) {
	return name.length > n ? name.slice(0, n - 1) + "…" : name;
}

/* The seconds of a cell from left to right. */
function secondsScale(seconds, width, left) {
	return scale(0, Math.max(1, seconds), left || plot_left, width - plot_right);
}

function shadeOf(window_, x, top, bottom) {
	return window_ && window_.shown_to > window_.shown_from ? svg("rect", {class: "shade", x: x(window_.shown_from), y: top,
		width: Math.max(1, x(window_.shown_to) - x(window_.shown_from)), height: bottom - top}) : null;
}

/* 'rows': lines of chartData. 'o': {height, window_, limit, log, unit, factor, small}. */
function serverLines(label, seconds, rows, o) {
	return plotPlace(label, o.height, (width, height) => {
		const values = rows.flatMap((r) => r.values).filter((v) => v !== null && (!o.log || v > 0));
		const all = o.limit === undefined ? values : [...values, o.limit];
		const low = o.log ? Math.min(...all, 1) : Math.min(0, ...all), high = Math.max(...all, low + (o.log ? 1 : 1e-12));
		const box = {left: plot_left, right: width - plot_right, top: 6, bottom: height - (o.small ? 6 : 20)};
		const x = secondsScale(seconds, width), y = scale(low, high * 1.04, box.bottom, box.top, o.log);
		const ticks = o.small ? [low, high] : o.log ? logSteps(low, high, 6) : roundSteps(low, high, 4);
		const value = (v) => digits(v * (o.factor || 1), 3);

		return [shadeOf(o.window_, x, box.top, box.bottom),
			axes(x, y, box, o.small ? [] : roundSteps(0, seconds, 8), String, ticks, value),
			[...rows].sort((a, b) => a.victim - b.victim).map((r) => lines(r.values.map((v, t) => v === null || (o.log && v <= 0) ? null
				: [x(t + .5), y(v)])).map((e) => {
				e.classList.add("of-" + r.style.stroke);
				if (r.style.dash.length && e.tagName === "polyline")
					e.setAttribute("stroke-dasharray", r.style.dash.join(" "));
				e.append(svg("title", {}, r.server + (r.victim ? " (victim)" : "")));
				return e;
			})),
			o.limit === undefined ? null : [svg("line", {class: "limit", x1: box.left, x2: box.right, y1: y(o.limit), y2: y(o.limit)}),
				text(box.right - 4, y(o.limit) - 5, "end", "limit " + digits(o.limit, 3), {class: "limit-text"})]];
	});
}

function valueRows(seconds, rows) {
	return [["second", ...rows.map((r) => r.server)], ...Array.from({length: seconds}, (_, t) => [t, ...rows.map((r) => r.values[t])])];
}

const heat_columns = 240;

/* A row per server, a column per second (or per several, with their maximum); colour by value. */
function heatMap(label, seconds, rows, window_, unit, factor) {
	const tall = Math.min(18, Math.max(6, 360 / rows.length)), join = Math.ceil(seconds / heat_columns);
	const sorted = rows.flatMap((r) => r.values).filter((v) => v !== null).sort((a, b) => a - b);
	const low = sorted[0] || 0, above = sorted.filter((v) => v > low); /* one outlier must not hide the differences of the others */
	const high = above.length ? above[Math.floor((above.length - 1) * .98)] : low;
	const shade = (v) => "h" + (high > low ? Math.max(0, Math.min(8, Math.round(8 * (v - low) / (high - low)))) : 0);

	return plotPlace(label, rows.length * tall + 26, (width, height) => {
		const x = secondsScale(seconds, width), bottom = height - 22, wide = x(join) - x(0);

		return [rows.map((r, k) => {
			const y = 4 + k * tall, cells = [];

			for (let t = 0; t < seconds; t += join) {
				const part = r.values.slice(t, t + join).filter((v) => v !== null);

				if (part.length)
					cells.push(svg("rect", {class: shade(Math.max(...part)), x: x(t), y, width: wide + .3, height: tall - 1},
						svg("title", {}, r.server + ", second " + t + ": " + digits(Math.max(...part) * factor, 3) + " " + unit)));
			}
			return [tall >= 9 ? text(plot_left - 6, y + tall - 4, "end", shortened(r.server, 11), {class: r.victim ? "victim-text" : ""}) : null, cells];
		}),
		window_ && window_.shown_to > window_.shown_from ? [window_.shown_from, window_.shown_to].map((t) => svg("line", {class: "edge", x1: x(t), x2: x(t), y1: 0,
			y2: bottom})) : null,
		roundSteps(0, seconds, 8).map((t) => text(x(t), bottom + 15, "middle", String(t)))];
	});
}

const step_words = {inject: "inject", verify: "verify", onset: "verified", "verify-again": "verify again", undo: "undo", offset: "undone",
	workload: "workload", stop: "stop", trace: "trace", begin: "begin", collect: "collect"};

/* The harness's acts, in seconds of the measurement: [{at, what}]. Older runs recorded only onset
 * and offset. */
function stepsOf(attempt, detail) {
	const since = (ns) => (ns - attempt.start_ns) / 1e9;
	const known = ((detail || {}).steps || []).filter((s) => s && typeof s.at_ns === "number")
		.map((s) => ({at: since(s.at_ns), what: own(step_words, s.step) || String(s.step)}));

	if (known.length)
		return known;
	return [[attempt.onset_ns, "verified"], [attempt.offset_ns, "undone"]].filter(([ns]) => ns).map(([ns, what]) => ({at: since(ns), what}));
}

const event_classes = {"server-error": "bad", "app-error": "bad", "server-signal": "end", "server-end": "end", "link-end": "end",
	"app-slow": "slow", "link-quiet": "slow"};
const most_lanes = 24;

/* Errors and hangs by kind and place: [{name, kind, bars: [{from, to, n, what, usual}]}]. Kinds
 * that also occurred before the fault are usual. */
function eventLanes(events, window_) {
	const lanes = new Map(), before = new Set();
	const what = (e) => [e.detail && e.detail.call, e.detail && (e.detail.error || e.detail.signal || e.detail.state)].filter(Boolean).join(" ");
	const key = (e) => JSON.stringify([e.kind, e.server, e.client]);

	for (const e of events)
		if (window_ && e.time_s < window_.from)
			before.add(key(e) + what(e));
	for (const e of events) {
		if (!own(event_classes, e.kind))
			continue;
		const lane = lanes.get(key(e)) || {name: [e.server, e.client].filter(Boolean).join("/"), kind: e.kind, bars: []};

		lane.bars.push({from: e.time_s, to: Math.max(e.time_s, (e.detail || {}).last_s || 0), n: (e.detail || {}).count || 1, what: what(e),
			usual: before.has(key(e) + what(e))});
		lanes.set(key(e), lane);
	}
	const fresh = (l) => l.bars.filter((b) => !b.usual).length;

	return [...lanes.values()].sort((a, b) => a.kind.localeCompare(b.kind) || fresh(b) - fresh(a) || a.name.localeCompare(b.name));
}

/* Lanes on the time axis of a cell: phases, the harness's acts, accusations, errors and hangs. */
function whatHappened(cell, attempt, data) {
	const window_ = faultWindow(attempt), n = attempt.seconds || 0;
	const steps = stepsOf(attempt, data.detail).filter((s) => s.at >= 0 && s.at <= n);
	const phases = window_ ? [["before", 0, window_.from], [cell.victims.length ? "fault on " + cell.victims.join(", ") : "look-alike", window_.from, window_.to],
		["after", window_.to, n]] : [["no fault", 0, n]];
	const marks = indictments(data.verdicts), accusers = run.real.filter((d) => data.verdicts.some((v) => v.detector === d));
	const all = eventLanes(data.events, window_), events = all.slice(0, most_lanes), tall = 19;
	const lanes = 2 + accusers.length + events.length;
	const label = "What happened, in seconds: " + phases.filter(([, a, b]) => b > a).map(([w, a, b]) => w + " from " + duration(Math.max(0, a)) + " to " +
		duration(Math.min(n, b))).join("; ") + ". " + steps.map((s) => s.what + " at " + duration(s.at)).join("; ") + ". " +
		(marks.map((m) => m.detector + " accused " + m.server + " at " + duration(m.at)).join("; ") || "Nobody accused at a time") + ". " +
		plural(all.length, "lane") + " of errors and hangs.";
	const place = plotPlace(label, lanes * tall + 26, (width, height) => {
		const names = Math.max(...accusers.map((d) => d.length), ...events.map((l) => l.name.length), 0);
		const left = Math.max(plot_left, Math.min(8 + Math.ceil(6.2 * names), Math.floor(width / 3)));
		const x = secondsScale(n, width, left), bottom = height - 22, y = (k) => 3 + k * tall;
		const name = (k, what, more) => text(left - 6, y(k) + 13, "end", shortened(what, Math.floor((left - 8) / 6.2)), more);
		const edge = width - plot_right;
		let busy = left; /* right end of the last mark and its label */

		return [shadeOf(window_, x, 0, bottom), roundSteps(0, n, 8).map((t) => [svg("line", {class: "rule", x1: x(t), x2: x(t), y1: 0, y2: bottom}),
			text(x(t), bottom + 15, "middle", String(t))]),
		name(0, "phase"), phases.filter(([, a, b]) => b > a && b > 0 && a < n).map(([what, a, b]) => [svg("rect", {class: "phase" + (window_ && a === window_.from ? " on" : ""),
			x: x(a), y: y(0) + 1, width: Math.max(1, x(b) - x(a) - 1), height: tall - 5}, svg("title", {}, what)),
		x(b) - x(a) > 40 ? text(x(Math.max(0, a)) + 4, y(0) + 12, "start", shortened(what, Math.floor((x(b) - x(a)) / 6.5)), {class: "in-bar"}) : null]),
		name(1, "harness"), steps.map((s, i) => {
			const at = x(s.at), wide = 7 + 6 * s.what.length, next = i + 1 < steps.length ? x(steps[i + 1].at) : edge;
			const anchor = at + wide <= Math.min(next, edge) ? "start" : at - wide >= busy ? "end" : null;

			busy = anchor === "start" ? at + wide : at;
			return [svg("line", {class: "step", x1: x(s.at), x2: x(s.at), y1: y(1), y2: y(1) + tall - 3}, svg("title", {}, s.what + " at " + duration(s.at))),
				anchor ? text(anchor === "start" ? at + 3 : at - 3, y(1) + 12, anchor, s.what) : null];
		}),
		accusers.map((d, k) => [name(2 + k, d), marks.filter((m) => m.detector === d).map((m) => {
			const right = cell.victims.includes(m.server), at = x(m.at), low = y(2 + k) + tall - 4;

			return [svg("polyline", {class: right ? "accused right" : "accused", points: [[at, low - 11], [at - 5, low], [at + 5, low], [at, low - 11]].map((p) => p.join(",")).join(" ")},
				svg("title", {}, d + " accused " + m.server + " at " + duration(m.at))),
			text(at + 8, low - 2, "start", m.server + (right ? " ✓" : " ✗"), {class: right ? "victim-text" : "wrong-text"})];
		})]),
		events.map((l, i) => {
			const k = 2 + accusers.length + i;

			return [name(k, l.name), l.bars.map((b) => svg("rect", {class: "event " + event_classes[l.kind] + (b.usual ? " usual" : ""), x: x(b.from), y: y(k) + 4,
				width: Math.max(2, x(b.to) - x(b.from)), height: tall - 9}, svg("title", {}, l.kind + ", " + b.what + ", " + plural(b.n, "time") + ", " + duration(b.from) +
					" to " + duration(b.to)))), text(left + 4, y(k) + 13, "start", l.kind, {class: "lane-kind"})];
		})];
	});
	const rows = () => [["lane", "what", "from_s", "to_s", "times"], ...phases.map(([w, a, b]) => ["phase", w, a, b, 1]),
		...steps.map((s) => ["harness", s.what, s.at, s.at, 1]), ...marks.map((m) => [m.detector, "accused " + m.server, m.at, m.at, 1]),
		...all.flatMap((l) => l.bars.map((b) => [l.name, l.kind + " " + b.what, b.from, b.to, b.n]))];

	return card("h5", "What happened", ["Phases, the harness's acts, accusations (triangles), and errors and hangs seen in the traces",
		all.some((l) => l.bars.some((b) => b.usual)) ? "; pale: of a kind that also occurred before the fault" : "", all.length > events.length ?
			"; " + (all.length - events.length) + " more lanes are in the CSV" : "", "."], place, rows);
}

/* A detector wrote the evidence: it can be anything. */
function scoresOf(verdict) {
	const s = (verdict.evidence || {}).scores;

	return isObject(s) && typeof s.limit === "number" && isObject(s.servers) && Object.values(s.servers).every(Array.isArray) ? s : null;
}

/* The scores of verdicts that include them (culprit.Scores), one chart each. */
function scoreCharts(cell, attempt, verdicts) {
	const window_ = faultWindow(attempt), n = attempt.seconds || 0;

	return verdicts.filter((v) => run.real.includes(v.detector) && scoresOf(v.verdict)).map((v) => {
		const s = scoresOf(v.verdict), rows = linesOf(Object.keys(s.servers), cell.victims,
			(server) => Array.from({length: n}, (_, t) => typeof s.servers[server][t] === "number" ? s.servers[server][t] : null));
		const title = v.detector + ": " + s.what;
		const most = rows.map((r) => [Math.max(...r.values.filter((x) => x !== null)), r]).filter(([x]) => Number.isFinite(x)).sort((a, b) => b[0] - a[0]);
		const said = most.slice(0, 4).map(([x, r]) => r.server + (r.victim ? " (victim) " : " ") + digits(x, 3)).join(", ");

		return card("h5", title, ["Score of each server against the limit of ", digits(s.limit, 3), ". Highest: ", said, "."],
			serverLines(title + ": score of each server over time, limit " + digits(s.limit, 3) + ". Highest: " + said, n, rows, {height: 190, window_,
				limit: s.limit, log: s.logarithmic === true && s.limit > 0}), () => valueRows(n, rows));
	});
}

/* All metrics, small. */
function smallMultiples(samples, attempt, victims, choose) {
	const window_ = faultWindow(attempt);

	return el("div.small-multiples.metrics", null, metricsIn(samples).map((name) => {
		const measure = measuresOf(name)[0], data = chartData(samples, name, measure, attempt, victims);
		const [unit, factor] = unitOf(measure, data.lines.flatMap((l) => l.values));

		return el("figure.small", null, el("figcaption", null, el("button.link", {type: "button", title: metricNamed(name).definition,
			"aria-label": "Show " + name + " large", onclick: () => choose(name)}, name), unit ? el("span.muted", null, " " + unit) : null),
		serverLines(name + ", " + measure.label + (unit ? ", in " + unit : "") + ", by server", data.seconds.length, data.lines,
			{height: 84, window_, factor, small: true}));
	}));
}
