"use strict";
/* Light or dark theme: the system's, or the user's choice. */

function savedTheme() {
	try {
		return localStorage.getItem("culprit-theme") || "auto";
	} catch {
		return "auto";
	}
}

/* Makes the buttons; calls 'changed' after a change of colours. */
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
			/* a page opened as a file may have no storage: the choice is then lost with the page */
		}
		changed();
	};

	fill("theme", ["auto", "light", "dark"].map((t) => el("button.plain", {type: "button", value: t,
		"aria-pressed": "false", onclick: () => choose(t)}, t)));
	choose(savedTheme());
	window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}
