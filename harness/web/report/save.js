"use strict";
/* Charts and tables as files: CSV of the values, PNG of the picture. */

function fileName(name, ending) {
	const text = (run.run + " " + name).replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[-.]+|-+$/g, "");

	return (text || "chart").slice(0, 80) + "." + ending;
}

/* One field: quoted if necessary, and never a spreadsheet formula. */
function csvField(v) {
	if (v === null || v === undefined)
		return "";
	const text = typeof v === "string" && /^[=+@\t\r-]/.test(v) && !Number.isFinite(Number(v)) ? "'" + v : String(v);

	return /[",\r\n]/.test(text) ? "\"" + text.replaceAll("\"", "\"\"") + "\"" : text;
}

function csvText(rows) {
	return rows.map((r) => r.map(csvField).join(",") + "\r\n").join("");
}

function save(blob, name) {
	const link = el("a", {href: URL.createObjectURL(blob), download: name});

	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/* An empty canvas with the page's background and room for a title. */
function sheet(width, height, title) {
	const ratio = 2, canvas = el("canvas", {width: Math.round(width * ratio), height: Math.round((height + 26) * ratio)});
	const context = canvas.getContext("2d");

	context.scale(ratio, ratio);
	context.fillStyle = colour("bg");
	context.fillRect(0, 0, width, height + 26);
	context.fillStyle = colour("fg");
	context.font = "600 13px system-ui, sans-serif";
	context.fillText(title, 6, 17, width - 12);
	context.translate(0, 26);
	return {canvas, context};
}

function dashOf(style) {
	return style.strokeDasharray === "none" ? [] : style.strokeDasharray.split(/[ ,]+/).map(parseFloat).filter(Number.isFinite);
}

function strokeAndFill(c, style, path, closed) {
	c.globalAlpha = Number(style.opacity);
	if (closed && style.fill !== "none") {
		c.fillStyle = style.fill;
		c.fill(path);
	}
	if (style.stroke !== "none" && parseFloat(style.strokeWidth) > 0) {
		c.strokeStyle = style.stroke;
		c.lineWidth = parseFloat(style.strokeWidth);
		c.setLineDash(dashOf(style));
		c.stroke(path);
	}
}

const shape_paths = {
	line: (p, n) => {
		p.moveTo(n("x1"), n("y1"));
		p.lineTo(n("x2"), n("y2"));
	},
	rect: (p, n) => p.rect(n("x"), n("y"), n("width"), n("height")),
	circle: (p, n) => p.arc(n("cx"), n("cy"), n("r"), 0, 2 * Math.PI),
	polyline: (p, n, e) => e.getAttribute("points").split(" ").forEach((xy, i) => p[i ? "lineTo" : "moveTo"](...xy.split(",").map(Number))),
};

/* Draws one element of a plot; plots consist only of these elements (plot.js). */
function paint(c, e) {
	const style = getComputedStyle(e), n = (name) => Number(e.getAttribute(name) || 0);
	const turned = /rotate\(([-\d.]+) ([-\d.]+) ([-\d.]+)\)/.exec(e.getAttribute("transform") || "");

	c.save();
	if (turned) {
		c.translate(Number(turned[2]), Number(turned[3]));
		c.rotate(Number(turned[1]) * Math.PI / 180);
		c.translate(-turned[2], -turned[3]);
	}
	if (e.tagName === "text") {
		c.globalAlpha = Number(style.opacity);
		c.fillStyle = style.fill;
		c.font = style.fontWeight + " " + style.fontSize + " " + style.fontFamily;
		c.textAlign = {middle: "center", end: "right"}[style.textAnchor] || "left";
		if (style.paintOrder.startsWith("stroke")) {
			c.strokeStyle = style.stroke;
			c.lineWidth = parseFloat(style.strokeWidth);
			c.strokeText(e.textContent, n("x"), n("y"));
		}
		c.fillText(e.textContent, n("x"), n("y"));
	} else if (shape_paths[e.tagName]) {
		const path = new Path2D();

		shape_paths[e.tagName](path, n, e);
		strokeAndFill(c, style, path, e.tagName !== "line");
	}
	c.restore();
	for (const child of e.children)
		paint(c, child);
}

/* A plot as a canvas. */
function picture(place, title) {
	const old = place.querySelector("canvas"), box = place.getBoundingClientRect();

	if (old) {
		const {canvas, context} = sheet(box.width, box.height, title);

		context.drawImage(old, 0, 0, box.width, old.height * box.width / old.width);
		return canvas;
	}
	const [, , width, height] = place.getAttribute("viewBox").split(" ").map(Number);
	const {canvas, context} = sheet(width, height, title);

	paint(context, place);
	return canvas;
}

/* The buttons of a chart; 'rows' makes its values, heads first. */
function saving(title, place, rows) {
	return el("span.saving", null,
		el("button.plain", {type: "button", "aria-label": "Values of " + title + " as CSV",
			onclick: () => save(new Blob([csvText(rows())], {type: "text/csv"}), fileName(title, "csv"))}, "CSV"),
		el("button.plain", {type: "button", "aria-label": "Picture of " + title + " as PNG",
			onclick: () => picture(place, run.run + ": " + title).toBlob((b) => save(b, fileName(title, "png")))}, "PNG"));
}

/* A chart with its title ('heading': "h3"), an explanation, and its buttons. */
function card(heading, title, text, place, rows, ...more) {
	return el("figure.card", null, el("div.card-head", null, el(heading, null, title), saving(title, place, rows)), place,
		el("figcaption", null, text), ...more);
}
