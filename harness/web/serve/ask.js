"use strict";
/* The page's state, and its requests to the program. Text from a log becomes text nodes, never
 * markup. */

const CLASSES = ["read", "write", "copy", "open", "close", "poll", "sync", "other"];
const byId = (id) => document.getElementById(id);
const token = new URLSearchParams(location.search).get("token") || "";

/* state: the answer of /state. chosen: decoded from the address after #; times in ns, as texts. */
const app = {state: null, chosen: {}, tab: "charts"};
const KEYS = ["attempt", "from", "to", "last", "node", "call", "thread", "path", "id", "failed", "other", "tab"];

/* An answer of the program; throws an Error with its message if there is none. */
async function ask(path, parameters, options) {
	const q = new URLSearchParams({token});

	for (const [key, value] of Object.entries(parameters || {}))
		if (value !== undefined && value !== null && value !== "")
			q.set(key, value);
	let answer;

	try {
		answer = await fetch(path + "?" + q, {cache: "no-store", ...options});
	} catch (e) {
		if (e.name === "AbortError")
			throw e;
		throw new Error("the program no longer answers; is 'culprit serve' still running?");
	}
	const text = await answer.text();
	let value;

	try {
		value = JSON.parse(text);
	} catch {
		throw new Error(text.trim() || "the program answers " + answer.status);
	}
	if (value.error !== undefined)
		throw new Error(value.error);
	return value;
}

/* The filters in the form for the program. */
function focus() {
	const c = app.chosen, out = {attempt: attempt() || "", node: c.node, thread: c.thread, path: c.path, id: c.id, failed: c.failed ? 1 : ""};

	if (c.call)
		out[CLASSES.includes(c.call) ? "class" : "call"] = c.call;
	if (c.from && c.to) {
		out.from = c.from;
		out.to = c.to;
	} else if (recent()) {
		out.from = String(recent()[0]);
		out.to = String(recent()[1]);
	}
	return out;
}

const LASTS = [["30", "30 s"], ["60", "1 min"], ["300", "5 min"], ["1800", "30 min"], ["0", "all"]];

/* The last seconds of a growing session, [from, to] in ns: as chosen, otherwise LAST_S. NULL:
 * show everything. */
const LAST_S = 300;

function recent() {
	const {goes_on, extent} = app.state, s = app.chosen.last ? Number(app.chosen.last) : LAST_S, from = extent.to - s * 1e9;

	return goes_on && s && from > extent.from ? [Math.round(from), extent.to + 1] : null;
}

function attempt() {
	return Number(app.chosen.attempt) || app.state.attempt;
}

/* [from, to] in seconds: the range of the charts. */
function shown() {
	const c = app.chosen, x = app.state.extent;

	if (c.from && c.to)
		return [Number(c.from) / 1e9, Number(c.to) / 1e9];
	if (recent())
		return recent().map((ns) => ns / 1e9);
	return [x.from / 1e9, Math.max(x.to, x.from + 1000) / 1e9];
}

function marksShown() {
	const one = app.state.attempts.find((a) => a.attempt === attempt());

	return one ? one.marks : [];
}

function readAddress() {
	const q = new URLSearchParams(location.hash.slice(1));

	app.chosen = {};
	for (const key of KEYS)
		if (q.get(key))
			app.chosen[key] = q.get(key);
	for (const key of ["from", "to"])
		if (!/^-?\d+$/.test(app.chosen[key] || "0"))
			delete app.chosen[key];
	if (!LASTS.some(([s]) => s === app.chosen.last))
		delete app.chosen.last;
	app.tab = app.chosen.tab || "charts";
}

/* Changes the selection; the browser's Back button undoes it. */
function choose(changes) {
	const c = {...app.chosen, ...changes}, q = new URLSearchParams();

	for (const key of KEYS)
		if (c[key])
			q.set(key, c[key]);
	const hash = "#" + q;

	if (hash === (location.hash || "#"))
		return;
	history.pushState(null, "", location.pathname + location.search + hash);
	readAddress();
	chosenChanged();
}

function zoomTo(from, to) {
	const x = app.state.extent, least = 1e-6;

	from = Math.max(from, x.from / 1e9);
	to = Math.min(to, (x.to + 1) / 1e9);
	if (!(to - from > least))
		return;
	const a = Math.round(from * 1e9), b = Math.round(to * 1e9);

	if (a <= x.from && b >= x.to)
		choose({from: "", to: "", last: ""});
	else
		choose({from: String(a), to: String(b)});
}

function complain(text) {
	byId("trouble").hidden = !text;
	byId("trouble").textContent = text || "";
}
