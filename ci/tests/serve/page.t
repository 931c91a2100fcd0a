#!/bin/bash
# The page of culprit serve in a headless Chromium: it contacts only its own server, its panels agree with culprit query, filters,
# zoom, keys and Back; events page by page; two cells side by side; the user's own query; names that look like markup; 390 px; a run
# that continues, and one next to a capture.
# shellcheck disable=SC2016
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/web/browser.sh
out=$PWD/${OUT:-out}
culprit=$out/culprit
for program in chromedriver curl perl sqlite3; do
	command -v $program >/dev/null || skip_all "no $program"
done
[ "$(uname -m)" = x86_64 ] || skip_all "the made-up cluster has call numbers of x86_64"
tmp=$(mktemp -d)
pids=()
trap 'browser_stop; kill "${pids[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/cache XDG_CONFIG_HOME=$tmp/config
"$out/tests/timeline/cell_test" make "$tmp/run" >"$tmp/said" || { not_ok "a run is made" "$(cat "$tmp/said")"; done_testing; }
mkdir "$tmp/views"
printf 'title: Mine <b>\norder: 1\nchart: bars\nquery:\nselect 0.1, 5 union all select 0.2, 7\n' >"$tmp/views/mine.view"
printf 'title: Wrong\nchart: cake\nquery:\nselect 1\n' >"$tmp/views/wrong.view"

is() { [ "$1" = "$2" ] || { printf 'got:      %s\nexpected: %s\n' "$1" "$2"; return 1; }; }
holds() { is "$(browser_eval "return $1")" "${2-true}"; }
panel='const panel = (name) => panels.find((p) => p.view.name === name);'
total='const total = (name, column) => panel(name).answer.rows.reduce((s, r) => s + r[column], 0);'
shown() { browser_wait "(() => { $panel return app.state && panel('$1') && !panel('$1').asked && panel('$1').box.dataset.state === '${2:-shown}' })()"; }
look() { browser_eval "$panel panel('$1').box.scrollIntoView(); return true" >/dev/null; shown "$@"; }
asked() { "$culprit" query --csv --cell 2 "$tmp/run" "$1" | tail -1; }
url=
serve() { # ARGUMENTS...: $url
	: >"$tmp/url"
	"$culprit" serve "$@" >"$tmp/url" 2>"$tmp/err" &
	pids+=($!)
	until_true 60 test -s "$tmp/url" || { cat "$tmp/err"; return 1; }
	url=$(cat "$tmp/url")
}

serve --views "$tmp/views" "$tmp/run"
check "it serves a run" [ -n "$url" ]
browser_start "$tmp/browser" || { not_ok "Chromium starts" "$browser_said"; done_testing; }
browser_log performance >/dev/null
browser_open "$url"
check "the page is ready" browser_wait 'document.documentElement.dataset.ready'
check "its title" holds 'document.querySelector("h1").textContent' run
check "the first cell with a fault" holds 'byId("attempts").selectedOptions[0].textContent' "cell 2: disk-hog on s2 under load"
check "the timeline of that cell's requests is linked, behind the same token" browser_eval 'const a = byId("timeline"), q = new URL(a.href).searchParams;
	if (a.hidden || new URL(a.href).pathname !== "/timeline" || Number(q.get("attempt")) !== attempt() || q.get("token") !== token) throw a.href'
marks='[...document.querySelectorAll("#marks .mark")].map((e) => e.textContent).join("; ")'
check "its fault and its verdict as marks" holds "$marks" "fault: disk-hog on s2 under load, 0.2–0.4 s; verdict: peer-robust: s2 after 0.1 s, right"

# Panels: the same figures as culprit query
check "calls by type" look calls
check "... are all calls" is "$(browser_eval "$panel $total return Math.round(total('calls', 2) * panel('calls').answer.slot)")" "$(asked "select count(*) from events where class <> 'poll'")"
check "bytes" look bytes
check "... are all bytes" is "$(browser_eval "$panel $total return Math.round(total('bytes', 2) * panel('bytes').answer.slot)")" "$(asked "select sum(bytes) from events where class in ('read', 'write', 'copy')")"
check "latency" look latency
check "threads" look threads
check "offsets" look offsets
check "files" look files
check "disk calls by server" look servers
check "... each as in culprit query, the accused one marked" holds 'panels.find((p) => p.view.name === "servers").legend.innerText.split("\n").map((s) => s.trim()).join()' "s1,s2 (fault, accused),s3"
check "events are labelled above charts" holds "(() => { $panel return labelled(panel('servers').chart).map((m) => m.text).join() })()" "disk-hog on s2 under load,peer-robust: s2"
check "disks, from the samplers" look disks
check "no errors: the panel says so" look errors empty
check "... in one line with all that is empty" holds 'byId("nothing").textContent.startsWith("Nothing recorded of: ") && byId("nothing").textContent.includes("Calls that failed") &&
	panels.filter((p) => p.box.dataset.state === "empty").every((p) => p.box.getBoundingClientRect().height === 0)'
browser_eval '[...document.querySelectorAll("#nothing button")].find((b) => b.textContent === "Calls that failed").click(); return 1' >/dev/null
check "... and a press shows its panel" holds '(() => { const box = panels.find((p) => p.view.name === "errors").box; return box.getBoundingClientRect().height > 0 && box.textContent.includes("Nothing recorded here") })()'
browser_eval '[...document.querySelectorAll("#nothing button")].find((b) => b.textContent === "Calls that failed").click(); return 1' >/dev/null
check "verdicts" look verdicts
check "one's own view, with its title as text" look mine
check "... first" holds 'panels[0].view.title' "Mine <b>"
check "a wrong view says why, with its line" look wrong failed
check "... above the place where it would be" holds 'panels.find((p) => p.view.name === "wrong").box.textContent.includes("wrong.view:2: chart must be line")'
# A colour of the first series is there where the data are: by pixels.
pixels='const seen = (name, c) => { const v = panel(name).chart, g = v.canvas.getContext("2d"), d = g.getImageData(0, 0, v.canvas.width, v.canvas.height).data;
	const [r, gr, b] = c.match(/\w\w/g).map((x) => parseInt(x, 16)); let n = 0;
	for (let i = 0; i < d.length; i += 4) n += Math.abs(d[i] - r) < 3 && Math.abs(d[i + 1] - gr) < 3 && Math.abs(d[i + 2] - b) < 3; return n };'
browser_cdp Emulation.setEmulatedMedia '{"features":[{"name":"prefers-color-scheme","value":"light"}]}' >/dev/null
look calls
check "the series are drawn" browser_wait "(() => { $panel $pixels return seen('calls', '0072b2') > 50 })()"
browser_eval "document.querySelector('#theme button[value=dark]').click(); return 1" >/dev/null
check "... in dark colours, too" browser_wait "(() => { $panel $pixels return seen('calls', '56a8e0') > 50 && seen('calls', '0072b2') === 0 })()"
browser_eval "document.querySelector('#theme button[value=auto]').click(); return 1" >/dev/null
check "names are no markup" holds '[window.boom, document.images.length, document.scripts.length, document.querySelectorAll("b b, h2 b").length].join()' ",0,2,0"
check "... and are shown" browser_eval "$panel if (![...panel('threads').chart.data.series].some((s) => s.name === '<script>boom=1')) throw 1"

# Filters, zoom, Back
browser_eval 'choose({call: "read"}); return 1' >/dev/null
check "a class as filter" browser_wait "(() => { $panel return !panel('calls').asked && panel('calls').answer.rows.every((r) => /^p?read/.test(r[1])) })()"
browser_eval 'history.back(); return 1' >/dev/null
check "Back undoes it" browser_wait "(() => { $panel return !app.chosen.call && !panel('calls').asked && panel('calls').answer.rows.some((r) => /write/.test(r[1])) })()"
browser_eval "$panel panel('calls').chart.canvas.focus(); panel('calls').chart.cursor = 0.3; return 1" >/dev/null
browser_keys "+"
check "a key zooms" browser_wait 'Number(app.chosen.to) - Number(app.chosen.from) < 0.6 * (app.state.extent.to - app.state.extent.from)'
check "... all panels" browser_wait "(() => { $panel return !panel('calls').asked && panel('calls').range[1] < 2 && panel('calls').chart })()"
browser_keys 0
check "... and another, with the focus still there, shows all again" browser_wait '!app.chosen.from && !app.chosen.to'
shown calls
browser_eval "$panel const c = panel('calls').chart.canvas, b = c.getBoundingClientRect(), e = (type, x) => c.dispatchEvent(new PointerEvent(type,
	{clientX: b.left + x, clientY: b.top + 50, button: 0, buttons: 1, pointerId: 1, bubbles: true}));
	c.setPointerCapture = () => {}; e('pointerdown', 200); e('pointermove', 260); e('pointermove', 300); e('pointerup', 300); return 1" >/dev/null
check "dragging zooms" browser_wait 'Boolean(app.chosen.from)'
browser_eval 'choose({from: "", to: ""}); return 1' >/dev/null
shown calls
browser_eval "$panel panel('calls').chart.canvas.focus(); return 1" >/dev/null
browser_keys $'\xee\x80\x94' # the right arrow
check "an arrow reads values" browser_wait '!byId("tip").hidden && byId("tip").textContent.includes(" s")'

# Events
browser_eval 'choose({tab: "events"}); return 1' >/dev/null
check "events" browser_wait 'document.querySelectorAll("#events tbody tr").length === 200'
first=$(browser_eval 'return document.querySelector("#events tbody td").textContent')
browser_eval 'byId("events-after").click(); return 1' >/dev/null
check "... the next page is later" browser_wait "Number(document.querySelector('#events tbody td').textContent) > Number($first) && !byId('events-before').disabled"
browser_eval 'byId("events-before").click(); return 1' >/dev/null
check "... and back" browser_wait "document.querySelector('#events tbody td').textContent === '$first'"
browser_eval 'document.querySelector("#filters input[name=path]").value = "/srv/f"; document.querySelector("#filters input[name=path]").dispatchEvent(new Event("change")); return 1' >/dev/null
check "a part of a path" browser_wait '[...document.querySelectorAll("#events tbody tr")].length > 0 && [...document.querySelectorAll("#events tbody tr")].every((tr) => tr.textContent.includes("/srv/f"))'
browser_eval 'byId("clear").click(); return 1' >/dev/null

# Two cells, and a query
browser_eval 'choose({tab: "compare"}); return 1' >/dev/null
check "two cells side by side" browser_wait 'document.querySelectorAll("#compare section").length >= 4'
check "... cell 1 is B" holds 'byId("other").selectedOptions[0].textContent.startsWith("cell 1:")'
browser_eval 'choose({tab: "own"}); byId("own-sql").value = "select call, count(*) n from events group by 1 order by 2 desc"; byId("own-chart").value = "table"; byId("own-run").click(); return 1' >/dev/null
check "a query of one's own" browser_wait 'document.querySelectorAll("#own tbody tr").length > 3'
browser_eval 'byId("own-sql").value = "select nowhere from events"; byId("own-run").click(); return 1' >/dev/null
check "... a wrong one says why" browser_wait 'document.querySelector("#own .wrong") && document.querySelector("#own .wrong").textContent.includes("no such column: nowhere")'
check "tabs are reached by arrows" browser_eval 'document.querySelector("#tab-own").focus(); document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true})); if (app.tab !== "charts") throw app.tab'

# A phone
browser_cdp Emulation.setDeviceMetricsOverride '{"width":390,"height":800,"deviceScaleFactor":2,"mobile":true}' >/dev/null
for tab in charts events compare own; do
	browser_eval "choose({tab: '$tab' === 'charts' ? '' : '$tab'}); return 1" >/dev/null
	check "390 px: $tab is not wider than the screen" browser_wait 'document.documentElement.scrollWidth <= 390'
done
# (chrome: is the browser's own new tab; the warning is about the pixels that this test reads.)
check "the page contacted only its own server" is "$(browser_log performance | perl -MJSON::PP -ne '
	my $m = eval { decode_json($_) }->{message} or next; next if $m->{method} ne "Network.requestWillBeSent";
	my $u = $m->{params}{request}{url}; print "$u\n" if $u !~ m{^(http://127\.0\.0\.1:\d+/|about:|data:|chrome:)}')" ""
check "the console has no messages" is "$(browser_log browser | grep -v -e favicon -e willReadFrequently)" ""

# A run that continues
browser_cdp Emulation.clearDeviceMetricsOverride '{}' >/dev/null
coproc held { exec "$out/tests/timeline/cell_test" hold "$tmp/held" 2>&1; }
pids+=("$held_PID")
read -r line <&"${held[0]}"
check "a run is in progress" is "$line" ready
serve "$tmp/held"
browser_open "$url"
check "live: its last cell" browser_wait 'document.documentElement.dataset.ready && !byId("live").hidden && byId("attempts").selectedOptions[0].textContent.startsWith("cell 1:")'
echo more >&"${held[1]}"
read -r line <&"${held[0]}"
check "... another cell ends, and appears with its fault" browser_wait 'byId("attempts").selectedOptions[0].textContent === "cell 2: disk-hog on s2 under load" && byId("marks").textContent.includes("disk-hog on s2")'
eval "exec ${held[1]}>&-"
check "... the run ends: no longer live" browser_wait 'byId("live").hidden'
kill "${pids[-1]}"
wait "${pids[-1]}" 2>/dev/null
browser_eval 'choose({tab: "events"}); return 1' >/dev/null
check "the program has ended: said" browser_wait '/no longer answers/.test(document.body.textContent)'

# A run next to a capture of the same nodes: its progress, its active fault, and its verdicts.
coproc held { exec "$out/tests/timeline/cell_test" hold "$tmp/beside" 2>&1; }
pids+=("$held_PID")
read -r line <&"${held[0]}"
sql() { sqlite3 "$tmp/beside/run.db" ".timeout 20000" "$1"; }
epoch=$(sql "select start_ns from attempt where cell = 1")
says() { # STATUS: what the run says of itself, with times in ms since the cell's start
	perl -pe 's/"(\w+)_ms": (\d+)/"\"$1_ns\": " . ('"$epoch"' + $2 * 1000000)/ge' <<<"$1" >"$tmp/status" && mv "$tmp/status" "$tmp/beside/status.json"
}
sql "insert into cell (number, training, workload, fault, victims) values (7, 0, 'load', 'disk-hog', '[\"s3\"]')"
sql "insert into verdict (attempt, detector, metric, verdict) select id, 'peer-threshold', 'any', '{\"indicted\": [\"s1\"], \"metric\": \"any\", \"time_s\": {\"s1\": 0.5}}' from attempt where cell = 1"
sql "insert into verdict (attempt, detector, metric, verdict) select id, 'peer-robust', 'any', '{\"indicted\": [], \"metric\": \"any\"}' from attempt where cell = 1"
says '{"running": true, "done": 1, "cells": 3, "phase": "before the fault <b>", "cell": {"number": 7, "attempt": 1, "title": "x"}}'
serve "$tmp/run" --beside "$tmp/beside"
browser_open "$url"
check "--beside: the page is live while the run is in progress" browser_wait 'document.documentElement.dataset.ready && !byId("live").hidden'
browser_eval 'choose({attempt: "1", last: "0"}); return 1' >/dev/null
check "... what the run does" browser_wait "$marks"'.includes(": 1 of 3 cells done; now cell 7: disk-hog on s3 under load, before the fault <b>; ")'
check "... what was said of a control" holds "$marks.replace(/^.*?; cell/, 'cell')" \
	"cell 1: no fault under load; verdict: peer-robust: nobody, right; verdict: peer-threshold: s1 at 0.5 s, wrong"
look servers
says '{"running": true, "done": 1, "cells": 3, "phase": "fault on s3", "cell": {"number": 7, "attempt": 1, "title": "x", "inject_ms": 150, "onset_ms": 300, "offset_ns": 0}}'
check "... a fault while it acts" browser_wait "$marks"'.includes("; fault: cell 7: disk-hog on s3 under load, 0.3 s on, for ")'
check "... when it was asked for" holds "$marks.includes(' (asked for at 0.1 s)') || $marks.includes(' (asked for at 0.2 s)')"
check "... in the charts, without a word of anybody's" browser_wait "(() => { $panel return labelled(panel('servers').chart).some((m) => m.text === 'disk-hog on s3 under load') && panel('servers').legend.textContent.includes('s3 (fault)') })()"
echo more >&"${held[1]}"
read -r line <&"${held[0]}"
check "... and its verdict when its cell has ended" browser_wait "$marks"'.includes("; fault: cell 2: disk-hog on s2 under load, 0.2–0.4 s; verdict: peer-robust: s2 after 0.1 s, right")'
eval "exec ${held[1]}>&-"
check "... the run ends: said, and no longer live" browser_wait "byId('live').hidden && $marks.includes(': ended, ')"
check "earlier cells are folded" browser_eval "if (document.querySelectorAll('#marks .cell').length > 4) throw document.querySelectorAll('#marks .cell').length"
done_testing
