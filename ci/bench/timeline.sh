#!/bin/bash
# The timeline page in a headless Chromium: how large it is and how long it takes to write, to open (from asking for the file to its
# first drawing), and to draw a frame while the view pans and zooms: the least of three tries of each, since others may use the
# machine; a frame ends when its pixels are there, drawn by the processor. Made-up runs of 4 servers and 4 clients; goals for 10 million
# slices: 15 MB, 3 s, 50 ms a frame. The last row holds all 10 million slices one by one. Then the exports.
#
#     ci/bench/timeline.sh RUN [--cell N ...]   measures the page of a recorded cell instead
set -eu
cd "$(dirname "$0")/../.."
out=${OUT:-out}
. ci/tests/web/browser.sh
command -v chromedriver >/dev/null || { echo "no chromedriver: skipped"; exit 0; }
tmp=$(mktemp -d)
trap 'browser_stop; rm -rf "$tmp"' EXIT
browser_start "$tmp/browser" || exit 1
browser_cdp Emulation.setDeviceMetricsOverride '{"width":1400,"height":900,"deviceScaleFactor":1,"mobile":false}' >/dev/null

# Frames: everything folded and everything open, from the whole run to a hundred thousandth of it and back, with pans between.
frames='const times = [], frame = () => { const at = performance.now(); drawNow(); byId("canvas").getContext("2d").getImageData(0, 0, 1, 1); times.push(performance.now() - at); };
	for (const open of [false, true]) {
		for (const t of model.tracks) t.open = open || t.kind === 0;
		layOut(); resized(); lookAtAll(); frame();
		for (let i = 0; i < 30; i++) { zoom(.68, view.width * .55); frame(); pan(.1); frame(); }
		for (let i = 0; i < 30; i++) { zoom(1 / .68); frame(); }
	}
	view.times = (view.times || times).map((ms, i) => Math.min(ms, times[i]));
	times.splice(0, times.length, ...view.times);
	times.sort((a, b) => a - b);
	return [.5, .95, 1].map((q) => times[Math.min(times.length - 1, Math.floor(q * times.length))].toFixed(0)).join(" | ")'

measure() { # of $tmp/page.html: "ONE BY ONE | MB | s to open | ms a frame"
	local opened i
	opened=
	for ((i = 0; i < 3; i++)); do
		browser_open "about:blank"
		browser_open "file://$tmp/page.html"
		browser_wait 'document.documentElement.dataset.ready === "true"'
		opened+=$(browser_eval 'return (view.openedMs / 1000).toFixed(2)')$'\n'
	done
	for ((i = 0; i < 2; i++)); do browser_eval "$frames" >/dev/null; done
	printf '%s | %s | %s | %s |\n' "$(browser_eval 'return model.n - index.sums')" \
		"$(stat -c %s "$tmp/page.html" | awk '{ printf "%.1f", $1 / 1e6 }')" \
		"$(sort -n <<<"${opened%?}" | head -n 1)" "$(browser_eval "$frames")"
}

if [ $# -gt 0 ]; then
	begin=$(date +%s.%N)
	"$out/culprit" timeline "$@" -o "$tmp/page.html" >/dev/null
	end=$(date +%s.%N)
	echo "| s to write | slices | one by one | page, MB | s to open | ms a frame, median | 95 % | most |"
	echo "|--:|--:|--:|--:|--:|--:|--:|--:|"
	measured=$(measure)
	printf '| %s | %s | %s\n' "$(awk "BEGIN { printf \"%.1f\", $end - $begin }")" "$(browser_eval 'return model.n - index.sums + index.summed')" "$measured"
	exit
fi

row() { # SLICES [BYTES_MAX]
	local said
	said=$("$out/bench/timeline_model" requests "$1" html ${2:+"$2"} 2>&1 >"$tmp/page.html")
	printf '| %s | %s | %s\n' "$1" "$(sed -n 's/.*filled in \([0-9.]*\) s, written in \([0-9.]*\) s, \([0-9]*\) MiB.*/\2 | \3/p' <<<"$said")" "$(measure)"
}
echo "| slices | s to write | MiB to write | one by one | page, MB | s to open | ms a frame, median | 95 % | most |"
echo "|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
row 100000
row 1000000
row 10000000
row 10000000 1000000000

echo
echo "| export of 1,000,000 slices | MB | s to write | MiB to write |"
echo "|---|--:|--:|--:|"
for form in perfetto otlp; do
	said=$("$out/bench/timeline_model" requests 1000000 $form 2>&1 >"$tmp/export")
	printf '| %s | %s | %s |\n' $form "$(stat -c %s "$tmp/export" | awk '{ printf "%.0f", $1 / 1e6 }')" \
		"$(sed -n 's/.*written in \([0-9.]*\) s, \([0-9]*\) MiB.*/\1 | \2/p' <<<"$said")"
done
