#!/bin/bash
# The report of a fleet in a headless Chromium: it opens offline, holds the findings of 'culprit diagnose --json', can be sorted, fits a
# desk and a phone, and data from a file never becomes markup.
# shellcheck disable=SC2016
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/web/browser.sh
culprit=$PWD/${OUT:-out}/culprit
for program in chromedriver curl perl; do
	command -v $program >/dev/null || skip_all "no $program"
done
tmp=$(mktemp -d)
trap 'browser_stop; rm -rf "$tmp"' EXIT

is() { [ "$1" = "$2" ] || { printf 'got:      %s\nexpected: %s\n' "$1" "$2"; return 1; }; }
holds() { is "$(browser_eval "return $1")" "${2-true}"; }

# 10 hosts of 4 disks for 8 days; two are ill, one of them has a path that is markup.
evil='<img src=x onerror=document.title=1></script><s>&amp;/sda'
EVIL=$evil perl -e 'srand(3); print "time,host,disk,latency_ms\n"; for my $t (0 .. 191) { for my $h (1 .. 10) { for my $d (0 .. 3) {
	my $v = 5 * (1 + .3 * sin($t / 24 * 6.283)) * exp(.15 * (rand() + rand() + rand() - 1.5)); my $name = "sd" . chr(97 + $d);
	$v *= 1.6 if $h == 3 && $d == 2 && $t >= 60; if ($h == 7 && $d == 0) { $v *= 3 if $t % 50 < 6; $name = "\"$ENV{EVIL}\"" }
	printf "%d,host%d,%s,%.3f\n", 1793491200 + 3600 * $t, $h, $name, $v } } }' >"$tmp/<b>disks.csv"
printf 'host3/sdc\nhost1/sda\n' >"$tmp/labels"
"$culprit" diagnose --csv "$tmp/<b>disks.csv" --window 1w --labels "$tmp/labels" --json --report "$tmp/r.html" >"$tmp/out.json"
check "judged, page written" [ -s "$tmp/r.html" ]
check "markup of the file is not in the page" is "$(grep -ci '<img\|<b>' "$tmp/r.html")" 0
check "no address of another file in the markup" is "$(sed '/<script>/,$d; /id="index"/d' "$tmp/r.html" | grep -cE '(src|href)=.?[^#"> ]|@import|url\(')" 0
json() { perl -MJSON::PP -0777 -e 'my $v = decode_json(<STDIN>); binmode STDOUT, ":utf8"; print eval $ARGV[0]' "$1" <"$tmp/out.json"; }
check "two findings" is "$(json '$v->{summary}{findings}')" 2

browser_start "$tmp/browser" || { not_ok "Chromium starts" "$browser_said"; done_testing; }
browser_open "file://$tmp/r.html"
check "heading" holds 'document.querySelector("h1").textContent' "2 findings in $tmp/<b>disks.csv"
check "sections" holds '[...document.querySelectorAll("main > section:not([hidden]) > h2")].map((e) => e.textContent).join("/")' \
	"Findings/The worst members over time/Windows/Ranking/Against the labels/Metrics and limits/Input"
names='[...document.querySelectorAll("#findings tbody th")].map((e) => e.textContent).join()'
check "the findings are those of the JSON, in their order" holds "$names" "$(json 'join ",", map { $_->{member} } @{$v->{findings}}')"
check "nothing of a name is an element" holds 'document.querySelectorAll("img, s, main b:not(p > b)").length' 0
check "nothing of it has run" holds 'document.title.endsWith("culprit fleet report")'
browser_eval '[...document.querySelectorAll("#findings .sort")].find((b) => b.textContent === "who").click()' >/dev/null
check "the table is sorted by a head" holds '[...document.querySelectorAll("#findings tbody th")][0].textContent' "host3/sdc"
check "... which says so" holds '[...document.querySelectorAll("#findings th[aria-sort]")].map((e) => e.textContent + " " + e.getAttribute("aria-sort")).join()' "who ascending"
check "a finding leads to its plot" holds '[...document.querySelectorAll("#findings a")].every((a) => document.querySelector(a.hash + " svg .line"))'
check "the plot has its limit, and the time of the finding" holds '[...document.querySelectorAll("#findings a")].every((a) => document.querySelector(a.hash + " .limit") && document.querySelector(a.hash + " .shade").getAttribute("width") > 20)'
check "plots have a text" holds '[...document.querySelectorAll("svg[role=img]")].filter((e) => !(e.getAttribute("aria-label").length > 20)).length' 0
check "members without a finding are folded" holds '!document.querySelector("#members details").open && document.querySelectorAll("#members details .card").length === 28'
browser_eval 'document.querySelector("#members details").open = true' >/dev/null
check "... and drawn when unfolded" browser_wait 'document.querySelectorAll("#members details .line").length >= 28'
check "ranking: a curve, the limit, the findings" holds 'document.querySelectorAll("#ranking .line").length >= 1 && document.querySelectorAll("#ranking .limit").length === 1 && document.querySelectorAll("#ranking .found").length' 2
check "labels: counts" holds '[...document.querySelectorAll("#labels tbody tr")].slice(0, 2).map((r) => r.cells[2].textContent).join("; ")' "1 of 2; 1 of 2"
check "labels: both curves" holds 'document.querySelectorAll("#labels svg .line").length >= 2'
check "labels: the missed and the accused by name" holds 'document.querySelector("#labels").textContent.includes("Missed: host1/sda") && document.querySelector("#labels").textContent.includes("Accused though healthy: host7/<img")'
check "metrics: dispersion and limit" holds '[...document.querySelector("#metrics tbody tr").cells].slice(3, 5).every((c) => Number(c.textContent) > 1)'
check "ids are unique" holds '((ids) => ids.length - new Set(ids).size)([...document.querySelectorAll("[id]")].map((e) => e.id))' 0
check "tables have captions, heads a scope" holds '[...document.querySelectorAll("table")].filter((t) => !t.caption).length + [...document.querySelectorAll("th")].filter((t) => !t.scope).length' 0
check "references lead somewhere" holds '[...document.querySelectorAll("[aria-labelledby]")].filter((e) => !document.getElementById(e.getAttribute("aria-labelledby"))).length' 0

width() { browser_cdp Emulation.setDeviceMetricsOverride "{\"width\":$1,\"height\":800,\"deviceScaleFactor\":1,\"mobile\":false}" >/dev/null; }
width 390
check "390 pixels wide: nothing sticks out" holds 'document.documentElement.scrollWidth <= 390'
check "... and plots are drawn for it" browser_wait '[...document.querySelectorAll("#members svg")].every((e) => e.viewBox.baseVal.width < 380)'
width 1280
check "1280 pixels wide: nothing sticks out" holds 'document.documentElement.scrollWidth <= 1280'
browser_eval 'document.querySelector("#theme [value=dark]").click()' >/dev/null
check "dark where it is chosen" holds 'getComputedStyle(document.body).backgroundColor' "rgb(20, 23, 27)"
requests() { browser_log performance | perl -MJSON::PP -ne 'my $m = decode_json($_)->{message};
	print "$m->{params}{request}{url}\n" if $m->{method} eq "Network.requestWillBeSent"' | grep -v '^chrome\|^data:' | sort -u; }
check "one request: the file" is "$(requests)" "file://$tmp/r.html"
check "no word on the console" is "$(browser_log browser)" ""
# A host whose disks are all slow: the group's plot comes first, and is drawn of medians.
perl -e 'srand(5); print "time,host,disk,latency_ms\n"; for my $t (0 .. 99) { for my $h (1 .. 12) { for my $d (0 .. 4) {
	my $v = 5 * exp(.1 * (rand() + rand() + rand() - 1.5)) * ($h == 7 ? 3 : 1);
	printf "%d,host%d,sd%s,%.3f\n", 1793491200 + 600 * $t, $h, chr(97 + $d), $v } } }' >"$tmp/host.csv"
"$culprit" diagnose --csv "$tmp/host.csv" --report "$tmp/host.html" >/dev/null
browser_open "file://$tmp/host.html"
check "a group's finding leads to its plot" holds '((a) => document.querySelector(a.hash + " h3").textContent + " " + (document.querySelector(a.hash + " .limit") === null))(
	document.querySelector("#findings a"))' "host7 true"
check "... which comes first, and shows the ratio to the other groups" holds 'document.querySelector("#members .card h3").textContent === "host7" &&
	fleet.traces.find((t) => t.group === "host7").values.every((v) => v === null || v > 2.5 && v < 3.5)'
# 40 hosts, each with one slow disk; half a day of samples at the begin and half a day after two weeks.
perl -e 'srand(4); print "time,host,disk,latency_ms\n"; for my $t (0 .. 71, 2000 .. 2071) { for my $h (1 .. 40) { for my $d (0 .. 4) {
	my $v = 5 * exp(.1 * (rand() + rand() + rand() - 1.5)) * ($d == 2 ? 1.5 + .1 * $h : 1) * ($h == 40 && $d == 2 && $t == 30 ? 40 : 1);
	printf "%d,host%d,sd%s,%.3f\n", 1793491200 + 600 * $t, $h, chr(97 + $d), $v } } }' >"$tmp/many.csv"
"$culprit" diagnose --csv "$tmp/many.csv" --json --report "$tmp/many.html" >"$tmp/out.json"
browser_open "file://$tmp/many.html"
check "findings without a plot are counted" holds 'document.querySelector("#members").textContent.includes("findings have no plot: only the worst 30 members are")'
check "... as many as there are" holds 'fleet.findings.filter((f) => f.trace === undefined).length + 30' "$(json 'scalar @{$v->{findings}}')"
check "a long time without samples is narrow, and marked" holds '[...document.querySelectorAll("#members .card svg")].every((s) =>
	s.querySelectorAll(".gap").length === 1 && s.querySelector(".gap").width.baseVal.value < s.viewBox.baseVal.width / 3)'
check "... and curves have the rest" holds '((s) => [...s.querySelectorAll(".line:not(.peak), .lone:not(.peak)")].reduce((sum, e) => sum + e.getBBox().width, 0) /
	s.viewBox.baseVal.width > .4)(document.querySelector("#members .card svg"))'
check "a peak of one sample is drawn, and inside" holds 'fleet.traces.some((t) => Math.max(...t.peaks) > 50) &&
	[...document.querySelectorAll("#members .peak")].every((e) => e.getBBox().y >= 7)'
done_testing
