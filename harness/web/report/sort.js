"use strict";
/* Tables that are sorted by a column when its head is clicked. */

/* The sort key of a cell: its number if it begins with one, otherwise its text. */
function sortKey(text) {
	const m = /^\s*([+-]?(?:\d[\d,]*)?\.?\d+(?:e[+-]?\d+)?)\s*(µs|ms|min|s|KiB|MiB|GiB|TiB|B)?\b/i.exec(text);
	const unit = {"µs": 1e-6, ms: 1e-3, min: 60, KiB: 1024, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40};

	return m ? Number(m[1].replaceAll(",", "")) * (own(unit, m[2] || "") || 1) : null;
}

function sortOrder(a, b) {
	const x = sortKey(a), y = sortKey(b);

	if (x !== null && y !== null)
		return x - y;
	return (x === null) - (y === null) || a.localeCompare(b);
}

/* Turns heads into buttons. 'rows' returns [{cells, move}] each time: the cells' texts, and the
 * elements to move together. */
function sortable(head, body, rows) {
	const heads = [...head.cells];

	heads.forEach((th, i) => {
		const content = [...th.childNodes];

		if (!th.textContent.trim())
			return;
		th.replaceChildren(el("button.sort", {type: "button", onclick: () => {
			const down = th.getAttribute("aria-sort") === "ascending", sign = down ? -1 : 1;

			heads.forEach((h) => h.removeAttribute("aria-sort"));
			th.setAttribute("aria-sort", down ? "descending" : "ascending");
			const order = rows().map((r, k) => ({...r, k, text: r.cells[i].textContent}));

			order.sort((a, b) => sign * sortOrder(a.text, b.text) || a.k - b.k);
			body.append(...order.flatMap((r) => r.move));
		}}, content));
	});
}

/* A plain table, in which each row moves alone. */
function sortableTable(table) {
	const body = table.tBodies[0];

	if (body.rows.length > 1)
		sortable(table.tHead.rows[0], body, () => [...body.rows].map((r) => ({cells: r.cells, move: [r]})));
	return table;
}
