"use strict";
/* Light or dark: as the system has it, or as chosen here. */

function savedTheme() {
	try {
		return localStorage.getItem("culprit-theme") || "auto";
	} catch {
		return "auto";
	}
}

/* Makes the buttons; 'changed' is called when colours are others. */
function drawThemes(changed) {
	const choose = (theme) => {
		if (theme === "auto")
			delete document.documentElement.dataset.theme;
		else
			document.documentElement.dataset.theme = theme;
		for (const b of document.querySelectorAll("#theme button"))
			b.setAttribute("aria-pressed", String(b.value === theme));
		try {
			localStorage.setItem("culprit-theme", theme);
		} catch {
			/* a file's page may have no storage: the choice then lasts as long as the page */
		}
		changed();
	};

	fill("theme", ["auto", "light", "dark"].map((t) => el("button.plain", {type: "button", value: t,
		"aria-pressed": "false", onclick: () => choose(t)}, t)));
	choose(savedTheme());
	window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}
