"use strict";
/* The samples of an attempt, unpacked: numbers of three digits, in the format of
 * harness/cli/report.h. */

const numbers_seen = new Map(); /* text keeps numbers exact: 602 and "e-3" make 0.602 */

function unpackNumber(code) {
	if (code < 2)
		return code ? 0 : null;
	if (!numbers_seen.has(code)) {
		const size = (code & 0x7fff) - 2;

		numbers_seen.set(code, Number((code & 0x8000 ? "-" : "") + (100 + size % 900) + "e" + (Math.floor(size / 900) - 10)));
	}
	return numbers_seen.get(code);
}

/* {metric: {server: [[second], [count], [sum], [largest], [bytes]]}}; largest is null if it was
 * omitted. */
function unpackSamples(what, bytes) {
	const half = bytes.length / 2, metrics = Object.create(null), n = what.seconds;
	let at = 0;

	for (const [name, m] of Object.entries(what.metrics)) {
		const servers = metrics[name] = Object.create(null), base = at;
		const columns = [...m.columns].filter((c) => c !== "=");
		const size = m.servers.length * n;
		const column = (letter) => columns.includes(letter) ? base + columns.indexOf(letter) * size : -1;
		const places = {c: column("c"), s: column("s"), m: column("m"), b: column("b")};
		const number = (place, i) => place < 0 ? 0 : unpackNumber(bytes[place + i] | bytes[half + place + i] << 8);

		m.servers.forEach((server, k) => {
			const c = servers[server] = [[], [], [], m.columns.includes("=") || places.m >= 0 ? [] : null, []];

			for (let t = 0; t < n; t++) {
				const i = k * n + t, sum = number(places.s, i);

				if (sum === null)
					continue;
				c[0].push(t);
				c[1].push(places.c < 0 ? m.count : number(places.c, i));
				c[2].push(sum);
				if (c[3])
					c[3].push(places.m < 0 ? sum : number(places.m, i));
				c[4].push(number(places.b, i));
			}
		});
		at += columns.length * size;
	}
	return metrics;
}
