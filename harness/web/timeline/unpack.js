"use strict";
/* The page's blocks: packed columns of numbers, written by html.c. */

/* The bytes of the block 'name': of what came last in a live page, else of the page, whose text is given back to the
   browser. */
async function unpacked(name) {
	const e = document.getElementById(name), packed = live.blocks ? live.blocks[name] : e.textContent;

	if (e)
		e.textContent = "";
	return new Uint8Array(await inflated(packed));
}

/* Reads consecutive integers in LEB128. */
class Numbers {
	constructor(bytes) {
		this.bytes = bytes;
		this.at = 0;
		this.last = 0;
	}

	next() {
		const bytes = this.bytes;
		let b = bytes[this.at++], value = b & 127;

		if (b < 128)
			return value;
		b = bytes[this.at++];
		value |= (b & 127) << 7;
		if (b < 128)
			return value;
		b = bytes[this.at++];
		value |= (b & 127) << 14;
		if (b < 128)
			return value;
		for (let unit = 2097152; b > 127; unit *= 128) {
			b = bytes[this.at++];
			if (b === undefined)
				throw new Error("the file is truncated");
			value += (b & 127) * unit;
		}
		return value;
	}

	/* A difference to the previous value; exact below 2^52. */
	delta() {
		const coded = this.next(), half = Math.floor(coded / 2);

		this.last += coded % 2 ? -half - 1 : half;
		return this.last;
	}

	/* 'n' differences, as BigInt: for numbers of 64 bits. */
	bigDeltas(n) {
		const out = new BigInt64Array(n);
		let last = 0n;

		for (let i = 0; i < n; i++) {
			let value = 0n, shift = 0n, b = 128;

			while (b > 127) {
				b = this.bytes[this.at++];
				value |= BigInt(b & 127) << shift;
				shift += 7n;
			}
			last = BigInt.asIntN(64, last + (value & 1n ? -(value >> 1n) - 1n : value >> 1n));
			out[i] = last;
		}
		return out;
	}

	/* 'n' IEEE 754 numbers of eight bytes. */
	doubles(n) {
		const out = new Float64Array(this.bytes.slice(this.at, this.at + 8 * n).buffer);

		this.at += 8 * n;
		return out;
	}
}
