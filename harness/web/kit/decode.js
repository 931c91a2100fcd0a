"use strict";
/* Unpacks the page's data: base64 of zlib data. */

function fromBase64(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const raw = atob(text), bytes = new Uint8Array(raw.length);

	for (let i = 0; i < raw.length; i++)
		bytes[i] = raw.charCodeAt(i);
	return bytes;
}

/* A promise of an ArrayBuffer. */
async function inflated(text) {
	if (typeof DecompressionStream === "undefined")
		throw new Error("this browser has no DecompressionStream, which browsers have since 2023");
	const stream = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream("deflate"));

	return new Response(stream).arrayBuffer();
}
