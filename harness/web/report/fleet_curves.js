"use strict";
/* Curves over all members: severity by rank, and against labels ROC and precision-recall. */

function rankingPlot() {
	const points = fleet.curve.filter(([, s]) => s > 0), least = Math.max(1e-3, Math.min(...points.map(([, s]) => s), 1));
	const most = Math.max(1.5, ...points.map(([, s]) => s)), n = Math.max(2, ...points.map(([r]) => r));
	const found = points.filter(([, s]) => s >= 1).length;
	const label = "Severity by rank of " + n + " members, both logarithmic; the limit is 1. Ranks and severities: " +
		points.filter((_, i) => i % Math.ceil(points.length / 8) === 0).map(([r, s]) => r + ": " + number(s)).join(", ");

	return plotPlace(label, 260, (width, height) => {
		const box = {left: 44, right: width - 8, top: 8, bottom: height - 34};
		const x = scale(1, n, box.left, box.right, true), y = scale(least, most * 1.1, box.bottom, box.top, true);

		return [axes(x, y, box, logSteps(1, n, width / 60), (v) => v.toLocaleString("en"), logSteps(least, most * 1.1, 7), (v) => digits(v, 2)),
			svg("line", {class: "limit", x1: box.left, x2: box.right, y1: y(1), y2: y(1)}),
			text(box.right - 4, y(1) - 5, "end", "limit", {class: "limit-text"}),
			lines(points.map(([r, s]) => [x(r), y(Math.max(s, least))])),
			points.slice(0, Math.min(found, 200)).map(([r, s]) => svg("circle", {class: "found", cx: x(r), cy: y(s), r: 2.5})),
			text((box.left + box.right) / 2, height - 4, "middle", "rank")];
	});
}

function drawRanking() {
	fill("ranking", el("h2", {id: "ranking-title"}, "Ranking"),
		el("p.muted", null, "Severity of every judged member by its rank. Healthy members form a smooth curve; a step before it shows that the limit separates two kinds of members."),
		fleet.curve.some(([, s]) => s > 0) ? el("figure.card", null, rankingPlot()) : el("p", null, "No member could be ranked."),
		fold("The worst " + fleet.ranking.length + " as a table", {}, grid("Members by severity", ["rank", "member", "metric", "severity",
			"times its peers"], fleet.ranking.map((r) => [String(r.rank), path(r.member), r.metric, number(r.severity), number(r.effect)]),
		{numeric: [0, 3, 4]})));
}

function between(r) {
	return r && r.value !== null ? r.value.toFixed(2) + " " + interval(r) : "-";
}

function drawLabels() {
	const l = fleet.labels, section = document.getElementById("labels");

	if (!l)
		return;
	section.hidden = document.getElementById("nav-labels").hidden = false;
	section.setAttribute("aria-labelledby", "labels-title");
	fill("labels", el("h2", {id: "labels-title"}, "Against the labels"),
		grid("Verdicts against " + plural(l.ill, "ill member") + " and " + l.healthy + " healthy" + (l.unknown ? "; " + l.unknown +
			" unknown are not scored" : "") + ". Intervals: 95 %.", ["measure", "value", "count"], [
			["found (recall)", between(l.recall), l.tp + " of " + l.ill],
			["right when accused (precision)", between(l.precision), l.tp + " of " + (l.tp + l.fp)],
			["healthy members accused", between(l.false_alarms), l.fp + " of " + l.healthy],
			["area under the ROC curve", between(l.auc), ""], ["average precision", between(l.average_precision), ""]], {numeric: [1, 2]}),
		l.points.length ? el("div.pair", null,
			el("figure.card", null, el("h3", null, "ROC"), squarePlot("ROC curve: area " + between(l.auc) + ". The dot is the detector's limit.",
				[{points: l.points.map((p) => [p.false_alarms, p.recall]), mark: [l.false_alarms.value || 0, l.recall.value || 0]}], false,
				"healthy members accused", "ill members found", true), el("figcaption", null, "Area ", between(l.auc), ". The dot is the detector's limit.")),
			el("figure.card", null, el("h3", null, "Precision and recall"), squarePlot("Precision-recall curve: average precision " +
				between(l.average_precision) + ". The dot is the detector's limit.", [{points: l.points.map((p) => [p.recall, p.precision]),
				mark: l.tp + l.fp ? [l.recall.value || 0, l.precision.value || 0] : null}], true, "ill members found (recall)", "precision", false),
			el("figcaption", null, "Average precision ", between(l.average_precision), "."))) : null,
		l.missed.length ? el("p", null, el("b", null, "Missed: "), l.missed.slice(0, 100).flatMap((m, i) => [i ? ", " : "", ...path(m)]),
			l.missed.length > 100 ? " and " + (l.missed.length - 100) + " more" : null) : null,
		l.accused.length ? el("p", null, el("b", null, "Accused though healthy: "), l.accused.slice(0, 100).flatMap((m, i) => [i ? ", " : "",
			...path(m)]), l.accused.length > 100 ? " and " + (l.accused.length - 100) + " more" : null) : null);
}
