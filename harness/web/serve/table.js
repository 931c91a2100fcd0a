"use strict";
/* Rows of an answer as a table. A column's name ends with its unit: "max s". */

function cellText(v, name) {
	if (v === null)
		return "";
	if (typeof v !== "number")
		return v;
	if (/(^| )s$/.test(name))
		return duration(v);
	if (/bytes$|(^| )B(\/s)?$/.test(name))
		return bytes(v);
	return Number.isInteger(v) ? v.toLocaleString("en") : digits(v, 4);
}

/* 'links': by column, the filter that a click on its value sets. */
function tableOf(answer, caption, links) {
	const {columns, rows} = answer, numeric = columns.map((_, i) => rows.some((r) => typeof r[i] === "number"));
	const cell = (v, i) => {
		const text = cellText(v, columns[i]), link = links && links[columns[i]];

		return el(numeric[i] ? "td.num" : "td.text", null, link && v !== null ? el("button.link", {type: "button", title: "Show only this",
			onclick: () => link(String(v))}, text) : text);
	};

	return el("div.scroll", {tabindex: "0", role: "group", "aria-label": caption}, el("table", null,
		el("thead", null, el("tr", null, columns.map((c, i) => el(numeric[i] ? "th.num" : "th", {scope: "col"}, c.replace(/ s$/, ""))))),
		el("tbody", null, rows.map((r) => el("tr", null, r.map(cell))))));
}

const LINKS = {call: (v) => choose({call: v}), class: (v) => choose({call: v}), path: (v) => choose({path: v}), thread: (v) => choose({thread: v}),
	node: (v) => choose({node: v}), server: (v) => choose({node: v}), client: (v) => choose({node: v}), pid: (v) => choose({id: v}), tid: (v) => choose({id: v})};
