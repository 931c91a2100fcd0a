#!/bin/bash
# The timeline page in a headless Chromium: it has all slices of the input, opens offline and makes no requests; drawing,
# checked by pixels; zoom, fold, filter, arrows, search, keys, links to a moment, comparing, touch; names that look like markup.
# shellcheck disable=SC2016,SC2053
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/web/browser.sh
model=$PWD/${OUT:-out}/bench/timeline_model
for program in chromedriver curl perl; do
	command -v $program >/dev/null || skip_all "no $program"
done
tmp=$(mktemp -d)
trap 'browser_stop; rm -rf "$tmp"' EXIT

is() { [ "$1" = "$2" ] || { printf 'got:      %s\nexpected: %s\n' "$1" "$2"; return 1; }; }
same() { diff -u "$1" "$2" | head -30; cmp -s "$1" "$2"; }
holds() { is "$(browser_eval "return $1")" "${2-true}"; }
do_js() { browser_eval "$1; return new Promise((d) => requestAnimationFrame(() => setTimeout(d)))" >/dev/null; }
open_page() { browser_open "about:blank"; browser_open "file://$tmp/$1.html${2:-}"; browser_wait 'document.documentElement.dataset.ready' || browser_log browser; }
made() { "$model" "$@" 2>"$tmp/said" || { cat "$tmp/said"; return 1; }; }
for what in three requests pair hostile empty; do
	made $what 8000 html >"$tmp/$what.html" || not_ok "$what is written"
done
made requests 200000 html 700000 >"$tmp/cut.html" || not_ok "a page of 0.7 MB is written"
check "a page is as large as allowed" [ "$(stat -c %s "$tmp/cut.html")" -le 700000 ]
check "... and nearly so" [ "$(stat -c %s "$tmp/cut.html")" -gt 400000 ]
too_little() { ! "$model" requests 4000 html 100000 >"$tmp/little" 2>"$tmp/said" && [ ! -s "$tmp/little" ] && grep -q "narrow it in time" "$tmp/said" && [ "$(wc -l <"$tmp/said")" = 1 ]; }
check "a page with too little room for its fixed parts is refused, with what to do" too_little
check "no address of another file in the markup" is "$(sed '/<script>/,$d' "$tmp/three.html" | grep -cE '(src|href)=.?[^#"> ]|@import|url\(')" 0

browser_start "$tmp/browser" || { not_ok "Chromium starts" "$browser_said"; done_testing; }
browser_cdp Emulation.setDeviceMetricsOverride '{"width":1400,"height":900,"deviceScaleFactor":1,"mobile":false}' >/dev/null
browser_cdp Emulation.setEmulatedMedia '{"features":[{"name":"prefers-color-scheme","value":"light"}]}' >/dev/null

# The page has all slices of the input: compared with the OTLP export
held='const out = []; for (let i = 0; i < model.n; i++) out.push([trackOf(i).name, nameOf(i), categoryOf(i).name, model.origin + BigInt(model.start[i]),
	model.duration[i], ...argumentsOf(i).map(([k, v]) => k + "=" + v)].join("|")); return out.join("\n")'
exported() { made "$1" 8000 otlp | perl -MJSON::PP -0777 -ne 'for my $s (map { @{$_->{spans}} } map { @{$_->{scopeSpans}} } @{decode_json($_)->{resourceSpans}}) {
	my %a = map { $_->{key} => values %{$_->{value}} } @{$s->{attributes}};
	print join("|", $a{"culprit.track"}, $s->{name}, $a{"culprit.category"}, $s->{startTimeUnixNano}, $s->{endTimeUnixNano} - $s->{startTimeUnixNano},
		map { "$_->{key}=" . (values %{$_->{value}})[0] } grep { $_->{key} !~ /^culprit/ } @{$s->{attributes}}), "\n" }' | sort; }
exported requests >"$tmp/expected"
open_page requests
browser_eval "$held" | sed '$a\' | sort >"$tmp/held"
check "8000 slices, exact to the nanosecond, with their arguments" same "$tmp/expected" "$tmp/held"
check "... which are many" [ "$(wc -l <"$tmp/held")" = 8000 ]
check "arrows: 8 of each of 1000 requests, 7 of them causes" holds '[model.arrowFrom.length, [...model.arrowFrom].filter((f, a) => model.start[f] <= model.start[model.arrowTo[a]]).length].join()' 8000,7000
check "arrows keep how they were made" holds '[0, 1, 2].map((k) => model.arrowLink.filter((l) => l === k).length).join()' 5000,2000,1000
check "no two slices of a lane overlap" holds 'model.start.every((s, i) => model.laneFrom.includes(i) || s >= model.start[i - 1] + model.duration[i - 1])'
id=$(browser_cdp Page.addScriptToEvaluateOnNewDocument '{"source":"delete Uint8Array.fromBase64"}' identifier)
open_page requests
check "a browser without fromBase64" holds 'typeof Uint8Array.fromBase64' undefined
browser_eval "$held" | sed '$a\' | sort >"$tmp/held"
check "... reads the same" same "$tmp/expected" "$tmp/held"
browser_cdp Page.removeScriptToEvaluateOnNewDocument "{\"identifier\":\"$id\"}" >/dev/null
id=$(browser_cdp Page.addScriptToEvaluateOnNewDocument '{"source":"delete window.DecompressionStream"}' identifier)
open_page requests
check "a browser without DecompressionStream says so" holds 'document.documentElement.dataset.ready + " " + byId("trouble").textContent' \
	"failed This timeline cannot be shown: this browser has no DecompressionStream, which browsers have since 2023"
browser_log browser >/dev/null
browser_cdp Page.removeScriptToEvaluateOnNewDocument "{\"identifier\":\"$id\"}" >/dev/null

# By pixels. pixel T ROW: the colour at second T in the middle of the row (its number), from the left edge of a column
browser_log browser >/dev/null
browser_log performance >/dev/null
open_page three
pixel() { browser_eval 'drawNow(); const x = Math.floor(xOf('"$1"' * 1e9)), r = rows['"$2"'], d = byId("canvas").getContext("2d").getImageData(x, r.top - view.scroll + '"${3:-10}"', 1, 1).data;
	return "#" + [...d.slice(0, 3)].map((v) => v.toString(16).padStart(2, "0")).join("")'; }
disk='#4f90d4' network='#e08a1e' none='#fcfcfb'
check "title" holds document.title "three - culprit timeline"
check "rows: head, node, thread" holds 'rows.map((r) => r.head ? "head" : r.track.name).join()' head,s1,io-1
check "a slice has its category's colour" is "$(pixel .005 2)" $disk
check "... which the legend shows" holds 'getComputedStyle(document.querySelector(".chip .swatch")).backgroundColor' 'rgb(79, 144, 212)'
check "nothing between slices" is "$(pixel .015 2)" $none
check "another category" is "$(pixel .025 2)" $network
check "slices that touch: the second begins there" is "$(pixel .031 2)" $disk
check "nothing on the node's row" is "$(pixel .005 1)" $none
do_js 'lookAt(4e6, 6e6)'
check "zoomed into a slice: all of it" is "$(pixel .0041 2 16)$(pixel .0059 2 16)" $disk$disk
do_js 'lookAt(9.99e6, 10.01e6)'
check "zoomed to its end: half" is "$(pixel .009995 2)$(pixel .010005 2)" $disk$none
open_page three '#t=0.02,0.01'
check "a link to a moment shows it" holds '[view.t0, view.t1].join()' 20000000,30000000
check "... and nothing else" is "$(pixel .0201 2 16)$(pixel .0299 2 16)" $network$network
open_page three '#t=0.025'
check "a moment alone: what is around it" holds 'view.t0 < 25e6 && view.t1 > 25e6 && view.t1 - view.t0 < 2e6'
open_page three '#t=0,0.1&s=1,20000000'
check "a link to a slice selects it" holds '[nameOf(view.selected), tab].join()' send,selection
check "... with its facts" holds '["s1 › io-1", "network", "10 ms", "0.020000000 s", "(2025-11-22 08:26:40.143456789 UTC)"].every((t) => byId("panel").textContent.includes(t))'
check "... and its links, with how they were made" holds '[...byId("panel").querySelectorAll("tbody tr")].map((r) => [...r.cells].slice(0, 3).concat(r.cells[5]).map((c) => c.textContent).join()).join()' \
	"← caused by,read,s1 › io-1,by thread"
do_js 'location.hash = "#t=0.05,0.02"'
check "another link in the same page" holds '[view.t0, view.t1].join()' 50000000,70000000
do_js 'lookAtAll(); select(undefined)'
check "the address follows what is seen" browser_wait 'location.hash === "#t=-0.001,0.102"'

# Filter: by click; the column then shows what is under it
do_js 'document.querySelector(".chip").click()'
check "a category that is filtered is not drawn" is "$(pixel .005 2)$(pixel .025 2)" $none$network
check "... nor in the table" holds '(drawPanel(), showTab("slowest"), byId("panel").querySelectorAll("tbody tr").length)' 1
check "... and the legend says so" holds 'document.querySelector(".chip").getAttribute("aria-pressed")' false
do_js 'byId("all-categories").click()'
check "show all" is "$(pixel .005 2)" $disk

# Arrows of the selected slice
arrows() { browser_eval 'drawNow(); const c = byId("canvas"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, w = rgbOf(palette.select); let n = 0;
	for (let i = 0; i < d.length; i += 4) n += d[i] === w[0] && d[i + 1] === w[1] && d[i + 2] === w[2]; return n'; }
open_page requests
check "without a selection: no arrows" is "$(arrows)" 0
do_js 'for (const t of model.tracks) t.open = true; layOut(); resized();
	const i = model.kind.findIndex((k, i) => trackOf(i).name === "dd-1" && within(trackOf(i), model.tracks.find((t) => t.name === "c1")) && model.start[i] > 1e7); select(i, true)'
check "a request's chain" holds 'chainOf(view.selected, true).size' 8
check "... as a table in order of time" holds '[...byId("panel").querySelectorAll("table")[1].tBodies[0].rows].map((r) => r.cells[3].textContent).join()' \
	"application,FUSE,RPC,waiting,service,disk call,disk,answer"
check "its first hop" holds 'chainOf(view.selected, false).size' 1
do_js 'byId("hops").value = "0"; byId("hops").dispatchEvent(new Event("change"))'
frame=$(arrows)
do_js 'byId("hops").value = "all"; byId("hops").dispatchEvent(new Event("change"))'
check "arrows are drawn" [ "$(arrows)" -gt $((frame + 30)) ]
do_js 'select(undefined); byId("slower").value = "10"; byId("slower").dispatchEvent(new Event("input")); lookAtAll()'
check "arrows of slow slices" [ "$(arrows)" -gt 100 ]
do_js 'byId("slower").value = "100000"; byId("slower").dispatchEvent(new Event("input"))'
check "... none so slow" is "$(arrows)" 0
check "hovering shows all details" holds '(() => { const i = slowestInView(1, 0)[0]; lookAtSlice(i); scrollToSlice(i); view.scroll = byId("rows").scrollTop; drawNow(); const p = placeOf(i);
	hover({x: (p.x + p.end) / 2, y: p.y + 5}); const t = byId("tip").textContent; return !byId("tip").hidden && [nameOf(i), "duration", "start", "size", "131,072", "(exact)"].every((w) => t.includes(w)); })()'

# Folding, counters, marks
open_page requests
do_js 'toggle(model.tracks.find((t) => t.name === "s3"), false)'
check "a folded node hides its tracks" holds 'rows.filter((r) => r.track && within(r.track, model.tracks.find((t) => t.name === "s3"))).length' 1
check "... and shows the number of concurrent slices" holds '(() => { const row = rows.find((r) => r.track && r.track.name === "s3"), a = areaOf(row), b = model.marks.find((m) => m.kind === 0),
	at = (t) => a.values[Math.floor(xOf(t) / a.step)]; return at((b.from + b.to) / 2) > 2 * at(b.from / 2); })()'
check "... which is the time of its slices" holds '(() => { const s3 = model.tracks.find((t) => t.name === "s3"), a = depths(lanesBelow(s3), 0, 1); let sum = 0;
	for (const l of lanesBelow(s3)) for (let i = model.laneFrom[l]; i < model.laneFrom[l + 1]; i++) sum += model.duration[i];
	return Math.abs(a.reduce((x, y) => x + y) * (view.t1 - view.t0) / view.width / sum - 1) < 1e-6; })()'
row=$(browser_eval 'return rows.findIndex((r) => r.track && r.track.name === "s3" && !r.counter)')
onset=$(browser_eval 'return model.marks.find((m) => m.kind === 0).from / 1e9')
check "the fault's onset is marked on it" is "$(pixel "$onset" "$row" 3)" '#c43d00'
check "... not on another server" holds '(() => { const r = rows.find((x) => x.track && x.track.name === "s1"); return !concerns(model.marks.find((m) => m.kind === 0), r); })()'
check "marks are texts, too" holds '(showTab("marks"), [...byId("panel").querySelectorAll("tbody tr")].map((r) => r.cells[0].textContent + ": " + r.cells[1].textContent).join())' \
	"phase: before,fault: disk-hog on s3,verdict: peer-robust: s3, storage"
check "a counter's steps" holds '(() => { const c = model.counters.find((x) => x.name === "in flight" && model.tracks[x.track].name === "s3"), m = model.marks.find((x) => x.kind === 0);
	return counterAt(c, (m.from + m.to) / 2) >= 10 && counterAt(c, m.from / 2) < 4 && Number.isNaN(counterAt(c, -1e6)); })()'

# Search and keys
do_js 'byId("canvas").focus()'
browser_keys /
check "/ goes to the search" holds document.activeElement.id search
browser_keys fuse_write
check "... which counts" browser_wait 'byId("found").textContent === [...model.kind].filter((k) => word(model.kindName[k]) === "FUSE_WRITE").length + " slices"'
browser_keys "$ENTER"
check "enter goes to the first" holds '[nameOf(view.selected), model.start[view.selected] === Math.min(...[...model.start].filter((s, i) => nameOf(i) === "FUSE_WRITE"))].join()' FUSE_WRITE,true
first=$(browser_eval 'return view.selected')
browser_keys "$ENTER"
check "... and to the next" holds "model.start[view.selected] > model.start[$first] && nameOf(view.selected) === 'FUSE_WRITE'"
do_js 'byId("search").value = ""; searchFor(""); byId("canvas").focus(); lookAtAll()'
span() { browser_eval 'return Math.round((view.t1 - view.t0) / (view.whole.to - view.whole.from) * 1e4)'; }
browser_keys w
check "W zooms in" is "$(span)" 6000
browser_keys +
check "+ does" is "$(span)" 3600
at=$(browser_eval 'return view.t0')
browser_keys d
check "D moves forward in time" holds "view.t0 > $at"
browser_keys a
check "A goes back" holds "Math.abs(view.t0 - $at) < 1000"
browser_keys s
check "S zooms out" is "$(span)" 6000
browser_keys 0
check "0 shows all" is "$(span)" 10000
browser_keys '?'
check "? shows the keys" holds '!byId("help").hidden && byId("help").textContent.includes("zoom in")'
browser_keys '?'
do_js 'zoom(.5); byId("tab-run").focus(); byId("details").focus()'
at=$(browser_eval 'return view.t0')
browser_keys $'\xee\x80\x94'
check "arrow keys in the tables are the tables'" holds "view.t0" "$at"
do_js 'lookAtAll(); byId("tab-slowest").click()'
check "the drawing as text: the slowest in view" holds '(() => { const d = [...byId("panel").querySelectorAll("tbody tr")].map((r) => slowestInView(25, 0)[r.rowIndex - 1]).map((i) => model.duration[i]);
	return d.length === 25 && d.every((x, k) => !k || x <= d[k - 1]) && d[0] === Math.max(...model.duration); })()'
do_js 'byId("panel").querySelector("button.link").click()'
check "... lead to the slice" holds 'model.duration[view.selected] === Math.max(...model.duration) && placeOf(view.selected).x >= 0'
do_js 'focusRow(1)'
check "tracks by keyboard: the tree" holds '[document.activeElement.getAttribute("role"), document.activeElement.row.track.name, document.activeElement.getAttribute("aria-expanded")].join()' treeitem,lab,true
browser_keys $'\xee\x80\x92'
check "left folds" holds '[document.activeElement.row.track.name, document.activeElement.getAttribute("aria-expanded"), rows.length].join()' lab,false,2
browser_keys $'\xee\x80\x94'
check "right unfolds" holds 'rows.length > 8'

# Two panes
open_page pair
check "two runs: one above the other" holds 'rows.filter((r) => r.head).map((r) => paneName(r.pane)).join()' "run A,run B: without the fault"
check "... each from its own start" holds 'panes.map((p) => Math.abs(spanOf(p.root).from + p.offset) < 2e7).join()' true,true
check "... an hour apart by the clock" holds '(byId("align-none").click(), Math.round((spanOf(panes[1].root).from - spanOf(panes[0].root).from) / 1e9))' 3600
do_js 'byId("offset").value = "-3599.5"; byId("offset").dispatchEvent(new Event("change"))'
check "... or by an offset" holds 'panes[1].offset - panes[0].offset' -3599500000000
open_page requests
do_js 'byId("compare").click(); byId("pane-top").value = String(model.tracks.find((t) => t.name === "s1").id);
	byId("pane-bottom").value = String(model.tracks.find((t) => t.name === "s3").id); byId("pane-bottom").dispatchEvent(new Event("change"))'
check "two servers" holds 'rows.filter((r) => r.head).map((r) => paneName(r.pane)).join()' "lab › s1,lab › s3"
check "... with names for assistive programs" holds '[...document.querySelectorAll("button, select, input")].filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() && e.tagName === "BUTTON" || e.labels?.[0]?.textContent.trim())).length' 0
do_js 'byId("one-pane").click()'
check "and all again" holds 'rows.filter((r) => r.head).length' 1

# A cut page says what it omits
open_page cut
check "a cut page says so" holds '!byId("trouble").hidden && byId("trouble").textContent.includes("Of 200,000 slices, all of ")'
check "... counts all" holds 'model.categories.map((c) => c.n).join()' 25000,25000,25000,25000,25000,25000,25000,25000
check "... holds all from that duration on" holds '(() => { let n = 0; for (let i = 0; i < model.n; i++) n += isSum(i) ? 0 : model.duration[i] >= index.least_ns; return n > 500 && index.by_request; })()'
check "... with the whole chain of the slowest" holds 'chainOf(slowestInView(1, 0)[0], true).size' 8
check "counters that were thinned are named, and keep their greatest" holds '(showTab("run"), byId("panel").textContent.includes("4 counters had too many samples") &&
	model.counters.filter((c) => c.name === "disk queue").every((c) => c.times.length > 400 && c.times.length < 3000 && c.scale.most > 5))'
check "sums are no slowest slices" holds 'slowestInView(25, 0).every((i) => !isSum(i))'

# Light, dark, narrow, touch
contrasts='return (() => { const lum = (t) => { const [r, g, b] = t.map((v) => v / 255).map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
	const ratio = (a, b) => (Math.max(a, b) + .05) / (Math.min(a, b) + .05); return palette.categories.filter((c) => ratio(lum(rgbOf(c.hex)), lum(rgbOf(c.text))) < 4.5).map((c) => c.hex)
	.concat(["fg", "muted", "counter", "fault", "verdict", "trigger", "phase"].filter((n) => ratio(lum(rgbOf(palette[n])), lum(rgbOf(palette.head))) < 4.5)).join() })()'
check "texts stand out by 4.5 to 1, light" is "$(browser_eval "$contrasts")" ""
browser_cdp Emulation.setEmulatedMedia '{"features":[{"name":"prefers-color-scheme","value":"dark"}]}' >/dev/null
check "dark where dark is preferred" browser_wait 'palette.bg === "#14171b" && getComputedStyle(document.body).backgroundColor === "rgb(20, 23, 27)"'
check "texts stand out by 4.5 to 1, dark" is "$(browser_eval "$contrasts")" ""
browser_cdp Emulation.setDeviceMetricsOverride '{"width":390,"height":780,"deviceScaleFactor":2,"mobile":true}' >/dev/null
browser_cdp Emulation.setTouchEmulationEnabled '{"enabled":true,"maxTouchPoints":2}' >/dev/null
open_page requests
check "390 pixels wide: the page fits" holds 'document.documentElement.scrollWidth <= 390'
check "... the drawing has most of it" holds 'view.width > 250 && view.height > 150'
touch() { browser_cdp Input.dispatchTouchEvent "{\"type\":\"$1\",\"touchPoints\":[$2]}" >/dev/null; }
read -r x y < <(browser_eval 'const b = byId("canvas").getBoundingClientRect(); return [Math.round(b.left), Math.round(b.top + 60)].join(" ")'; echo)
touch touchStart "{\"x\":$((x + 100)),\"y\":$y,\"id\":0},{\"x\":$((x + 140)),\"y\":$y,\"id\":1}"
touch touchMove "{\"x\":$((x + 60)),\"y\":$y,\"id\":0},{\"x\":$((x + 180)),\"y\":$y,\"id\":1}"
touch touchEnd ""
check "two fingers zoom threefold" is "$(browser_eval 'return Math.round((view.whole.to - view.whole.from) / (view.t1 - view.t0) * 10)')" 30
at=$(browser_eval 'return view.t0')
touch touchStart "{\"x\":$((x + 180)),\"y\":$y,\"id\":0}"
touch touchMove "{\"x\":$((x + 100)),\"y\":$y,\"id\":0}"
touch touchEnd ""
check "one finger moves" holds "view.t0 > $at"
browser_cdp Emulation.setTouchEmulationEnabled '{"enabled":false}' >/dev/null
browser_cdp Emulation.setDeviceMetricsOverride '{"width":1400,"height":900,"deviceScaleFactor":1,"mobile":false}' >/dev/null

# Live: published data appears, the view stays; no access without the token
coproc served { exec "$model" live 2>&1; }
model_pid=$served_PID
trap 'browser_stop; kill "$model_pid" 2>/dev/null; rm -rf "$tmp"' EXIT
read -r url <&"${served[0]}"
publish() { echo "$1" >&"${served[1]}"; read -r answer <&"${served[0]}"; [ "$answer" = published ]; }
status() { curl -sS --noproxy '*' --max-time 20 -o /dev/null -w '%{http_code}' "$@"; }
check "live: nothing without the token" is "$(status "${url%%\?*}")/$(status "${url%?}x")/$(status "${url%%\?*}data?token=")" 403/403/403
check "... nor under another name" is "$(status -H 'Host: example.org' "$url")" 403
check "... nothing but the page and its data" is "$(status "${url/\/\?//etc?}")/$(status -X POST -d x "$url")/$(status "${url/\/\?//data?}")" 404/405/204
check "it publishes" publish 4000
browser_open "$url"
check "it shows what is published" browser_wait 'document.documentElement.dataset.ready === "true" && model.n === 4000'
check "... under a policy that lets it ask its server alone" holds 'document.querySelector("meta[http-equiv]").content.includes("connect-src '"\\'self\\'"';")'
do_js 'toggle(byPath("lab › s2"), false); document.querySelector(".chip").click(); select(model.laneFrom[byPath("lab › c1 › dd › dd-0").firstLane] + 3); lookAt(1e7, 3e7);
	window.kept = [pathOf(trackOf(view.selected)), model.start[view.selected], model.categories.find((c) => !c.shown).name].join()'
check "more is published" publish 8000
check "... and appears" browser_wait 'model.n === 8000'
check "... the place, the fold, the filter and the selection stay" holds '[view.t0, view.t1, byPath("lab › s2").open, [pathOf(trackOf(view.selected)), model.start[view.selected], model.categories.find((c) => !c.shown).name].join() === window.kept].join()' \
	10000000,30000000,false,true
do_js 'lookAtAll()'
check "the end is followed" publish 12000
check "... if it is in view" browser_wait 'model.n === 12000 && Math.abs(view.t1 - view.whole.to) < 1e3 && Math.abs(view.t0 - view.whole.from) < 1e3'
kill "$model_pid"
check "a program that has ended: the page says so, and keeps its data" browser_wait '!byId("trouble").hidden && model.n === 12000'
browser_log browser >/dev/null

# Hostile names and times, and nothing at all
open_page hostile
check "hostile: it opens" holds 'document.documentElement.dataset.ready'
check "... names are no markup" holds '[window.ran, document.images.length, document.querySelectorAll("[onclick], [onerror]").length, document.scripts.length].join()' ",0,0,10"
check "... and are shown" holds 'document.querySelector("h1").textContent' '</script><script>window.ran=1</script>'
check "... all slices" holds 'model.n' 768
do_js 'for (const t of Object.keys(TABS)) showTab(t); for (let i = 0; i < model.n; i += 7) { select(i, true); hover({x: 300, y: 100}); drawNow(); zoom(1e-9); zoom(1e9); } byId("search").value = "constructor"; searchFor("constructor"); nextFound(); compare();'
check "... each can be selected, zoomed, searched" holds 'Number.isFinite(view.t0) && Number.isFinite(view.t1) && view.t1 > view.t0 && view.found.n > 0'
check "... it says what was mended" holds '(showTab("run"), byId("panel").textContent.includes("had a negative duration"))'
check "... no text turns the direction of others" holds '/[\u202a-\u202e]/.test(document.body.textContent)' false
open_page hostile '#t=1e400,x&s=99999999999,-1&t=2'
check "a hostile link shows all" holds 'document.documentElement.dataset.ready === "true" && view.selected === -1'
open_page empty
check "no slices: says so" holds 'byId("panel").textContent' "This run has no slices."
do_js 'compare(); zoom(.5); pan(1); stepSlice(1); nextFound(); searchFor("x")'

requests() { browser_log performance | perl -MJSON::PP -ne 'my $m = decode_json($_)->{message};
	print "$m->{params}{request}{url}\n" if $m->{method} eq "Network.requestWillBeSent"' | grep -v '^chrome\|^data:\|^about:\|^http://127.0.0.1:' | sed 's/#.*//' | sort -u; }
check "requests: the files alone" is "$(requests | sed "s,^file://$tmp/,,;s,\.html,," | tr '\n' ' ')" "cut empty hostile pair requests three "
check "no word on the console" is "$(browser_log browser | grep -v willReadFrequently)" ""
done_testing
