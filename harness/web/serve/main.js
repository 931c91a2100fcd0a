"use strict";
/* Tabs, the selection, and updates. */

const TABS = {charts: "Charts", events: "Events", compare: "Compare", own: "SQL"};
const EVERY_MS = 2000;

function drawTabs() {
	const names = Object.keys(TABS);

	fill("tabs", names.map((name) => el("button", {type: "button", role: "tab", id: "tab-" + name, "aria-controls": name, onclick: () => choose({tab: name === "charts" ? "" : name})}, TABS[name])));
	byId("tabs").addEventListener("keydown", (e) => {
		const way = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;

		if (way) {
			const next = names[(names.indexOf(app.tab) + way + names.length) % names.length];

			choose({tab: next === "charts" ? "" : next});
			byId("tab-" + next).focus();
		}
	});
}

function showTab() {
	if (!Object.hasOwn(TABS, app.tab))
		app.tab = "charts";
	for (const name of Object.keys(TABS)) {
		const on = name === app.tab;

		byId(name).hidden = !on;
		byId("tab-" + name).setAttribute("aria-selected", String(on));
		byId("tab-" + name).tabIndex = on ? 0 : -1;
	}
}

/* 'byItself': the selection is unchanged, but there is more data. */
function chosenChanged(byItself) {
	const old = app.extentOf;

	showTab();
	if (old !== attempt()) {
		look();
		return;
	}
	showFilters();
	showMarks();
	redrawMarks();
	showAttempts();
	panels.forEach((panel) => update(panel, byItself));
	if (app.tab === "events")
		showEvents();
	if (app.tab === "compare")
		showCompare();
}

/* Polls the program's state. */
async function look(first) {
	try {
		const state = await ask("state", {attempt: app.chosen.attempt || "", views: first ? 1 : ""});

		app.state = state;
		app.extentOf = attempt();
		complain(!state.extent.records && state.goes_on ? "No calls recorded yet; they will appear here." : "");
	} catch (e) {
		complain(e.message);
		return false;
	}
	byId("live").hidden = !app.state.goes_on;
	if (!first)
		chosenChanged(true);
	return true;
}

/* While a session grows; not more often than answers arrive. */
async function follow() {
	for (;;) {
		await new Promise((d) => setTimeout(d, EVERY_MS));
		if (document.hidden || !app.state.goes_on && !app.lost || panels.some((p) => p.asked))
			continue;
		const before = app.state.generation, ended = app.state.goes_on;

		app.lost = !await look();
		if (!app.lost && (app.state.generation !== before || ended !== app.state.goes_on)) {
			if (events.starts.length < 2) /* otherwise the user is on a later page */
				events.wanted = "";
			chosenChanged(true);
		}
	}
}

async function start() {
	readAddress();
	drawTabs();
	showTab();
	drawThemes(() => { if (app.state) redrawAll(); });
	if (!await look(true))
		return;
	fill("title", app.state.title);
	drawFilters();
	drawEvents();
	drawCompare();
	drawOwn();
	drawPanels();
	byId("timeline").addEventListener("click", linkTimeline);
	byId("attempts").addEventListener("change", () => choose({attempt: byId("attempts").value, from: "", to: "", last: ""}));
	chosenChanged();
	window.addEventListener("popstate", () => {
		readAddress();
		chosenChanged();
	});
	new ResizeObserver(redrawAll).observe(byId("main"));
	document.documentElement.dataset.ready = "true";
	follow();
}

start();
