#!/bin/bash
# The report in a headless Chromium: it opens offline without requests, has the figures of 'culprit table', can be used
# by keyboard and without seeing colours or charts, in light, dark and print; and data from a run never becomes markup.
# shellcheck disable=SC2016,SC2053
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/web/browser.sh
culprit=$PWD/${OUT:-out}/culprit
for program in chromedriver curl perl sqlite3; do
	command -v $program >/dev/null || skip_all "no $program"
done
tmp=$(mktemp -d)
trap 'browser_stop; rm -rf "$tmp"' EXIT
cp -r results/runs/errors-20261121 "$tmp/errors"

is() { [ "$1" = "$2" ] || { printf 'got:      %s\nexpected: %s\n' "$1" "$2"; return 1; }; }
same() { diff -u "$1" "$2" | head -30; cmp -s "$1" "$2"; }
exits() { local want=$1; shift; "$@" >/dev/null 2>"$tmp/said"; is $? "$want"; }
says() { grep -q -- "$1" "$tmp/said" || { cat "$tmp/said"; return 1; }; }
holds() { is "$(browser_eval "return $1")" "${2-true}"; }

# The command
check "--help" exits 0 "$culprit" report --help
check "without a run: 2" exits 2 "$culprit" report
check "... and says so" says "which run"
check "where there is no run: 2" exits 2 "$culprit" report "$tmp"
check "... and says so" says "is not a run"
check "an unknown option: 2" exits 2 "$culprit" report --colour "$tmp/errors"
check "a file that cannot be written: 2" exits 2 "$culprit" report "$tmp/errors" -o "$tmp/none/x.html"
check "a full disk: 3" exits 3 "$culprit" report "$tmp/errors" -o /dev/full
check "in the run's folder by default" is "$("$culprit" report "$tmp/errors")" "$tmp/errors/report.html"
check "a file of one's own" is "$("$culprit" report "$tmp/errors" -o "$tmp/r.html")" "$tmp/r.html"
check "on stdout with -" is "$("$culprit" report "$tmp/errors" -o - | tail -n 1)" "</html>"
check "no more than 5 MB for 100 such cells" [ "$(stat -c %s "$tmp/r.html")" -lt $((56 * 5000000 / 100)) ]
check "no address of another file in the markup" is "$(sed '/<script>/,$d' "$tmp/r.html" | grep -cE '(src|href)=.?[^#"> ]|@import|url\(')" 0

# It opens, offline
browser_start "$tmp/browser" || { not_ok "Chromium starts" "$browser_said"; done_testing; }
browser_open "file://$tmp/r.html"
check "title" holds document.title "errors - culprit report"
check "heading" holds 'document.querySelector("h1").textContent' errors
check "sections" holds '[...document.querySelectorAll("main > section:not([hidden]) > h2")].map((e) => e.textContent).join("/")' \
	"Matrix/The run in charts/Cells/Not scored/Environment and provenance"
check "headline: cells confirmed" holds 'document.querySelector(".tile").textContent' "56 / 56cells confirmed1 of them training"
"$culprit" table "$tmp/errors" --format json | perl -MJSON::PP -0777 -ne 'for my $d (@{decode_json($_)->{summary}{detectors}}) {
	print "$d->{detector}", $d->{null} ? " (null)" : "", map({ my ($part, $rate) = @$_; $d->{$part}{$rate} ? " $d->{$part}{$rate}{count}/$d->{$part}{n}" : " -" }
		["faulty", "detected"], ["faulty", "right_server"], ["faulty", "wrong_server"], ["controls", "false_alarm"], ["faulty", "resource"]), "\n" }' >"$tmp/table"
browser_eval 'return [...document.querySelectorAll("#head tbody tr")].map((r) => [r.cells[0].textContent, ...[...r.querySelectorAll(".heat")].map((c) =>
	c.querySelector(".n")?.textContent || "-")].join(" ")).join("\n")' | sed '$a\' >"$tmp/head"
check "headline: the detectors' overall rates" same "$tmp/table" "$tmp/head"

# The matrix says what the table says: detector, fault, workload, TP or FP, rate, count, interval
"$culprit" table "$tmp/errors" --format json | perl -MJSON::PP -MPOSIX -0777 -ne '
	sub bound { my ($x, $up) = @_; my $h = $up ? ceil($x * 100 - 1e-9) : floor($x * 100 + 1e-9);
		$h <= 0 ? "0" : $h >= 100 ? "1" : sprintf ".%02d", $h }
	for my $s (@{decode_json($_)->{scores}}) {
		next if $s->{metric} ne "any";
		for (["TP", $s->{tp}], ["FP", $s->{fp}]) {
			my ($w, $r) = @$_;
			printf "%s|%s|%s|%s|%s\n", $s->{detector}, $s->{fault}, $s->{workload}, $w,
				$r ? sprintf("%.2f %d/%d [%s,%s]", $r->{rate}, $r->{count}, $s->{n}, bound($r->{low}, 0), bound($r->{high}, 1)) : "-";
		}
	}' | sort >"$tmp/table"
browser_eval 'const name = (id) => { const e = document.getElementById(id).cloneNode(true); e.querySelectorAll(".muted").forEach((m) => m.remove()); return e.textContent; };
	return [...document.querySelectorAll("#matrix td.heat")].filter((td) => td.querySelector(".sr")?.textContent !== "not scored").map((td) => {
		const [fault, row, detector, which] = td.headers.split(" ").map(name), b = td.querySelector("b");
		return [detector, fault, row, which, b ? [b, td.querySelector(".n"), td.querySelector(".ci")].map((e) => e.textContent).join(" ") : "-"].join("|");
	}).join("\n")' | sed '$a\' | sort >"$tmp/matrix"
check "the matrix holds the figures of the table" same "$tmp/table" "$tmp/matrix"
check "... which are many" [ "$(wc -l <"$tmp/table")" -ge 100 ]

# By keyboard: to a row of the matrix, to its cells, into one
focused() { browser_eval 'const e = document.activeElement; return e.id || e.getAttribute("aria-label") || e.textContent'; }
tab_to() {
	local i at
	for ((i = 0; i < 40; i++)); do
		browser_keys "$TAB"
		at=$(focused)
		[[ $at != $1 ]] || return 0
	done
	echo "40 tabs did not lead to '$1', the last to '$at'"
	return 1
}
browser_keys "$TAB"
check "the first stop skips the navigation" is "$(focused)" "Skip to the results"
check "tab reaches a row of the matrix" tab_to "*: show the 5 cells of hang"
check "... and it is seen where one is" holds 'getComputedStyle(document.activeElement).outlineStyle' solid
browser_keys "$ENTER"
check "enter shows the row's cells" holds '[...document.querySelectorAll("tr.cell:not([hidden])")].map((r) => r.cells[3].textContent).join()' \
	hang,hang,hang,hang,hang
check "... and goes to the first" is "$(focused)" cell-2
browser_keys "$ENTER"
check "enter opens it" browser_wait 'document.querySelector("#panel-2:not([hidden]) canvas")'
check "... which is announced" holds 'document.getElementById("cell-2").getAttribute("aria-expanded")'
check "the secret that blinds detectors is not in it" is \
	"$(grep -cF "$(sqlite3 "$tmp/errors/run.db" "SELECT value FROM fact WHERE key = 'blind_key'")" "$tmp/r.html")" 0
check "clients have their names, in verdicts that were recorded with aliases, too" holds \
	'[...document.querySelectorAll("#panel-2 .verdict td")].some((e) => e.textContent === "c1") && !document.querySelector("#panel-2").textContent.includes("client-0")'
check "verdict and evidence" holds '[...document.querySelectorAll("#panel-2 .verdict")].find((v) => v.textContent.startsWith("crash-hang")).textContent.includes("✓ named s1any: indicted s1 at ")'
at=$(sqlite3 "$tmp/errors/run.db" "SELECT printf('%.2f', json_extract(verdict, '$.evidence.shown[0].at_s')) FROM verdict WHERE attempt = 2 AND detector = 'crash-hang'")
check "evidence has its numbers" holds '[...document.querySelectorAll("#panel-2 .verdict td")].some((e) => Math.abs(parseFloat(e.textContent) - '"$at"') < 0.05 && e.textContent.endsWith(" s"))'
check "when it was indicted" holds 'document.querySelector("#panel-2 figcaption").textContent.includes("s1 by crash-hang at ")'
check "onset" holds 'document.querySelector("#panel-2 figcaption").textContent.includes("fault from 4.21 s to 16.2 s")'

# The chart, and the same without seeing it
choose() { browser_eval 'const s = document.querySelector("#panel-2 select"); s.value = "'"$1"'"; s.dispatchEvent(new Event("change"))' >/dev/null; }
choose dwrite
colours() { browser_eval 'const c = document.querySelector("#panel-2 canvas"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
	const probe = document.createElement("canvas").getContext("2d"); probe.fillStyle = colour("'"$1"'"); probe.fillRect(0, 0, 1, 1);
	const w = probe.getImageData(0, 0, 1, 1).data; let n = 0;
	for (let i = 0; i < d.length; i += 4) if (d[i] === w[0] && d[i + 1] === w[1] && d[i + 2] === w[2] && d[i + 3] === 255) n++;
	return n'; }
# line COLOUR SERVER: hiding the server takes a line of that colour away
line() {
	local all without key='[...document.querySelectorAll("#panel-2 .key")].find((k) => k.textContent.startsWith("'"$2"'")).click()'
	all=$(colours "$1")
	browser_eval "$key" >/dev/null
	without=$(browser_eval 'return new Promise((done) => requestAnimationFrame(() => setTimeout(done)))' >/dev/null; colours "$1")
	browser_eval "$key; return new Promise((done) => requestAnimationFrame(() => setTimeout(done)))" >/dev/null
	[ "$all" -gt $((without + 20)) ] || { echo "$all pixels with $2, $without without"; return 1; }
}
check "the victim's line is drawn" line victim s1
check "another server's is" line line0 s2
browser_eval 'document.querySelector("#panel-2 figure details").open = true' >/dev/null
check "values as a table, on demand" browser_wait 'document.querySelector("#panel-2 figure table")'
"$culprit" query --samples "$tmp/errors" --metric dwrite | awk -F, '$1 == 2 { printf "%d %s %.1f\n", $5, $4, $7 / $6 * 1000 }' |
	sort >"$tmp/samples"
browser_eval 'const t = document.querySelector("#panel-2 figure table"), heads = [...t.tHead.rows[0].cells].map((c) => c.textContent.split(" ")[0]);
	return [...t.tBodies[0].rows].flatMap((r) => [...r.cells].slice(1).map((c, i) => [parseInt(r.cells[0].textContent), heads[i + 1],
		c.textContent]).filter((x) => x[2] !== "-").map((x) => [x[0], x[1], Number(x[2]).toFixed(1)].join(" "))).join("\n")' | sed '$a\' | sort >"$tmp/values"
# closely READ SHOWN: the same seconds and servers, and values alike to three digits (of a quotient of two numbers of three digits)
closely() { paste -d' ' "$1" "$2" | awk '{ d = $6 - $3; if ($1 != $4 || $2 != $5 || d * d > ($3 * 0.012 + 0.06) ^ 2) { print; bad = 1 } } END { exit bad || !NR }'; }
check "... which are the store's" closely "$tmp/samples" "$tmp/values"
check "... all of them" is "$(wc -l <"$tmp/values")" "$(wc -l <"$tmp/samples")"
check "... of some seconds" [ "$(wc -l <"$tmp/samples")" -gt 15 ]
choose nsread
check "another metric" holds 'document.querySelector("#panel-2 [role=img]").getAttribute("aria-label").startsWith("nsread, mean service time")'

# What assistive programs need, with cells open
browser_eval 'document.getElementById("filter-fault").value = ""; document.getElementById("filter-fault").dispatchEvent(new Event("change"));
	for (const n of [4, 9]) { document.getElementById("cell-" + n).click(); fillCell(rows_of_cells.find((r) => r.cell.number === n)); }' >/dev/null
browser_wait 'document.querySelectorAll("canvas").length === 3' >/dev/null
browser_eval 'document.querySelectorAll("details").forEach((d) => { d.open = true })' >/dev/null
check "tables have captions" holds '[...document.querySelectorAll("table")].filter((t) => !t.caption || !t.caption.textContent).length' 0
check "heads of tables have a scope" holds '[...document.querySelectorAll("th")].filter((t) => !t.scope).length' 0
check "charts have a text" holds '[...document.querySelectorAll("canvas")].filter((c) => !(c.closest("[role=img]")?.getAttribute("aria-label").length > 40)).length' 0
check "buttons and fields have names" holds '[...document.querySelectorAll("button, select, input")].filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() && e.tagName === "BUTTON" || e.labels?.[0]?.textContent.trim())).length' 0
check "no level of heading is left out" holds '(() => { let last = 1; return [...document.querySelectorAll("h1, h2, h3, h4, h5")].filter((h) => { const l = Number(h.tagName[1]), bad = l > last + 1; last = l; return bad; }).length; })()' 0
check "ids are unique" holds '((ids) => ids.length - new Set(ids).size)([...document.querySelectorAll("[id]")].map((e) => e.id))' 0
check "references lead somewhere" holds '[...document.querySelectorAll("[headers], [aria-labelledby], [aria-controls]")].flatMap((e) => (e.headers || e.getAttribute("aria-labelledby") || e.getAttribute("aria-controls")).split(" ")).filter((id) => !document.getElementById(id)).length' 0

# Light, dark, print, narrow
media() { browser_cdp Emulation.setEmulatedMedia "{\"media\":\"$2\",\"features\":[{\"name\":\"prefers-color-scheme\",\"value\":\"$1\"}]}" >/dev/null; }
background() { browser_eval 'return getComputedStyle(document.body).backgroundColor'; }
faint() { browser_eval 'const x = document.createElement("canvas").getContext("2d"), known = new Map();
	const rgb = (c) => { if (!known.has(c)) { x.clearRect(0, 0, 1, 1); x.fillStyle = c; x.fillRect(0, 0, 1, 1); known.set(c, [...x.getImageData(0, 0, 1, 1).data]); } return known.get(c); };
	const lum = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => v / 255).map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
	const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
	const found = new Set(); let n = 0;
	for (const e of document.querySelectorAll("body *")) {
		if (!e.checkVisibility() || e.closest("svg, .sr, noscript, script") || ![...e.childNodes].some((t) => t.nodeType === 3 && t.data.trim())) continue;
		const a = lum(rgb(getComputedStyle(e).color)), b = lum(behind(e)), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05); n++;
		if (ratio < 4.5) found.add(e.tagName + "." + e.className + " " + ratio.toFixed(1)); }
	return n < 500 ? "only " + n : [...found].join(" ")'; }
media light ""
check "light where light is preferred" is "$(background)" "rgb(252, 252, 251)"
check "all text stands out by 4.5 to 1, light" is "$(faint)" ""
media dark ""
check "dark where dark is preferred" is "$(background)" "rgb(20, 23, 27)"
check "all text stands out by 4.5 to 1, dark" is "$(faint)" ""
check "the chart goes with it" browser_wait "$(printf 'colour("victim") === "#ff9f5a"')"
check "... its line too" line victim s1
browser_eval 'document.querySelector("#theme [value=light]").click()' >/dev/null
check "light where it is chosen" is "$(background)" "rgb(252, 252, 251)"
browser_eval 'document.querySelector("#theme [value=dark]").click()' >/dev/null
media light ""
check "dark where it is chosen" is "$(background)" "rgb(20, 23, 27)"
media dark print
check "print has dark text" holds 'colour("fg")' "#1b1f24"
check "print leaves out what cannot be used on paper" holds 'document.querySelector("nav").checkVisibility() || document.querySelector("select").checkVisibility()' false
check "print keeps the matrix's colours" holds 'getComputedStyle(document.querySelector(".heat.s0")).printColorAdjust' exact
media light ""
browser_eval 'document.querySelector("#theme [value=auto]").click()' >/dev/null
browser_cdp Page.printToPDF '{"printBackground":true}' data | base64 -d >"$tmp/print.pdf"
check "prints" [ "$(head -c 5 "$tmp/print.pdf")" = "%PDF-" ]
browser_cdp Emulation.setDeviceMetricsOverride '{"width":400,"height":800,"deviceScaleFactor":1,"mobile":false}' >/dev/null
check "400 pixels wide: nothing sticks out" holds 'document.documentElement.scrollWidth <= 400'
check "... and a chart takes the width" browser_wait '(document.querySelector("#panel-2 canvas").getBoundingClientRect().width - 340) ** 2 < 900'
browser_cdp Emulation.clearDeviceMetricsOverride '{}' >/dev/null

# No requests, no console messages; and the policy would have refused
requests() { browser_log performance | perl -MJSON::PP -ne 'my $m = decode_json($_)->{message};
	print "$m->{params}{request}{url}\n" if $m->{method} eq "Network.requestWillBeSent";
	print "refused: $m->{params}{blockedReason}\n" if $m->{params}{blockedReason}' | grep -v '^chrome\|^data:' | sort -u; }
console() { browser_log browser | grep -v willReadFrequently; } # of the tests' own looks at canvases
check "one request: the file" is "$(requests)" "file://$tmp/r.html"
check "no word on the console" is "$(console)" ""
browser_eval 'const s = document.createElement("script"); s.textContent = "window.ran = true"; document.body.append(s);
	const i = document.createElement("img"); i.src = "http://127.0.0.1:9/x.png"; document.body.append(i)' >/dev/null
check "a script that is put in does not run" holds 'window.ran === undefined'
check "... as the policy says" [ "$(browser_log browser | grep -c 'Content Security Policy')" -ge 2 ]
check "... nor is a picture asked for" is "$(requests | grep refused)" "refused: csp"

# A run full of markup, with an attempt that does not count and a fault that was skipped
evil='</script><script>document.title=2</script><img src=x onerror="document.title=1"><s>&amp;'
cp -r results/runs/errors-20261121 "$tmp/<b>&evil"
sqlite3 "$tmp/<b>&evil/run.db" <<-SQL
	UPDATE series SET server = '$evil' WHERE server = 's1';
	UPDATE event SET server = '$evil', client = '$evil';
	UPDATE cell SET victims = replace(victims, 's1', '</script><img src=x onerror=document.title=1>') WHERE victims IS NOT NULL;
	UPDATE cell SET fault = '$evil' WHERE fault = 'kill';
	UPDATE cell SET workload = '$evil' WHERE workload = 'create';
	UPDATE verdict SET detector = '$evil' WHERE detector = 'always-same';
	UPDATE verdict SET verdict = json_set(verdict, '$.evidence.clients', '$evil', '$.reason', '$evil');
	UPDATE attempt SET detail = json_set(detail, '$.results.c1', '$evil');
	UPDATE file SET path = path || '$evil';
	UPDATE fact SET value = '$evil' WHERE key IN ('scenario', 'scenario_text');
	UPDATE fact SET value = replace(value, '"host":"s1"', '"host":"<img src=x onerror=document.title=1>"') WHERE key = 'hosts';
	UPDATE attempt SET detail = json_set(detail, '$.steps', json('[{"step": "inject", "at_ns": ' || (start_ns + 4000000000) || '}, {"step": "<img src=x>", "at_ns": ' ||
		(start_ns + 5000000000) || '}]'));
	UPDATE verdict SET verdict = json_set(verdict, '$.evidence.scores', json('{"what": 1, "limit": "1", "metrics": "dread", "servers": {"s1": 5}}'),
		'$.evidence.severity', '$evil') WHERE detector = 'crash-hang';
	UPDATE verdict SET verdict = json_set(verdict, '$.evidence.scores', json_object('what', '$evil', 'limit', 1, 'metrics', json_array('$evil', 7),
		'servers', json_object('$evil', json_array(1, false, '$evil', 2)))) WHERE detector = 'errno-propagation';
	UPDATE cell SET skipped = 'no device $evil' WHERE fault = 'hang';
	DELETE FROM attempt WHERE cell IN (SELECT number FROM cell WHERE fault = 'hang');
	INSERT INTO attempt (cell, number, outcome, reason, started_ns, seconds, detail)
		SELECT number, 2, 'invalid', 'the fault did not act $evil', 1795268127533338370, 0, '{}' FROM cell WHERE fault = 'err-files' LIMIT 1;
SQL
"$culprit" report "$tmp/<b>&evil" -o "$tmp/evil.html" >/dev/null
check "markup of a run is not in the file" is "$(grep -ci '<img' "$tmp/evil.html")" 0
browser_log browser >/dev/null
browser_open "file://$tmp/evil.html#print"
check "all cells open" browser_wait 'document.querySelectorAll(".open[aria-expanded=true]").length === 56 && document.querySelectorAll("canvas").length > 40 &&
	!document.querySelector(".waiting")'
browser_eval 'document.querySelectorAll("main > section:not(#cells) details, #panel-1 details, #panel-3 details, #panel-12 details").forEach((d) => { d.open = true })' >/dev/null
check "nothing of it is an element" holds 'document.querySelectorAll("img, s").length' 0
check "the harness's acts are marked" holds '[...document.querySelectorAll("#panel-1 .step title")].map((e) => e.textContent).join()' "inject at 4 s,<img src=x> at 5 s"
check "commands quote the run's name" holds '[...document.querySelectorAll("#panel-1 .commands code")].every((e) => e.textContent.includes("'"'<b>&evil'"'"))'
check "scores of any kind are drawn, or not" holds '[...document.querySelectorAll("#panel-1 .plot-grid h5, #panel-3 .plot-grid h5")].map((e) => e.textContent.slice(0, 18)).join()' \
	"What happened,What happened,errno-propagation:"
check "nothing of it has run" holds 'document.title' '<b>&evil - culprit report'
check "it is read as text" holds 'document.querySelector("pre").textContent' "$evil"
check "... in every place" holds '["#head", "#matrix", "#cells", "#unscored", "#provenance"].filter((s) => !document.querySelector(s).textContent.includes("<img src=x onerror=")).join()' ""
check "a skipped fault has its reason" holds 'document.querySelector("#unscored table").textContent.includes("hang5no device")'
check "an attempt that does not count has its reason" holds '[...document.querySelectorAll("#unscored td")].some((e) => e.textContent.startsWith("the fault did not act"))'
check "no word on the console from it" is "$(console)" ""

# The charts of a run, and of its cells: one with readings, judged by today's detectors
mkdir "$tmp/charted"
zcat results/corpora/matrix/run.db.gz >"$tmp/charted/run.db"
"$culprit" rescore "$tmp/charted" --detector peer-robust --detector peer-threshold --save >/dev/null
"$culprit" table "$tmp/charted" --format json >"$tmp/charted.json"
touch "$tmp/charted-cell1.html"
"$culprit" report "$tmp/charted" -o "$tmp/charted.html" >/dev/null
# summary DETECTOR PATH: from the table
summary() { perl -MJSON::PP -0777 -e 'my ($d) = grep { $_->{detector} eq $ARGV[0] } @{decode_json(<STDIN>)->{summary}{detectors}}; $d = $d->{$_} for split /[.]/, $ARGV[1]; print $d' "$@" <"$tmp/charted.json"; }
browser_open "file://$tmp/charted.html#all"
check "all cells opened: only those in sight are unpacked" browser_wait 'document.querySelectorAll(".open[aria-expanded=true]").length === 67 &&
	rows_of_cells.filter((r) => r.filled).length < 12'
browser_eval 'window.scrollTo(0, document.body.scrollHeight); document.querySelector("#cell-46").scrollIntoView()' >/dev/null
check "... and others when they come in sight" browser_wait 'rows_of_cells.find((r) => r.cell.number === 46).filled && document.querySelector("#panel-46 canvas")'
check "null detectors are folded away" holds '[...document.querySelectorAll(".null")].length > 20 && ![...document.querySelectorAll(".null")].some((e) => e.checkVisibility())'
browser_eval 'document.querySelector("button.nulls").click()' >/dev/null
check "... and shown when asked for" holds 'document.querySelector("#head tr.null").checkVisibility() && document.querySelector("#matrix td.null").checkVisibility()'
check "of two cells a rate is paler than of ten" holds '((all) => all.length > 9 && all.every((e) => {
	const n = Number(e.querySelector(".n").textContent.split("/")[1]); return e.classList.contains("w2") === (n >= 2 && n < 5) && e.classList.contains("w1") === (n < 2); }))(
	[...document.querySelectorAll("#matrix td.heat .n, #head td.heat .n")].map((e) => e.closest("td")))'

sqlite3 "$tmp/charted/run.db" "SELECT coalesce(json_extract(c.victims, '\$[0]'), 'nobody') || ' ' || coalesce(json_extract(v.verdict, '\$.indicted[0]'), 'nobody'), count(*)
	FROM verdict v JOIN attempt a ON a.id = v.attempt JOIN cell c ON c.number = a.cell WHERE v.detector = 'peer-robust' AND v.metric = 'any' AND
	json_array_length(v.verdict, '$.indicted') < 2 AND NOT json_extract(v.verdict, '$.abstain') AND NOT c.training GROUP BY 1 ORDER BY 1" | tr '|' ' ' >"$tmp/guilty"
browser_eval 'const m = confusion("peer-robust"); return m.rows.flatMap((r) => m.columns.map((c) => [r, c, m.at(r, c)].join(" "))).filter((t) => !t.endsWith(" 0")).sort().join("\n")' |
	sed '$a\' | sort >"$tmp/accused"
sort -o "$tmp/guilty" "$tmp/guilty"
check "accused against guilty" same "$tmp/guilty" "$tmp/accused"
check "... is drawn" is "$(browser_eval 'return [...document.querySelectorAll(".confusion tbody b")].reduce((n, e) => n + Number(e.textContent), 0)')" \
	"$(awk '{ n += $3 } END { print n }' "$tmp/guilty")"
check "ROC: the dot is the table's" is "$(browser_eval 'return Math.round(rocOf("peer-robust").faulty * Math.max(0, ...rocOf("peer-robust").points.filter((p) => p[2] > 1).map((p) => p[1])))')" \
	"$(summary peer-robust faulty.right_server.count)"
check "... and a curve a detector, from nothing to all" holds 'run.real.every((d) => { const p = rocOf(d).points; return p.length > 3 && p[0][1] === 0 && p.every((x, i) => !i || x[1] >= p[i - 1][1]); })'
check "delays: the table's median" is "$(browser_eval 'return median(delaysOf("peer-robust").map((d) => d.delay)).toFixed(2)')" "$(printf %.2f "$(summary peer-robust faulty.delay_s.median)")"
check "the run over time: each attempt" holds 'document.querySelectorAll(".attempt-bar[data-cell]").length' 46
browser_eval 'document.querySelector("[data-cell=\"5\"]").dispatchEvent(new MouseEvent("click", {bubbles: true}))' >/dev/null
check "... and leads to its cell" holds 'document.activeElement.id' cell-5

# A cell of packet loss
cell=$(sqlite3 "$tmp/charted/run.db" "SELECT c.number FROM verdict v JOIN attempt a ON a.id = v.attempt JOIN cell c ON c.number = a.cell WHERE v.detector = 'peer-robust' AND
	c.fault = 'receive-pktloss' AND json_extract(v.verdict, '$.indicted') = c.victims ORDER BY 1 LIMIT 1")
evidence() { sqlite3 "$tmp/charted/run.db" "SELECT json_extract(v.verdict, '$.$1') FROM verdict v JOIN attempt a ON a.id = v.attempt WHERE a.cell = $cell AND v.detector = 'peer-robust' AND v.metric = 'any'"; }
browser_eval "showCells({workload: '', fault: ''}); location.hash = '#cell-$cell'" >/dev/null
browser_wait "document.querySelector('#panel-$cell canvas')" >/dev/null
metric=$(evidence 'evidence.scores.metrics[0]')
check "packet loss opens on what the verdict rests on" is "$(browser_eval "return document.querySelector('#panel-$cell figure select').value")" "$metric"
check "... which is not a service time" is "${metric##*_}" segments
check "a heat map: a field for each sample" is "$(browser_eval "return document.querySelectorAll('#panel-$cell .heat-map svg rect').length")" \
	"$("$culprit" query --samples "$tmp/charted" --metric "$metric" | awk -F, -v cell="$cell" '$1 == cell' | wc -l)"
victim=$(sqlite3 "$tmp/charted/run.db" "SELECT json_extract(victims, '\$[0]') FROM cell WHERE number = $cell")
check "what happened: phases and marks" holds "[...document.querySelectorAll('#panel-$cell .phase title, #panel-$cell .step title')].map((e) => e.textContent.replace(/ at .*/, '')).join()" \
	"before,fault on $victim,after,verified,undone"
check "... and each accusation with detector, server and time" holds "document.querySelector('#panel-$cell .accused.right title').textContent" \
	"peer-robust accused $victim at $(evidence "time_s.$victim" | sed 's/[.]0$//') s"
scores() { browser_eval "const c = [...document.querySelectorAll('#panel-$cell .plot-grid .card')].find((c) => c.textContent.startsWith('peer-robust: ')); $1"; }
check "scores against their limit" is "$(scores 'return c.querySelector(".limit-text").textContent.slice(6) - 0')" "$(printf %.3g "$(evidence evidence.scores.limit)")"
check "... a line a server, all their seconds" is "$(scores 'return [...c.querySelectorAll("polyline.line")].reduce((n, e) => n + e.getAttribute("points").split(" ").length, 0) + c.querySelectorAll(".lone").length')" \
	"$(evidence evidence.scores.servers | perl -MJSON::PP -0777 -ne 'print scalar grep { !JSON::PP::is_bool($_) } map { @$_ } values %{decode_json($_)}')"
browser_eval "document.querySelectorAll('#panel-$cell details').forEach((d) => { d.open = true; })" >/dev/null
check "all metrics side by side" browser_wait "document.querySelectorAll('#panel-$cell .small svg polyline').length > 60"
check "... as many as the metric's list has" holds "document.querySelectorAll('#panel-$cell .small').length === document.querySelector('#panel-$cell figure select').options.length"
browser_eval "[...document.querySelectorAll('#panel-$cell .small button')].find((b) => b.textContent === 'disk_busy_s').click()" >/dev/null
check "... each shown large by a click" holds "document.querySelector('#panel-$cell [role=img]').getAttribute('aria-label').startsWith('disk_busy_s, total')"
check "commands for more" holds "[...document.querySelectorAll('#panel-$cell .commands code')].map((e) => e.textContent).join('|')" "culprit query --samples charted|culprit diagnose charted --cell $cell --evidence"
browser_eval 'fillCell(rows_of_cells.find((r) => r.cell.number === 1))' >/dev/null
check "a timeline next to the report is linked" browser_wait 'document.querySelector("#panel-1 .further a")?.getAttribute("href") === "charted-cell1.html"'

# Saved and sorted
browser_eval 'window.saved = []; URL.createObjectURL = (b) => { window.saved.push(b); return "#none"; }; HTMLAnchorElement.prototype.click = () => {};
	for (const b of document.querySelectorAll("#charts .saving button, #panel-'"$cell"' .saving button")) b.click()' >/dev/null
n=$(browser_eval 'return document.querySelectorAll("#charts .saving button, #panel-'"$cell"' .saving button").length')
check "each chart is saved as CSV and PNG" browser_wait "window.saved.length === $n && $n > 12"
check "... pictures with something on them" holds 'Promise.all(window.saved.filter((b) => b.type === "image/png").map(async (b) => { const i = await createImageBitmap(b), c = new OffscreenCanvas(i.width, i.height).getContext("2d");
	c.drawImage(i, 0, 26, i.width, i.height - 26, 0, 0, i.width, i.height); return new Set(new Uint32Array(c.getImageData(0, 0, i.width, i.height).data.buffer)).size; })).then((all) => all.length > 5 && all.every((n) => n > 8))'
check "... values that are the chart's" is "$(browser_eval 'return Promise.all(window.saved.filter((b) => b.type === "text/csv").map((b) => b.text())).then((t) =>
	t.find((x) => x.startsWith("detector,cell,fault,delay_s")).split("\r\n").filter((l) => l.startsWith("peer-robust,")).length)')" "$(summary peer-robust faulty.delay_s.n)"
check "no field becomes a formula" holds 'csvText([["=1+1", "-2", "a\"b,c"]])' $'\'=1+1,-2,"a""b,c"\r'
browser_eval '[...document.querySelectorAll("#cells thead button")].find((b) => b.textContent === "Fault").click()' >/dev/null
check "cells are sorted by a column" holds '((t) => t.length > 40 && t.every((x, i) => !i || t[i - 1].localeCompare(x) <= 0))([...document.querySelectorAll("tr.cell")].map((r) => r.cells[3].textContent))'
check "... what is open goes with them" holds '[...document.querySelectorAll("tr.cell")].every((r) => r.nextElementSibling.id === "panel-" + r.querySelector("button").textContent)'
check "... and that is said" holds '[...document.querySelectorAll("#cells th[aria-sort]")].map((e) => e.getAttribute("aria-sort")).join()' ascending
browser_cdp Emulation.setDeviceMetricsOverride '{"width":390,"height":800,"deviceScaleFactor":1,"mobile":false}' >/dev/null
check "390 pixels wide: nothing sticks out" holds 'document.documentElement.scrollWidth <= 390'
browser_cdp Emulation.clearDeviceMetricsOverride '{}' >/dev/null
check "no word on the console from it" is "$(console)" ""

# Next to another run
check "a run compared with itself: 2" exits 2 "$culprit" report "$tmp/charted" "$tmp/charted" -o "$tmp/none.html"
"$culprit" report "$tmp/charted" results/corpora/ci -o "$tmp/two.html" >/dev/null
"$culprit" table "$tmp/charted" results/corpora/ci --json | perl -MJSON::PP -0777 -ne 'for my $r (@{decode_json($_)->{detectors}}) { print "$r->{detector} $r->{run}",
	map({ my $x = $_->[0]{$_->[1]}; $x && defined $x->{rate} ? " $x->{count}/$_->[0]{n}" : "" } [$r->{faulty}, "right_server"], [$r->{faulty}, "wrong_server"], [$r->{controls}, "false_alarm"]), "\n" }' >"$tmp/table"
browser_open "file://$tmp/two.html"
browser_eval 'let of; return [...document.querySelectorAll("#compared tbody tr")].map((r) => { of = r.querySelector(".fault")?.textContent || of;
	return [of, r.querySelector("th.workload").textContent, ...[...r.querySelectorAll(".n")].map((e) => e.textContent)].join(" "); }).join("\n")' | sed '$a\' >"$tmp/shown"
check "two runs compared, as the table compares them" same "$tmp/table" "$tmp/shown"
check "... and drawn" holds 'document.querySelectorAll("#compared .first-run").length > 2'
check "no word on the console from it" is "$(console)" ""

# A large run
"$culprit" report results/runs/table1-20261121 -o "$tmp/large.html" >/dev/null
check "404 cells: at most 10 MB" [ "$(stat -c %s "$tmp/large.html")" -le 10000000 ]
browser_open "file://$tmp/large.html#all"
check "... all opened at once, unpacked as they are seen" browser_wait 'document.querySelectorAll(".open[aria-expanded=true]").length === 404 && !document.querySelector("#charts[hidden]") &&
	rows_of_cells.filter((r) => r.filled).length < 12'
check "... it says what is left out" holds 'document.querySelector("#foot").textContent.includes("the largest values of readings")'
rm "$tmp/large.html"

# The conclusions that few cells allow, as in the table
check "enough cells: no note on their number" holds 'document.querySelector(".power") === null'
"$culprit" report results/corpora/ci -o "$tmp/few.html" >/dev/null
browser_open "file://$tmp/few.html"
check "too few cells: reported with the number needed" holds 'document.querySelector(".power").textContent.includes(
	"20 faulty cells are few: a detector that is right in 0.30 of them needs 37 to be distinguished from one that never is ") &&
	document.querySelector(".power").textContent.includes("up to 0.37 possible (95 %); 72 without")'
check "... and detectors that cannot be distinguished are named" holds 'document.querySelector("#head ul.plain li").textContent' \
	"peer-threshold cannot be distinguished from crash-hang, always-healthy, always-same, seeded-random by these cells (right server)."

# A run of controls only: there is no faulty cell to take a rate of
"$culprit" report results/runs/table1-controls2-20261122 -o "$tmp/controls.html" >/dev/null
browser_open "file://$tmp/controls.html"
check "a run of controls opens" holds 'document.querySelector("h1").textContent' table1-controls2-20261122
check "... to its last section" holds 'document.querySelectorAll("#provenance h2").length' 1
check "... its headline is of false alarms alone" holds '[...document.querySelectorAll("#head th abbr")].map((e) => e.textContent).join()' "false alarm"
check "... counted as 'culprit table' counts them" is "$(browser_eval 'return document.querySelector("#head tbody .heat .n").textContent')" \
	"$("$culprit" table results/runs/table1-controls2-20261122 --format json | perl -MJSON::PP -0777 -ne 'my $c = decode_json($_)->{summary}{detectors}[0]{controls};
		print "$c->{false_alarm}{count}/$c->{n}"')"
check "... no detector is compared by what it found" holds 'document.querySelectorAll("#head li").length' 0
check "... each cell of the matrix has its false alarms" holds '[...document.querySelectorAll("#matrix td.heat .n")].every((e) => /^[0-9]+.[0-9]+$/.test(e.textContent))'
check "no word on the console from it" is "$(console)" ""

# A run with readings
"$culprit" report ci/tests/data/sampled -o "$tmp/sampled.html" >/dev/null
check "with readings, no more than 15 MB for 60 cells of 6 servers" [ "$(stat -c %s "$tmp/sampled.html")" -lt $((15000000 / 20 / 2)) ]
browser_open "file://$tmp/sampled.html"
browser_eval 'location.hash = "#cell-3"' >/dev/null
check "a cell with readings opens" browser_wait 'document.querySelector("#panel-3:not([hidden]) canvas")'
check "service times come first" holds 'document.querySelector("#panel-3 [role=img]").getAttribute("aria-label").includes("mean service time")'
offered='[...document.querySelectorAll("#panel-3 select option")].map((o) => o.value)'
check "readings are offered" holds "$offered.includes(\"disk_queue_s\") && $offered.includes(\"client_tcp_rtt_s\")"
check "... but what never changed is not" holds "$offered.includes(\"nic_dropped_packets\")" false
browser_eval 'const s = document.querySelector("#panel-3 select"); s.value = "disk_queue_s"; s.dispatchEvent(new Event("change"));
	document.querySelector("#panel-3 figure details").open = true' >/dev/null
check "a reading is shown as what it is" holds 'document.querySelector("#panel-3 [role=img]").getAttribute("aria-label").startsWith("disk_queue_s, total, by server")'
check "... with the victim standing out" holds '(() => { const [, out, during] = document.querySelector("#panel-3 [role=img]").getAttribute("aria-label").match(/s2 .victim. ([0-9.]+) s outside and ([0-9.]+) s during/);
	return Number(during) > 0 && Number(out) >= 0; })()'
check "... and what may be shown of it" holds '[...document.querySelectorAll("#panel-3 select")[1].options].map((o) => o.value).join()' total,mean,max
browser_eval 'const s = document.querySelector("#panel-3 select"); s.value = "nic_sent_bytes"; s.dispatchEvent(new Event("change"))' >/dev/null
check "bytes have their unit" holds '/[KM]iB/.test(document.querySelector("#panel-3 [role=img]").getAttribute("aria-label"))'
check "no word on the console from it" is "$(console)" ""

# Faults in several strengths: half of a recorded run's disk hogs are called weak
mkdir "$tmp/doses"
zcat results/corpora/ci/run.db.gz >"$tmp/doses/run.db"
sqlite3 "$tmp/doses/run.db" <<-SQL
	UPDATE cell SET fault = 'disk-hog(share=25%)' WHERE fault = 'disk-hog' AND repeat <= 2;
	INSERT OR REPLACE INTO fact VALUES ('inputs', '{"fault disk-hog": {"params": {"block": 268435456, "share": 100}},
		"fault disk-hog(share=25%)": {"params": {"block": 268435456, "share": 25}}}');
SQL
"$culprit" rescore "$tmp/doses" --detector peer-robust --detector peer-threshold --save >/dev/null
"$culprit" report "$tmp/doses" -o "$tmp/doses.html" >/dev/null
browser_open "file://$tmp/doses.html"
check "strength: the share found of each, in words" is "$(browser_eval 'return document.querySelector("#doses figure [role=img]").getAttribute("aria-label")')" \
	"Found of disk-hog by share. $("$culprit" table "$tmp/doses" --by strength --json | perl -MJSON::PP -0777 -ne '
		my @nulls = qw(always-healthy always-same seeded-random);
		print join ". ", map { my $s = $_; "$s->{detector}: " . join ", ", map { "$_->{strength} $_->{scores}{all}{tp}{count} of $_->{scores}{all}{n}" }
			@{$s->{strengths}} } grep { my $d = $_->{detector}; !grep { $_ eq $d } @nulls } @{decode_json($_)->{sweeps}}')"
check "... and drawn, a line a detector" holds 'document.querySelectorAll("#doses figure polyline").length === document.querySelectorAll("#doses .dose-key").length'
check "... and as figures" holds 'document.querySelectorAll("#doses table.matrix tbody tr").length > 2'
check "no word on the console from it" is "$(console)" ""

# ... and what they cost the application
mkdir "$tmp/sweep"
zcat results/runs/dose-20261121/run.db.gz >"$tmp/sweep/run.db"
"$culprit" report "$tmp/sweep" -o "$tmp/sweep.html" >/dev/null
"$culprit" table "$tmp/sweep" --by strength --json >"$tmp/sweep.json"
browser_open "file://$tmp/sweep.html"
# of_application CODE: with $s the strengths of the first fault, $i() a strength's impact on throughput over all workloads
of_application() { perl -MJSON::PP -0777 -ne 'our $a = decode_json($_)->{application}[0]; our $s = $a->{strengths}; sub i { $_[0]{impact}{all}{throughput} } '"$1" "$tmp/sweep.json"; }
check "the application: how much it keeps at each strength, said" is \
	"$(browser_eval 'return document.querySelector("#doses figure [role=img]").getAttribute("aria-label").split("throughput of the application: ")[1]')" \
	"$(of_application 'print join ", ", map { sprintf "%s %.2f [%.2f, %.2f]", $_->{strength}, i($_)->{ratio}, i($_)->{low}, i($_)->{high} } @$s')"
check "... what it loses, drawn: between 0, at 128, and 1, at 8" is \
	"$(browser_eval 'return document.querySelector("#doses figure .loss polyline").getAttribute("points").split(" ").map((p) => p.split(",")[1]).join(" ")')" \
	"$(of_application 'print join " ", map { my $x = 1 - i($_)->{ratio}; sprintf "%.1f", 128 - 120 * ($x < 0 ? 0 : $x) } @$s')"
check "... its intervals, too" is "$(browser_eval 'const l = [...document.querySelectorAll("#doses figure .loss line")][3]; return [l.y1.baseVal.value, l.y2.baseVal.value].map((y) => y.toFixed(1)).join(" ")')" \
	"$(of_application 'printf "%.1f %.1f", 128 - 120 * (1 - i($s->[3])->{high}), 128 - 120 * (1 - i($s->[3])->{low})')"
check "... with a key" holds 'document.querySelectorAll("#doses figure:first-of-type polyline").length === document.querySelectorAll("#doses .dose-key").length'
check "where it suffers from, next to where detectors see" holds 'document.querySelector("#doses figure .starts").textContent' \
	"application (throughput) from 100%; peer-robust from 100%; peer-threshold from –"
check "latency is unknown, and why" holds 'document.querySelector("#doses").textContent.includes("latency is unknown: no requests were recorded")'
victim=$(sqlite3 "$tmp/sweep/run.db" "SELECT number FROM cell WHERE fault = 'disk-hog' AND workload LIKE 'ddr%' AND repeat = 1")
browser_eval "location.hash = '#cell-$victim'" >/dev/null
check "an opened cell has its own" browser_wait "document.querySelector('#panel-$victim .facts') && document.querySelector('#panel-$victim').textContent.includes('throughput 0.37 [0.32, 0.42] of that of controls')"
browser_cdp Emulation.setDeviceMetricsOverride '{"width":360,"height":800,"deviceScaleFactor":1,"mobile":false}' >/dev/null
check "on a phone nothing is wider than the page" holds 'document.documentElement.scrollWidth <= innerWidth'
browser_cdp Emulation.clearDeviceMetricsOverride '{}' >/dev/null
check "no word on the console from it" is "$(console)" ""

# Shards, one of them missing
. ci/tests/cli/split.sh
mkdir "$tmp/whole"
zcat results/corpora/ci/run.db.gz >"$tmp/whole/run.db"
"$culprit" rescore "$tmp/whole" --detector peer-robust --save >/dev/null
servers=$(sqlite3 "$tmp/whole/run.db" "SELECT json_array_length(value) FROM fact WHERE key = 'servers'")
{ echo 'return { file_system = { type = "glusterfs" }, nodes = { { name = "c1", role = "client" },'
	for i in $(seq "$servers"); do echo "{ name = \"s$i\", role = \"server\" },"; done; echo '} }'; } >"$tmp/hosts.lua"
split "$tmp/whole" 3 "$tmp/hosts.lua" "$tmp/part"
"$culprit" report "$tmp/part-1" "$tmp/part-3" -o "$tmp/shards.html" >/dev/null 2>&1
browser_open "file://$tmp/shards.html"
check "shards: which are there, which are missing" holds \
	'/^Shards 1.3, 3.3: [0-9]+ of the plan.s [0-9]+ scored cells; missing: 2.3\.$/.test([...document.querySelectorAll("#head p")].map((p) => p.textContent).find((t) => /^Shard/.test(t)))'
check "no word on the console from it" is "$(console)" ""

# A run of times under tracers
cp -r results/runs/errors-20261121 "$tmp/timed"
sqlite3 "$tmp/timed/run.db" <<-SQL
	UPDATE cell SET fault = 'none', victims = NULL, training = 0, tracer = CASE number % 2 WHEN 1 THEN 'none' ELSE 'ptrace' END,
		repeat = (number + 1) / 2, workload = 'ddw';
	UPDATE attempt SET detail = json_set(detail, '$.runtime_s', 10 + cell % 2 * -2 + cell % 3);
	INSERT OR REPLACE INTO fact VALUES ('measure', 'runtime');
	DELETE FROM verdict;
SQL
"$culprit" report "$tmp/timed" -o "$tmp/timed.html" >/dev/null
"$culprit" table "$tmp/timed" --format json >"$tmp/timed.json"
browser_open "file://$tmp/timed.html"
check "overhead of tracing" is "$(browser_eval 'const c = document.querySelector("#overhead td.heat"); return c.querySelector("b").textContent + " " + c.querySelector(".n").textContent')" \
	"$(perl -MJSON::PP -0777 -ne 'my $c = decode_json($_)->{cells}[0]; printf "+%.0f %% %d pairs", $c->{overhead_pct}, $c->{pairs}' "$tmp/timed.json")"
check "... of each cell" holds 'document.querySelector("tr.cell td:last-child").textContent' "9 s"
check "no word on the console from it" is "$(console)" ""
done_testing
