#!/bin/bash
# culprit timeline on a made-up run (cell_test.c): options and their errors, files, the page of a cell in a headless Chromium by DOM
# and by pixels, exports that decode, cells with missing data, two cells, two servers, and the page of a run that continues.
# shellcheck disable=SC2016
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/web/browser.sh
out=$PWD/${OUT:-out}
culprit=$out/culprit
[ "$(uname -m)" = x86_64 ] || skip_all "the made-up cluster has call numbers of x86_64"
tmp=$(mktemp -d)
trap 'browser_stop; rm -rf "$tmp"' EXIT
"$out/tests/timeline/cell_test" make "$tmp/run" || { not_ok "a run is made"; done_testing; }

is() { [ "$1" = "$2" ] || { printf 'got:      %s\nexpected: %s\n' "$1" "$2"; return 1; }; }
refused() { # WORDS ARGUMENTS...: exit code 2, and a line with these words
	local words=$1 said code=0
	shift
	said=$("$culprit" timeline "$@" 2>&1 >/dev/null) || code=$?
	is "$code" 2 && [[ $said == *"$words"* ]] || { echo "$code: $said"; return 1; }
}
draw() { (cd "$tmp" && "$culprit" timeline run "$@" 2>"$tmp/said") || { cat "$tmp/said"; return 1; }; }

check "no such run" refused "is not a run" "$tmp/none"
check "no such cell" refused "no confirmed cell 99" "$tmp/run" --cell 99
check "a cell that is no number" refused "--cell" "$tmp/run" --cell x
check "a time without a unit" refused "--from" "$tmp/run" --from 12
check "an end before the beginning" refused "--to must be after --from" "$tmp/run" --from 3s --to 2s
check "one server" refused "--server is given twice" "$tmp/run" --server s1
check "an unknown server" refused "no node 's9'" "$tmp/run" --server s1 --server s9 -o -
check "two forms on standard output" refused "only one form" "$tmp/run" --otlp - --perfetto -
check "a port without --live" refused "--port needs --live" "$tmp/run" --port 1
check "--live of a run that has ended" refused "is not going on" "$tmp/run" --live
check "--compare without a cell's number" refused "RUN:CELL" "$tmp/run" --compare "$tmp/run:x" -o -
check "a file system that is not there" refused "no-such" "$tmp/run" --file-system no-such -o -
check "a file that cannot be written is refused" refused "cannot write" "$tmp/run" -o "$tmp/none/t.html"

check "without options: the first cell with a fault" is "$(draw)" run-cell2.html
check "... which is reported" grep -q 'run, cell 2: disk-hog on s2 under load (--cell shows another)' "$tmp/said"
again() { (cd "$tmp" && refused "exists; '-o run-cell2.html' replaces it" run && is "$(cat run-cell2.html | sha256sum)" "$page"); }
page=$(sha256sum <"$tmp/run-cell2.html")
check "a page that exists is not overwritten" again
check "... but when asked" is "$(draw -o run-cell2.html)" run-cell2.html
check "standard output" bash -c 'head -c 15 "$1" | grep -qi "<!doctype html>"' - <(draw --cell 1 -o -)
check "other forms come without a page" is "$(draw --cell 1 --perfetto t.pf --otlp t.otlp | tr '\n' ' ')" "t.pf t.otlp "
check "one on standard output has it to itself" bash -c 'perl -MJSON::PP -0777 -e "decode_json(<STDIN>)" <"$1"' - <(draw --cell 1 --perfetto t.pf --otlp -)
check "... no page" [ ! -e "$tmp/run-cell1.html" ]
if command -v protoc >/dev/null; then
	check "Perfetto's decodes by the public schema" bash -c 'protoc --proto_path=ci/tests/timeline --decode=Trace perfetto.proto <"$1" >"$2"' - "$tmp/t.pf" "$tmp/t.text"
	check "... all of it is known there" bash -c '! grep -qE "^ *[0-9]+[: ]" "$1"' - "$tmp/t.text"
	check "... with names, flows and counters" bash -c 'grep -q "name: \"READ\"" "$1" && grep -q terminating_flow_ids "$1" && grep -q "unit_name: \"in flight\"" "$1"' - "$tmp/t.text"
fi
draw --cell 3 -o cut.html >/dev/null
check "a truncated log is reported, and the rest is drawn" grep -q "0003.1/s1.fs.trace' is cut short" "$tmp/said"
draw --cell 4 -o events.html >/dev/null
check "calls without positions are reported" grep -q 'no positions in byte streams: run the scenario with tracer = .* mode = "flow"' "$tmp/said"
draw --cell 5 -o sums.html >/dev/null
check "sums are reported" grep -q 'have no calls, only sums, so there are counters and marks only' "$tmp/said"
draw --compare run:1 -o pair.html >/dev/null
draw --cell 2 --server s1 --server s2 -o two.html >/dev/null

for program in chromedriver curl perl; do
	command -v $program >/dev/null || { ok "the page # SKIP no $program"; done_testing; }
done
holds() { is "$(browser_eval "return $1")" "${2-true}"; }
do_js() { browser_eval "$1; return new Promise((d) => requestAnimationFrame(() => setTimeout(d)))" >/dev/null; }
open_page() { browser_open "about:blank"; browser_open "file://$tmp/$1.html"; browser_wait 'document.documentElement.dataset.ready' || browser_log browser; }
browser_start "$tmp/browser" || { not_ok "Chromium starts" "$browser_said"; done_testing; }
browser_cdp Emulation.setDeviceMetricsOverride '{"width":1400,"height":900,"deviceScaleFactor":1,"mobile":false}' >/dev/null

open_page run-cell2
check "the title" holds 'document.querySelector("h1").textContent' "run, cell 2: disk-hog on s2 under load"
check "nodes are tracks: servers, then clients" holds 'model.tracks.filter((t) => t.kind === 1).map((t) => t.name).join()' s1,s2,s3,c1,c2
check "a server's layers" holds 'model.tracks.find((t) => t.name === "s2").children.map((t) => t.name).join()' "requests,waiting,disk calls,counters"
check "a client's layers" holds 'model.tracks.find((t) => t.name === "c1").children.map((t) => t.name).join()' "application,FUSE,requests,counters"
check "... with a track for each server" holds 'model.tracks.find((t) => t.name === "c1").children[2].children.map((t) => t.name).join()' "to s1,to s2,to s3"
check "phases" holds 'model.marks.filter((m) => m.kind === 3).map((m) => m.text + " " + (m.to - m.from) / 1e6).join()' "before 200,fault 200,after 4600"
check "the fault, on its victim" holds 'model.marks.filter((m) => m.kind === 0).map((m) => [m.text, m.from / 1e6, m.to / 1e6, model.tracks[m.track].name].join()).join()' "disk-hog on s2,200,400,s2"
check "the verdict, at its time, on the accused server" holds 'model.marks.filter((m) => m.kind === 1).map((m) => [m.text, m.from / 1e6, model.tracks[m.track].name].join()).join()' "peer-robust: s2,300,s2"
check "the affected server is open at first" holds 'model.tracks.filter((t) => t.kind === 1 && t.name[0] === "s" && t.open).some((t) => t.name === "s2")'
check "requests in flight" holds 'model.counters.filter((c) => c.name === "posix" && c.track === model.tracks.find((t) => t.name === "s2").id).map((c) => c.unit + (c.values[0] > 0)).join()' "in flighttrue"
check "the sampler's readings, per processor where logged" holds 'model.counters.filter((c) => /^processors busy/.test(c.name) && model.tracks[model.tracks[c.track].parent].parent === model.tracks.find((t) => t.name === "s2").id).map((c) => c.name + c.values[0] + c.unit).join()' \
	"processors busy0.9,processors busy cpu00.9"
check "... as rates in their units" holds 'model.counters.filter((c) => c.name === "disk busy").map((c) => Math.round(c.values[0]) + c.unit).join()' "10%,90%,10%,10%,10%"
check "clocks: the shifts are shown" holds '(showTab("run"), ["clocks", "clock of s1"].every((term) => byId("panel").textContent.includes(term)) && /width 0\.\d+ ms.*raw times are moved by -?\d+\.\d+ ms/.test(byId("panel").textContent))'
check "no data is missing" holds 'byId("trouble").hidden'
check "a hostile thread name is text" holds '[typeof window.boom, model.tracks.filter((t) => t.name.startsWith("<script>")).length].join()' undefined,1
do_js 'const i = model.kind.findIndex((k, i) => categoryOf(i).name === "request" && argumentsOf(i).some(([k, v]) => k === "disk_ns" && v > 1e5)); select(i, true)'
check "a request's chain goes from the application's call to the disk" holds '(() => { const c = new Set([...chainOf(view.selected, true)].flatMap((a) => [model.arrowFrom[a], model.arrowTo[a]]).map((i) => categoryOf(i).name));
	return ["application call", "FUSE request", "request", "request at the server", "waiting", "disk call"].filter((n) => !c.has(n)).join(); })()' ""
check "... and says how each link was made" holds '[...chainOf(view.selected, true)].map((a) => categoryOf(model.arrowFrom[a]).name + ">" + categoryOf(model.arrowTo[a]).name + " " + LINKS[model.arrowLink[a]]).filter((t, i, all) => all.indexOf(t) === i).sort().join()' \
	"FUSE request>request by thread,application call>FUSE request by thread,request at the server>disk call by thread,request at the server>request exact,request at the server>waiting exact,request>request at the server exact"
check "its parts are shown" holds '["there", "waiting", "disk", "answering", "back"].filter((k) => ![...byId("panel").querySelectorAll("dt")].some((e) => e.textContent === k)).join()' ""
check "an answer is one" holds 'byId("panel").textContent.includes("← answered by")'
colours='drawNow(); const c = byId("canvas"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, w = rgbOf(palette.select); let n = 0;
	for (let i = 0; i < d.length; i += 4) n += d[i] === w[0] && d[i + 1] === w[1] && d[i + 2] === w[2]; return n'
do_js 'for (const t of model.tracks) t.open = true; layOut(); resized(); select(view.selected, true); lookAtSlice(view.selected)'
check "the selected request and its arrows are drawn" [ "$(browser_eval "$colours")" -gt 100 ]
do_js 'select(-1)'
check "... and gone" [ "$(browser_eval "$colours")" -lt 20 ]
check "no word on the console" is "$(browser_log browser | grep -v willReadFrequently)" ""

open_page cut
check "cut short: said above the page" holds '!byId("trouble").hidden && /missing: .*s1\.fs\.trace. is cut short/.test(byId("trouble").textContent)'
check "... with the requests that are there" holds 'model.categories.find((c) => c.name === "request").n > 50'
open_page events
check "events: calls on connections and disks, no requests" holds 'model.categories.map((c) => c.name).sort().join()' "disk call,message"
check "... said" holds 'byId("trouble").textContent.includes("no positions in byte streams")'
open_page sums
check "sums: counters and marks alone" holds '[model.n, model.counters.length > 0, model.marks.length > 0, byId("trouble").textContent.includes("counters and marks only")].join()' 0,true,true,true
open_page pair
check "two cells: one above the other" holds 'rows.filter((r) => r.head).map((r) => paneName(r.pane)).join("; ")' "run, cell 2; run, cell 1"
open_page two
check "two servers: one above the other" holds 'rows.filter((r) => r.head).map((r) => paneName(r.pane)).join("; ")' "cell 2 › s1; cell 2 › s2"

# A run that continues: the page shows its last cell, and another when one ends; it ends with the run.
coproc held { exec "$out/tests/timeline/cell_test" hold "$tmp/held" 2>&1; }
held_pid=$held_PID
trap 'browser_stop; kill "$held_pid" "$live" 2>/dev/null; rm -rf "$tmp"' EXIT
read -r line <&"${held[0]}"
check "a run is in progress" is "$line" ready
"$culprit" timeline "$tmp/held" --live >"$tmp/live.out" 2>"$tmp/live.err" &
live=$!
for ((i = 0; i < 300; i++)); do [ -s "$tmp/live.out" ] && break || sleep 0.1; done
browser_open "$(head -n 1 "$tmp/live.out")"
check "live: its last cell" browser_wait 'document.documentElement.dataset.ready === "true" && byId("title").textContent === "held, cell 1: no fault under load"'
echo more >&"${held[1]}"
read -r line <&"${held[0]}"
check "... another cell ends, and appears" browser_wait 'byId("title").textContent === "held, cell 2: disk-hog on s2 under load"'
eval "exec ${held[1]}>&-"
wait "$held_pid" 2>/dev/null
code=0
wait "$live" || code=$?
check "... it ends with the run" is "$code" 0
check "... and says so" grep -q 'has ended' "$tmp/live.err"
done_testing
