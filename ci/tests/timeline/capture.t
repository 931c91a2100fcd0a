#!/bin/bash
# culprit timeline of an application trace: refused input; the page has each call and each edge of the trace, gaps without
# overlaps, and bytes over time that add up; a replay next to it, with the table; drawing, checked by pixels; a narrow screen. No root.
# shellcheck disable=SC2016
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/web/browser.sh
out=$PWD/${OUT:-out}
culprit=$out/culprit
traces=$PWD/workloads/traces
tmp=$(mktemp -d)
trap 'browser_stop; rm -rf "$tmp"' EXIT
is() { [ "$1" = "$2" ] || { printf 'got:      %s\nexpected: %s\n' "$1" "$2"; return 1; }; }
refused() { # WORDS ARGUMENTS...: exit code 2, and a line with these words
	local words=$1 said code=0
	shift
	said=$("$culprit" timeline "$@" 2>&1 >/dev/null) || code=$?
	is "$code" 2 && [[ $said == *"$words"* ]] || { echo "$code: $said"; return 1; }
}
"$out/bench/replay_trace" sync 3 2 4096 10 "$tmp/untimed.app"
head -c 700 "$traces/psync.app" >"$tmp/cut.app"
check "a trace without times" refused "no times" "$tmp/untimed.app" -o "$tmp/x.html"
check "one that is cut short" refused "its size differs" "$tmp/cut.app" -o "$tmp/x.html"
for option in --cell=1 --recording=1 --slower-than=1s --compare=x --file-system=x --live; do
	check "${option%=*} is for runs" refused "are for runs" "$traces/psync.app" $option
done
check "--replay is for traces" refused "--replay is for a trace" "$tmp" --replay x
check "a result that is not there" refused "nothing.json" "$traces/psync.app" --replay "$tmp/nothing.json" -o "$tmp/x.html"
echo '{' >"$tmp/broken.json"
check "one that is none" refused "broken.json' is not a result of 'culprit replay --output'" "$traces/psync.app" --replay "$tmp/broken.json" -o "$tmp/x.html"
echo '{"trace_id":"0011223344556677","trace":"other.app","passes":[]}' >"$tmp/other.json"
check "one of another trace" refused "of another trace, 'other.app'" "$traces/psync.app" --replay "$tmp/other.json" -o "$tmp/x.html"
check "no page was written" [ ! -e "$tmp/x.html" ]

# What 'culprit replay --output' would write: 2 ms a step, from 7 ms before the first call on; 3 MB/s and 1 MB/s.
command -v python3 >/dev/null || { ok "the page # SKIP no python3"; done_testing; }
python3 - "$traces/psync.app" >"$tmp/replay.json" <<'P'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
at = struct.unpack_from("<Q", data, 16)[0]
series = {"interval_s": 0.002, "skipped": 4, "first_s": 0.007, "read_bytes": [6000, 0, 0], "written_bytes": [0, 2000]}
sums = {"calls_s": 2, "computed_s": 1, "away_s": 0, "waited_s": 0.5, "read_bytes": 6000, "written_bytes": 2000}
print(json.dumps({"trace": "psync.app", "trace_id": "%08x%08x" % (struct.unpack_from("<I", data, at + 4)[0], struct.unpack_from("<I", data, 12)[0]),
	"mode": "causal", "copies": 1, "clients": ["c1", "c2<b>"], "seconds": 0.05, "application_s": 0.04,
	"application": {"seconds": 0.04, "read_bytes": 6000, "written_bytes": 4000, "computed_s": 0.25},
	"passes": [{"whole": True, "seconds": 9, "series": series, **sums}, {"whole": True, "seconds": 0.05, "series": series, **sums}],
	"calls": {"pread": {"n": 3, "p50_s": 0.002, "p99_s": 0.25}}}))
P
check "a page" is "$(cd "$tmp" && "$culprit" timeline "$traces/psync.app")" psync.html
again() { (cd "$tmp" && prints_without '^$' 2 "$culprit" timeline "$traces/psync.app" >said && "$culprit" timeline "$traces/psync.app" 2>&1 | grep -q "psync.html. exists" && is "$(sha256sum <psync.html)" "$page"); }
page=$(sha256sum <"$tmp/psync.html")
check "a page that exists is not overwritten" again
check "with a replay" "$culprit" timeline "$traces/psync.app" --replay "$tmp/replay.json" -o "$tmp/both.html"
check "with two" "$culprit" timeline "$traces/psync.app" --replay "$tmp/replay.json" --replay "$tmp/replay.json" -o "$tmp/two.html"
check "a part of it" "$culprit" timeline "$traces/psync.app" --from 10ms --to 20ms -o "$tmp/part.html"
if command -v protoc >/dev/null; then
	"$culprit" timeline "$traces/psync.app" --perfetto "$tmp/t.pf" >/dev/null
	check "for Perfetto, too" bash -c 'protoc --proto_path=ci/tests/timeline --decode=Trace perfetto.proto <"$1" | grep -q "name: \"pwrite\""' - "$tmp/t.pf"
fi

for program in chromedriver curl perl; do
	command -v $program >/dev/null || { ok "the page # SKIP no $program"; done_testing; }
done
holds() { is "$(browser_eval "return $1")" "${2-true}"; }
do_js() { browser_eval "$1; return new Promise((d) => requestAnimationFrame(() => setTimeout(d)))" >/dev/null; }
open_page() { browser_open "about:blank"; browser_open "file://$tmp/$1.html"; browser_wait 'document.documentElement.dataset.ready' || browser_log browser; }
browser_start "$tmp/browser" || { not_ok "Chromium starts" "$browser_said"; done_testing; }
browser_cdp Emulation.setDeviceMetricsOverride '{"width":1280,"height":900,"deviceScaleFactor":1,"mobile":false}' >/dev/null
browser_cdp Emulation.setEmulatedMedia '{"features":[{"name":"prefers-color-scheme","value":"light"}]}' >/dev/null

open_page psync
# Calls are identified by rank and number, in the page and in the text.
calls='const calls = new Map(), of = new Map(), between = new Set(["computing", "away", "waiting"]);
	for (let i = 0; i < model.n; i++) if (!between.has(nameOf(i))) { const r = trackOf(i).name.slice(5), n = (of.get(r) || 0) + 1; of.set(r, n); calls.set(i, r + ":" + n); }'
browser_eval "$calls return [...calls].map(([i, c]) => c + ' ' + nameOf(i) + ' ' + Math.round(model.duration[i] / 1e3)).sort().join('\n')" >"$tmp/held"
"$culprit" log "$traces/psync.app" | sed -nE 's/^([0-9]+)\.0:([0-9]+) [0-9.]+ ([a-z]+)\(.* <0\.0*([0-9]+)>.*/\1:\2 \3 \4/p' | LC_ALL=C sort >"$tmp/said"
check "each call, with its duration" bash -c 'diff <(LC_ALL=C sort "$1") "$2"' - "$tmp/held" "$tmp/said"
check "... which are many" is "$(wc -l <"$tmp/said")" 144
browser_eval "$calls return [...model.arrowFrom].map((f, a) => calls.get(model.arrowTo[a]) + ' after ' + calls.get(f)).sort().join('\n')" >"$tmp/held"
"$culprit" log "$traces/psync.app" | perl -ne 'next unless /^(\d+)\.0:(\d+) /; my $me = "$1:$2"; print "$me after $1:$2\n" while / after=(\d+)\.0:(\d+)/g' | LC_ALL=C sort >"$tmp/said"
check "each edge is an arrow" bash -c 'diff <(LC_ALL=C sort "$1") "$2"' - "$tmp/held" "$tmp/said"
check "... which are many" is "$(wc -l <"$tmp/said")" 204
check "nothing of a rank overlaps" holds 'model.start.every((s, i) => model.laneFrom.includes(i) || s >= model.start[i - 1] + model.duration[i - 1])'
check "the first call is at second 0" holds 'Math.min(...[...model.start].filter((s, i) => !["computing", "away", "waiting"].includes(nameOf(i))))' 0
check "each wait has an arrow" holds '[...model.start].every((s, i) => nameOf(i) !== "waiting" || (model.intoFirst[i + 1 + 0] < model.intoFirst[i + 2]))'
bytes='(c) => { let sum = 0; for (let k = 0; k + 1 < c.times.length; k++) sum += c.values[k] * (c.times[k + 1] - c.times[k]) / 1e3; return Math.round(sum); }'
check "bytes over time are those of the calls, but for the part of a step before the first" holds "model.counters.map($bytes).map((b) => b > 0.9 * 16777216 && b < 1.01 * 16777216).join()" true,true
check "all arrows are drawn at first" holds '[view.hops, byId("hops").value, everyArrow().length].join()' every,every,204
do_js 'lookAt(3e6, 6e6)'
check "... those in view" holds 'everyArrow().length > 10 && everyArrow().length < 204'
check "... and drawn, by pixels" holds '(() => { const c = byId("canvas"), look = (hops) => { view.hops = hops; drawNow(); return c.getContext("2d").getImageData(0, 0, c.width, c.height).data; };
	const every = look("every"), none = look("0"); let n = 0; for (let i = 0; i < none.length; i += 4) n += every[i] !== none[i]; return n > 500; })()'
do_js 'byId("hops").value = "every"; byId("hops").dispatchEvent(new Event("change")); filterBy(model.categories.find((c) => c.name === "write"), false)'
check "none to calls that are not shown" holds 'everyArrow().every((a) => categoryOf(model.arrowTo[a]).name !== "write" && categoryOf(model.arrowFrom[a]).name !== "write")'
check "categories have their colours in each page, and the legend those that are there" holds '[model.categories.map((c) => c.name).join(), document.querySelectorAll(".chip").length].join(" ")' \
	"read,write,computing,waiting,away,other call $(browser_eval 'return model.categories.filter((c) => c.n).length')"
check "no word on the console" is "$(browser_log browser | grep -v willReadFrequently)" ""

open_page both
check "the application above, the replay below, the ranks last" holds 'model.tracks.filter((t) => t.kind === 1).map((t) => t.name).join("; ")' "application; replay, causal; ranks"
check "their bandwidths share a scale" holds 'model.counters[0].scale === model.counters[2].scale && model.counters[1].scale === model.counters[3].scale && model.counters[0].scale !== model.counters[1].scale'
check "the replay's first call is at second 0, too" holds '[...model.counters[2].times].slice(0, 3).map((t, k) => t / 1e6 + " " + model.counters[2].values[k]).join()' "0 0,1 3,3 0"
check "... and the pass of the mean length is drawn" holds '[...model.marks].map((m) => m.text + " " + Math.round(m.from / 1e6)).join()' "application ends 34,replay, causal ends 50"
check "the table stands in front" holds '(byId("panel").querySelector("caption").textContent + ": " + [...byId("panel").querySelectorAll("tbody tr")].slice(0, 1).map((r) => [...r.cells].map((c) => c.textContent).join("|")).join())' \
	"Application against replay: run time|40.000 ms|50.000 ms|+25.0 %"
check "... a missing value is a dash" holds '[...byId("panel").querySelectorAll("tbody tr")].filter((r) => r.cells[0].textContent === "pread, 99 %").map((r) => [...r.cells].map((c) => c.textContent).join("|")).join()' "pread, 99 %|-|0.250 s|"
check "... busy processors are reported" holds 'model.notes.filter(([term]) => term === "computing").map(([, text]) => text.replace(/:.*/, "")).join()' \
	"of replay, causal took 4.0 times the processor time that it needs"
check "names from the result are text" holds '[byId("panel").textContent.includes("c2<b>"), byId("panel").querySelectorAll("b").length].join()' true,0
open_page two
check "two replays: two more columns" holds 'byId("panel").querySelectorAll("thead th").length' 6
open_page part
check "a part holds what begins in it" holds '[...model.start].every((s, i) => ["computing", "away", "waiting"].includes(nameOf(i)) || s >= 1e7 && s < 2e7) && model.n > 50'
browser_cdp Emulation.setDeviceMetricsOverride '{"width":390,"height":800,"deviceScaleFactor":1,"mobile":true}' >/dev/null
open_page both
check "a narrow screen: the page fits" holds 'document.documentElement.scrollWidth <= 390 && view.width > 200'
done_testing
