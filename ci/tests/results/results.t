#!/bin/bash
# Committed runs give the tables that the pages show, when they are printed and when their measurements are judged again
# by the detectors of today; and what the pages' sentences say of the cells that were held out is what these cells give.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
check "pages show what the program prints" ci/pages.sh --check
check "there are pages that do" [ "$(grep -lF '<!-- $ culprit table' README.md results/*.md | wc -l)" -ge 4 ]
# Output that no test makes anew says so (results/README.md). results/fleet/ has inputs.
check "blocks that only show a file say that they are kept output" [ "$(grep -hB2 "^<!-- \$ cat results/[^f ]\|^<!-- \$ cat results/flow" results/*.md | grep -c "^Kept output, which no test makes anew:")" = 8 -a "$(grep -h "^<!-- \$ cat " results/*.md | grep -vc " results/fleet/")" = 8 ]
cp results/errors-20261121.md "$tmp/page.md"
sed -i 's/| crash-hang | 45 |/| crash-hang | 44 |/' "$tmp/page.md"
edited() { ci/pages.sh --check "$tmp/page.md" >"$tmp/said" 2>&1; [ $? = 1 ] && grep -q 'crash-hang | 4[45]' "$tmp/said" || { cat "$tmp/said"; return 1; }; }
check "a page that was edited by hand is reported, with the line" edited
check "and made good" bash -c "ci/pages.sh '$tmp/page.md' >/dev/null && cmp '$tmp/page.md' results/errors-20261121.md"
for picture in table1:table1-20261121 table1-orangefs:table1-orangefs-20261122 table1-times:table1-times-20261129; do
	check "${picture%:*}.svg is what the program draws" cmp "results/${picture%:*}.svg" <("$culprit" table "results/runs/${picture#*:}" --against hotdep09-table1 --format svg)
done
for wrong in "" "--by strength" "--against hotdep09-table2"; do
	# shellcheck disable=SC2086
	check "there is no picture ${wrong:-of scores alone}" bash -c "'$culprit' table results/runs/errors-20261121 --format svg $wrong >'$tmp/none' 2>/dev/null; [ \$? = 2 ] && [ ! -s '$tmp/none' ]"
done
for run in results/runs/*; do
	id=${run##*/}
	cp -r "$run" "$tmp/$id"
	"$culprit" table "$tmp/$id" >"$tmp/$id.table"
	check "$id: there is a table" [ "$(wc -l <"$tmp/$id.table")" -gt 10 ]
	check "$id: judged again, it is the same" diff "$tmp/$id.table" <("$culprit" rescore "$tmp/$id")
	check "$id: its report can be made" bash -c "'$culprit' report '$tmp/$id' -o '$tmp/page.html' && [ \$(stat -c %s '$tmp/page.html') -gt 100000 ]"
done
evidence=$("$culprit" diagnose "$tmp/errors-20261121" --detector crash-hang,timeout=5s --evidence)
check "evidence has servers and clients by their names" bash -c "grep -q 'client: \"c1\"' && ! grep -E '(client|server)-[0-9]{4}'" <<<"$evidence"
# "30 of 30 victims", "0 of 10 controls", as the pages say it: of what was not examined before peer-robust was as it is.
held_out() { # RUN CELLS
	"$culprit" rescore "$tmp/$1" --cells "$2" --json
}
counted() { # [DETECTOR]
	DETECTOR=${1-peer-robust} perl -MJSON::PP -0777 -ne '
	my ($right, $faulty, $alarms, $controls) = (0) x 4;
	for my $run (JSON::PP->new->incr_parse($_)) {
		for (grep { $_->{detector} eq $ENV{DETECTOR} } @{ $run->{summary}{detectors} }) {
			my ($f, $c) = @$_{qw(faulty controls)};
			$right += $f->{right_server}{count} // 0; $faulty += $f->{n}; $alarms += $c->{false_alarm}{count} // 0; $controls += $c->{n}; } }
	print "$right of $faulty victims\n$alarms of $controls controls\n"'
}
held=$({ held_out table1-controls-20261122 113-404; held_out table1-controls2-20261122 1-404; held_out table1-again-20261122 1-404; } | counted)
check "there is something held out" grep -q " of [1-9][0-9]* victims" <<<"$held"
page=results/table1-20261121.md
while read -r words; do check "$page: $words" grep -qF "$words" <(tr '\n' ' ' <$page); done <<<"$held"
# The README has the same counts as rows of a table: what they are of, victims named, controls with an alarm.
row() { check "README: $1 | $2 | $3" grep -qE "^\| .*$1.* \| $2 \| $3 \|$" README.md; }
victims() { sed -n 's/ victims//p' <<<"$1"; }
controls() { sed -n 's/ controls//p' <<<"$1"; }
row "GlusterFS" "$(victims "$held")" "$(controls "$held")"
busy=$("$culprit" rescore results/runs/weak-busy-20261127 --detector peer-robust --json | counted | sed -n '2s/ controls//p')
row "overloaded processors" - "$busy"
# On OrangeFS all cells are held out.
held=$(held_out table1-orangefs-20261122 1-204 | counted)
page=results/table1-orangefs-20261122.md
while read -r words; do check "$page: $words" grep -qF "$words" <(tr '\n' ' ' <$page); done <<<"$held"
row "peer-robust.*OrangeFS" "$(victims "$held")" "$(controls "$held")"
held=$(held_out table1-orangefs-20261122 1-204 | counted peer-threshold)
row "peer-threshold.*OrangeFS" "$(victims "$held")" "$(controls "$held")"
# So they are in the run in the paper's proportions: its page says of each detector what its cells give.
for detector in peer-robust "peer-threshold(mean=true)"; do
	held=$("$culprit" rescore results/runs/table1-times-20261129 --json | counted "$detector")
	while read -r words; do check "results/table1-times-20261129.md: $detector: $words" grep -qF "$words" <(tr '\n' ' ' <results/table1-times-20261129.md); done <<<"$held"
	row "$([ $detector = peer-robust ] || echo "as published.*")paper's proportions" "$(victims "$held")" "$(controls "$held")"
done
places=$(sed -n 's/^| \*\*inside the interval\*\* | | 30 | \([0-9]* of 30\) .*/\1/p' results/table1-times-20261129.md)
check "results/README.md: ${places:-?} places, as on the page" grep -qE "^\| The same table, with requests timed .* $places places" results/README.md
# Of weak disk hogs: what was found from a quarter of the time on, and the controls.
weak=$("$culprit" rescore results/runs/weak-20261123 --detector peer-robust --json | perl -MJSON::PP -0777 -ne '
	my ($found, $n, $alarms, $controls) = (0) x 4;
	for (grep { $_->{detector} eq "peer-robust" && $_->{metric} eq "any" && $_->{fault} !~ /share=10%/ } @{ decode_json($_)->{scores} }) {
		if ($_->{control}) { $alarms += $_->{fp}{count}; $controls += $_->{n} } else { $found += $_->{tp}{count}; $n += $_->{n} } }
	print "$found of $n victims\n$alarms of $controls controls\n"')
row "hogs.* a quarter of a disk or more" "$(victims "$weak")" "$(controls "$weak")"
delay=$("$culprit" rescore results/runs/weak-20261123 --detector peer-robust --json | perl -MJSON::PP -0777 -ne '
	my @d = sort { $a <=> $b } map { $_->{delay_s}{median} // () } grep { $_->{detector} eq "peer-robust" && $_->{metric} eq "any" } @{ decode_json($_)->{scores} };
	printf "is %.1f s (%.1f to %.1f s)\n", ($d[$#d / 2] + $d[@d / 2]) / 2, $d[0], $d[-1]')
check "results/weak-20261123.md: its median delay $delay" grep -qF "$delay" results/weak-20261123.md
# Of errors on OrangeFS: what one of three detectors found, in both modes.
union() { # METHOD WHAT: of its verdicts by the detectors that look for errors, those where WHAT holds
	sqlite3 "$tmp/$1.db" "SELECT count(DISTINCT cell.number) FROM cell JOIN attempt a ON a.cell = cell.number AND outcome = 'confirmed'
		LEFT JOIN verdict v ON v.attempt = a.id AND detector IN ('errno-propagation', 'errno-silent', 'crash-hang') WHERE NOT training AND ($2)"
}
found=() wrong=() silent=()
for method in directio alt-aio; do
	zcat results/runs/errors-orangefs-$method-20261122/run.db.gz >"$tmp/$method.db"
	found+=("$(union $method "verdict->'indicted' = victims") of $(union $method "victims IS NOT NULL")")
	wrong+=("$(union $method "EXISTS (SELECT 1 FROM json_each(verdict, '\$.indicted') i WHERE i.value NOT IN (SELECT value FROM json_each(coalesce(victims, '[]'))))") of $(union $method 1)")
	silent+=("$(union $method "detector = 'errno-silent' AND verdict->'indicted' = victims AND NOT EXISTS (SELECT 1 FROM verdict o WHERE o.attempt = a.id
		AND o.detector IN ('errno-propagation', 'crash-hang') AND o.verdict->'indicted' = victims)")")
done
for row in "${found[0]} | ${found[1]}" "${wrong[0]} | ${wrong[1]}" "${silent[0]} | ${silent[1]}"; do
	check "errors on OrangeFS: | $row |" grep -qF "| $row |" results/errors-orangefs-20261122.md
done
for cells in x 4 9-3 0-4 5-44x 900-901; do
	check "--cells $cells is refused" bash -c "'$culprit' table '$tmp/table1-20261121' --cells $cells 2>&1 | grep -q 'cell'; [ \${PIPESTATUS[0]} = 2 ]"
done
done_testing
