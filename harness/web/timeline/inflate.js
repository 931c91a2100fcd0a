"use strict";
/* Unpacks zlib data (RFC 1950 and 1951) where the browser has no DecompressionStream. */

/* Codes of a Huffman tree from the lengths of its symbols: how many of each length, and the symbols in order. */
function huffman(lengths) {
	const counts = new Uint16Array(16), next = new Uint16Array(16), symbols = new Uint16Array(lengths.length);

	for (const l of lengths)
		counts[l]++;
	counts[0] = 0;
	for (let l = 1; l < 15; l++)
		next[l + 1] = next[l] + counts[l];
	lengths.forEach((l, symbol) => {
		if (l)
			symbols[next[l]++] = symbol;
	});
	return {counts, symbols};
}

function inflate(packed) {
	const order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
	const fixed = [huffman(Array.from({length: 288}, (_, i) => i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8)),
		huffman(new Array(30).fill(5))];
	let at = 2, held = 0, have = 0, size = 0, out = new Uint8Array(Math.max(1024, packed.length * 4));

	function bits(n) {
		while (have < n) {
			if (at >= packed.length)
				throw new Error("the file is cut short");
			held |= packed[at++] << have;
			have += 8;
		}
		const value = held & (1 << n) - 1;

		held >>>= n;
		have -= n;
		return value;
	}
	function symbol(tree) {
		for (let length = 1, code = 0, first = 0, index = 0; length < 16; length++) {
			code |= bits(1);
			const count = tree.counts[length];

			if (code - first < count)
				return tree.symbols[index + code - first];
			index += count;
			first = first + count << 1;
			code <<= 1;
		}
		throw new Error("the file is damaged");
	}
	function room(n) {
		if (size + n <= out.length)
			return;
		const larger = new Uint8Array(Math.max(out.length * 2, size + n));

		larger.set(out);
		out = larger;
	}
	function trees() {
		const nLiterals = bits(5) + 257, nDistances = bits(5) + 1, nLengths = bits(4) + 4;
		const short = new Array(19).fill(0), lengths = [];

		for (let i = 0; i < nLengths; i++)
			short[order[i]] = bits(3);
		for (const tree = huffman(short); lengths.length < nLiterals + nDistances;) {
			const s = symbol(tree);
			let times = 1, value = s;

			if (s === 16) {
				value = lengths[lengths.length - 1];
				times = 3 + bits(2);
			} else if (s > 16) {
				value = 0;
				times = s === 17 ? 3 + bits(3) : 11 + bits(7);
			}
			while (times--)
				lengths.push(value);
		}
		return [huffman(lengths.slice(0, nLiterals)), huffman(lengths.slice(nLiterals, nLiterals + nDistances))];
	}
	function stored() {
		held = have = 0;
		const n = packed[at] | packed[at + 1] << 8;

		at += 4;
		room(n);
		out.set(packed.subarray(at, at + n), size);
		at += n;
		size += n;
	}
	function codes([literals, distances]) {
		for (;;) {
			const s = symbol(literals);

			if (s === 256)
				return;
			room(258);
			if (s < 256) {
				out[size++] = s;
				continue;
			}
			const l = s - 257, lx = l < 8 || l === 28 ? 0 : (l >> 2) - 1;
			const length = l === 28 ? 258 : l < 8 ? l + 3 : ((4 + (l & 3)) << lx) + 3 + bits(lx);
			const d = symbol(distances), dx = d < 4 ? 0 : (d >> 1) - 1;
			const distance = d < 4 ? d + 1 : ((2 + (d & 1)) << dx) + 1 + bits(dx);

			for (let i = 0; i < length; i++, size++)
				out[size] = out[size - distance];
		}
	}
	for (let last = 0; !last;) {
		last = bits(1);
		const type = bits(2);

		if (type === 0)
			stored();
		else
			codes(type === 1 ? fixed : trees());
	}
	return out.subarray(0, size);
}
