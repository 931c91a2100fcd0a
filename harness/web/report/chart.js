"use strict";
/* A chart of one metric: a line per server over time, the victim's marked, the time of the fault shaded; next to it
the values as a table, on demand. */

/* Measures of calls and messages. */
const measures = [
	{name: "mean", label: "mean service time", unit: "s", of: (c, i) => c[1][i] ? c[2][i] / c[1][i] : null},
	{name: "max", label: "longest service time", unit: "s", of: (c, i) => c[3][i]},
	{name: "count", label: "events a second", unit: "", of: (c, i) => c[1][i]},
	{name: "bytes", label: "bytes a second", unit: "B", of: (c, i) => c[4][i]},
];
/* Measures of readings, which have their own units: over a server's devices or clients. */
const readingMeasures = [
	{name: "total", label: "total", of: (c, i) => c[2][i]},
	{name: "mean", label: "mean of its devices or clients", of: (c, i) => c[1][i] ? c[2][i] / c[1][i] : null},
	{name: "max", label: "largest of its devices or clients", of: (c, i) => c[3][i]},
];
const shortUnits = {bytes: "B", "bytes/s": "B/s"};
const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
const charts = new Set(); /* charts on the page, redrawn when the colours change */

/* The metric's definition; an unknown metric is treated as a service time. */
function metricNamed(name) {
	return run.metrics.find((m) => m.name === name) || {name, service_time: true};
}

function measuresOf(name) {
	const metric = metricNamed(name);

	return metric.service_time ? measures : readingMeasures.filter((m) => !run.brief || m.name !== "max").map((m) => ({...m,
		unit: own(shortUnits, metric.unit) || metric.unit}));
}

/* Colours of the current theme, from the style sheet. */
function colour(name) {
	return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function lineStyle(index, is_victim, n_victims_before) {
	return is_victim ? {stroke: "victim", dash: dashes[n_victims_before % 4], width: 2.5}
		: {stroke: "line" + index % 4, dash: dashes[Math.floor(index / 4) % 4], width: 1.4};
}

/* A line per server, the victims' marked: [{server, victim, values, style}]. */
function linesOf(servers, victims, values) {
	let peers = 0, marked = 0;

	return servers.map((server) => {
		const victim = victims.includes(server);

		return {server, victim, values: values(server), style: victim ? lineStyle(0, true, marked++) : lineStyle(peers++, false, 0)};
	});
}

/* {seconds, lines}: one value per second, null if not measured. */
function chartData(samples, metric, measure, attempt, victims) {
	const n = attempt.seconds || 0;
	const lines = linesOf(run.servers.length ? run.servers : Object.keys(samples[metric]), victims, (server) => {
		const columns = own(samples[metric], server), values = new Array(n).fill(null);

		if (columns)
			columns[0].forEach((second, i) => {
				if (second >= 0 && second < n)
					values[second] = measure.of(columns, i);
			});
		return values;
	});

	return {seconds: Array.from({length: n}, (_, i) => i), lines};
}

function metricsIn(samples) {
	return [...new Set([...run.metrics.map((m) => m.name), ...Object.keys(samples)])].filter((m) => own(samples, m));
}

/* When the fault was active, in seconds of the measurement; null for a control. */
function faultWindow(attempt) {
	if (!attempt.onset_ns || !attempt.start_ns)
		return null;
	const from = (attempt.onset_ns - attempt.start_ns) / 1e9;
	const to = attempt.offset_ns ? (attempt.offset_ns - attempt.start_ns) / 1e9 : attempt.seconds;

	return {from, to, shown_from: Math.max(0, from), shown_to: Math.min(attempt.seconds, to)};
}

function unitOf(measure, values) {
	if (measure.unit === "s") {
		const top = Math.max(0, ...values.filter((v) => v !== null));

		return top >= 1 ? ["s", 1] : top >= 1e-3 ? ["ms", 1e3] : ["µs", 1e6];
	}
	if (measure.unit === "B" || measure.unit === "B/s") {
		const top = Math.max(0, ...values.filter((v) => v !== null)), per = measure.unit.slice(1);

		return top >= 1 << 20 ? ["MiB" + per, 1 / (1 << 20)] : top >= 1024 ? ["KiB" + per, 1 / 1024] : [measure.unit, 1];
	}
	return [measure.unit, 1];
}

/* Text description of the chart, for screen readers. */
function chartText(data, window_, unit, factor, title) {
	const inside = (t) => window_ && t >= window_.shown_from && t < window_.shown_to;
	const middle = (line, during) => median(line.values.filter((_, t) => window_ === null || inside(t) === during));
	const value = (x) => digits(x * factor, 3) + (unit ? " " + unit : "");
	const said = data.lines.map((line) => {
		const parts = window_ === null ? [[middle(line, false), ""]] : [[middle(line, false), " outside"],
			[middle(line, true), " during the fault"]];

		return line.server + (line.victim ? " (victim) " : " ") + (parts.filter(([x]) => x !== null).map(([x,
			text]) => value(x) + text).join(" and ") ||
			"no value");
	});

	return title + ". Medians: " + said.join("; ") + ".";
}

/* The same in short for the visible caption: the victims, and the median of the others. */
function chartCaption(data, window_, unit, factor, title) {
	const inside = (t) => !window_ || (t >= window_.shown_from && t < window_.shown_to);
	const middle = (rows) => median(rows.flatMap((l) => l.values.filter((_, t) => inside(t))));
	const say = (who, rows) => {
		const m = middle(rows);

		return rows.length && m !== null ? who + " " + digits(m * factor, 3) + (unit ? " " + unit : "") : null;
	};
	const victims = data.lines.filter((l) => l.victim), others = data.lines.filter((l) => !l.victim);
	const said = [...victims.map((l) => say(l.server + " (victim)", [l])), say(victims.length ? "the others" : "all servers", others)].filter(Boolean);

	return title + ". " + (said.length ? "Median" + (window_ ? " during the fault" : "") + ": " + said.join("; ") + "." : "");
}

/* When detectors that use measurements first indicted a server: [{detector, server, at}]. */
function indictments(verdicts) {
	return verdicts.filter((v) => run.real.includes(v.detector) && v.metric === "any" &&
		v.verdict.time_s).flatMap((v) =>
		Object.entries(v.verdict.time_s).filter(([, at]) => typeof at === "number").map(([server,
			at]) => ({detector: v.detector, server, at})));
}

function plugin(window_, victims, marks) {
	return {hooks: {drawClear: (u) => {
		if (!window_ || window_.shown_to <= window_.shown_from)
			return;
		const x0 = u.valToPos(window_.shown_from, "x", true), x1 = u.valToPos(window_.shown_to, "x", true);

		u.ctx.save();
		u.ctx.fillStyle = colour("shade");
		u.ctx.fillRect(x0, u.bbox.top, x1 - x0, u.bbox.height);
		u.ctx.restore();
	}, draw: (u) => {
		const ratio = window.devicePixelRatio, base = u.bbox.top + u.bbox.height;

		for (const m of marks) {
			const at = u.valToPos(m.at, "x", true);

			u.ctx.fillStyle = colour(victims.includes(m.server) ? "victim" : "fg");
			u.ctx.beginPath();
			u.ctx.moveTo(at, base - 9 * ratio);
			u.ctx.lineTo(at - 5 * ratio, base);
			u.ctx.lineTo(at + 5 * ratio, base);
			u.ctx.fill();
		}
		if (!window_ || window_.from < 0)
			return;
		const x = u.valToPos(window_.from, "x", true);

		u.ctx.save();
		u.ctx.strokeStyle = u.ctx.fillStyle = colour("fg");
		u.ctx.lineWidth = ratio;
		u.ctx.setLineDash([4 * ratio, 3 * ratio]);
		u.ctx.beginPath();
		u.ctx.moveTo(x, u.bbox.top);
		u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
		u.ctx.stroke();
		u.ctx.font = 11 * ratio + "px system-ui, sans-serif";
		u.ctx.textAlign = "left";
		u.ctx.textBaseline = "top";
		u.ctx.fillText("onset, " + victims.join(", "), x + 4 * ratio, u.bbox.top + 3 * ratio);
		u.ctx.restore();
	}}};
}

function axis(label, size) {
	return {label, size, labelSize: 18, stroke: colour("fg"), grid: {stroke: colour("grid"), width: 1},
		ticks: {stroke: colour("grid"), width: 1}, font: "11px system-ui, sans-serif",
			labelFont: "11px system-ui, sans-serif"};
}

function plot(place, readout, data, window_, victims, marks, unit, factor, log, hidden) {
	const rows = [data.seconds, ...data.lines.map((l) => l.values.map((v) => v === null || (log &&
		v <= 0) ? null : v * factor))];
	const say = (u) => {
		const i = u.cursor.idx;

		readout.textContent = i === null || i === undefined ? "" : "second " + i + ": " + data.lines.map((l, k) =>
			l.server + " " + (rows[k + 1][i] === null ? "-" : digits(rows[k + 1][i], 3))).join(", ") +
				(unit ? " (" + unit + ")" : "");
	};
	const empty = rows.slice(1).every((r) => r.every((v) => v === null));

	return new uPlot({
		width: Math.max(260, place.clientWidth), height: 260, legend: {show: false}, plugins: [plugin(window_,
			victims, marks)],
		cursor: {y: false, drag: {x: false, y: false}, points: {size: 6}},
		scales: {x: {time: false, range: () => [0, Math.max(1, data.seconds.length)]},
			y: {distr: log ? 3 : 1, range: empty ? [log ? 1 : 0, 10] : log ? undefined : (u, low,
				high) => [0, high > 0 ? high * 1.06 : 1]}},
		axes: [axis("seconds since the workload began", 32), axis(unit || "a second", 60)],
		series: [{}, ...data.lines.map((l, k) => ({label: l.server, stroke: colour(l.style.stroke),
			width: l.style.width,
			dash: l.style.dash, show: !hidden.has(l.server), spanGaps: false,
			points: {show: data.seconds.length <= 120, size: l.victim ? 5 : 4,
				fill: colour(l.style.stroke), stroke: colour(l.style.stroke)}}))],
		hooks: {setCursor: [say]},
	}, rows, place);
}

function valuesTable(data, title, unit, factor, window_) {
	return grid(title + (unit ? ", " + unit : ""), ["second", ...data.lines.map((l) => l.server +
		(l.victim ? " (victim)" : ""))],
		data.seconds.map((t) => [t + (window_ && t + 1 > window_.from && t < window_.to ? " *" : ""),
			...data.lines.map((l) => l.values[t] === null ? "-" : digits(l.values[t] * factor, 3))]),
		{numeric: [0, ...data.lines.map((_, i) => i + 1)]});
}

function option(value, label, selected) {
	return el("option", {value, selected: value === selected}, label);
}

/* Ratio of the medians of victim and peers during the fault, inverted if below 1. */
function apart(samples, metric, attempt, victims, window_) {
	const data = chartData(samples, metric, measures[0], attempt, victims);
	const inside = (line) => line.values.filter((_, t) => t >= window_.shown_from && t < window_.shown_to);
	const victim = median(data.lines.filter((l) => l.victim).flatMap(inside)),
		peers = median(data.lines.filter((l) => !l.victim).flatMap(inside));

	return victim && peers ? Math.max(victim / peers, peers / victim) : 1;
}

/* Metrics of a resource, for verdicts that do not name theirs. */
const resource_metrics = {
	disk: ["disk_busy_s", "disk_queue_s", "dwrite", "dread"], storage: ["dwrite", "dread"], cpu: ["cpu_busy_s", "cpu_pressure_s"],
	memory: ["memory_available_bytes"], network: ["nsread", "ncread", "nsbulk", "ncbulk"], "network/hog": ["nic_received_bytes", "nic_sent_bytes"],
	"network/receive-loss": ["client_tcp_retransmitted_segments", "tcp_out_of_order_segments"],
	"network/send-loss": ["tcp_retransmitted_segments", "client_tcp_out_of_order_segments"],
};

/* The metric to show first: that of a verdict, preferably of a right one and of an accusation; otherwise one of the
 * fault's resource; otherwise the one in which the victims stand out most. */
function firstMetric(samples, verdicts, attempt, cell) {
	const victims = cell.victims, times = Object.keys(samples).filter((m) => metricNamed(m).service_time);
	const names = times.length ? times : Object.keys(samples), window_ = faultWindow(attempt);
	const size = (m) => Object.values(samples[m]).reduce((n, c) => n + c[0].length, 0);
	const most = (list, of) => list.map((m) => [of(m), m]).sort((a, b) => b[0] - a[0])[0];
	const clearest = (list) => list.length && (window_ ? most(list, (m) => apart(samples, m, attempt, victims, window_))[1] : list[0]);
	const there = (list) => (list || []).filter((m) => own(samples, m) && size(m));
	const of_resource = (r) => clearest(there(own(resource_metrics, r || "") || own(resource_metrics, String(r).split("/")[0])));
	const rank = (v) => {
		const said = v.verdict.indicted || [];

		return victims.length && victims.every((s) => said.includes(s)) ? 2 : said.length ? 1 : 0;
	};
	const said = verdicts.filter((v) => run.real.includes(v.detector)).sort((a, b) => rank(b) - rank(a));

	for (const v of said) {
		const scores = scoresOf(v.verdict);
		const metric = there(scores && Array.isArray(scores.metrics) ? scores.metrics : [])[0] || (own(samples, v.metric) && rank(v) ? v.metric : null) ||
			(rank(v) ? of_resource(v.verdict.resource) : null);

		if (metric)
			return metric;
	}
	if (victims.length && of_resource(cell.resource))
		return of_resource(cell.resource);
	const many = most(names, size); /* with few samples a ratio means little */
	const out = window_ ? most(names, (m) => 4 * size(m) < many[0] ? 0 : apart(samples, m, attempt, victims, window_)) : [1];

	return out[0] > 1 ? out[1] : many[1];
}

/* A figure with its controls; 'samples' has at least one metric. 'id' is unique in the page. */
function chart(id, samples, verdicts, attempt, cell) {
	const victims = cell.victims, names = metricsIn(samples);
	const state = {metric: firstMetric(samples, verdicts, attempt, cell), log: false, hidden: new Set()};

	state.measure = measuresOf(state.metric)[0];
	const place = el("div.plot", {role: "img"}), readout = el("output.readout", {"aria-live": "off"});
	const caption = el("figcaption", {id: id + "-text"}), keys = el("div.keys", {role: "group",
		"aria-label": "Servers shown"});
	const table = fold("Values as a table", {}, el("p")), heat = el("div.heat-map");
	const shown_rows = () => {
		const data = chartData(samples, state.metric, state.measure, attempt, victims);

		return valueRows(data.seconds.length, data.lines);
	};
	const window_ = faultWindow(attempt), marks = indictments(verdicts);
	let drawn = null;

	const redraw = () => {
		const data = chartData(samples, state.metric, state.measure, attempt, victims);
		const [unit, factor] = unitOf(state.measure, data.lines.flatMap((l) => l.values));
		const title = state.metric + ", " + state.measure.label + ", by server" + (window_ ? "; " +
			windowText(window_) : "; no fault");
		const definition = metricNamed(state.metric).definition;

		if (drawn)
			drawn.destroy();
		if (place.isConnected)
			drawn = plot(place, readout, data, window_, victims, marks, unit, factor, state.log, state.hidden);
		const accused = (marks.length ? " First indicted (triangles): " + marks.map((m) =>
			m.server + " by " + m.detector + " at " + duration(m.at)).join("; ") + "." : "");
		const text = chartText(data, window_, unit, factor, title) + accused;

		if (heat.of !== title) {
			const map = heatMap(title + ": the same as a row a server and a column a second", data.seconds.length, data.lines, window_, unit || "", factor);

			heat.of = title;
			heat.replaceChildren(el("div.card-head", null, el("span.muted", null, "Each server's seconds; a stronger colour is more"),
				saving(title + ", by second", map, shown_rows)), map);
		}
		drawPlots(heat);
		place.setAttribute("aria-label", text);
		caption.replaceChildren(chartCaption(data, window_, unit, factor, title) + accused, definition ? el("span.muted", null, " " + state.metric + ": " +
			definition + ".") : "");
		keys.replaceChildren(...data.lines.map((l) => el("button.key", {type: "button",
			"aria-pressed": String(!state.hidden.has(l.server)),
			onclick: (e) => {
				if (!state.hidden.delete(l.server))
					state.hidden.add(l.server);
				e.currentTarget.setAttribute("aria-pressed", String(!state.hidden.has(l.server)));
				drawn.setSeries(data.lines.indexOf(l) + 1, {show: !state.hidden.has(l.server)});
			}}, svg("svg", {viewBox: "0 0 28 8", class: "sample " + l.style.stroke, "aria-hidden": "true"},
			svg("line", {x1: 0, x2: 28, y1: 4, y2: 4, "stroke-width": l.style.width,
				"stroke-dasharray": l.style.dash.join(" ") || "none"})),
		l.server + (l.victim ? " (victim)" : ""))));
		if (table.open)
			fillTable();
		table.data = () => valuesTable(data, title, unit, factor, window_);
	};
	const fillTable = () => table.querySelector("div").replaceChildren(table.data ? table.data() : "", window_ ?
		el("p.muted", null, "* the fault acted in this second") : "");
	const choose = (what) => (e) => {
		what(e.target);
		redraw();
		if (table.open)
			fillTable();
	};

	const measureSelect = el("select", {onchange: choose((t) => {
		state.measure = measuresOf(state.metric).find((m) => m.name === t.value);
	})});
	/* The chosen measure is kept if the new metric is of the same kind. */
	const offer = (same) => {
		const all = measuresOf(state.metric);

		state.measure = (same && all.find((m) => m.name === state.measure.name)) || all[0];
		measureSelect.replaceChildren(...all.map((m) => option(m.name, m.label, state.measure.name)));
	};
	const group = (label, list) => list.length ? el("optgroup", {label}, list.map((m) => option(m, m, state.metric))) : null;
	const times = names.filter((m) => metricNamed(m).service_time), readings = names.filter((m) => !times.includes(m));

	offer(false);
	table.addEventListener("toggle", () => table.open && fillTable());
	place.addEventListener("draw", redraw);
	charts.add(place);
	const metricSelect = el("select", {onchange: choose((t) => {
		const same = metricNamed(state.metric).service_time === metricNamed(t.value).service_time;

		state.metric = t.value;
		offer(same);
	})}, readings.length ? [group("Service times", times), group("Readings", readings)]
		: names.map((m) => option(m, m, state.metric)));
	const figure = el("figure.chart", {"aria-labelledby": id + "-text"},
		el("div.choices", null, el("label", null, "Metric ", metricSelect), el("label", null, "Shown ", measureSelect),
			el("label.tick", null, el("input", {type: "checkbox",
				onchange: choose((t) => { state.log = t.checked; })}), " logarithmic"),
			saving(id + " measurements", place, shown_rows)),
		keys, place, readout, heat, caption, table);

	/* Selects another metric, from another part of the cell. */
	figure.show = (name) => {
		metricSelect.value = name;
		metricSelect.dispatchEvent(new Event("change"));
		metricSelect.focus();
		figure.scrollIntoView({block: "nearest"});
	};
	return figure;
}

function windowText(w) {
	return "fault from " + (w.from < 0 ? duration(-w.from) + " before the measurement" : duration(w.from)) +
		" to " + duration(w.to);
}

/* Draws the charts just added to the page, or all. */
function drawCharts(within) {
	for (const place of charts) {
		if (!place.isConnected)
			charts.delete(place);
		else if (!within || within.contains(place))
			place.dispatchEvent(new Event("draw"));
	}
}
