#!/bin/bash
# Committed runs give the tables that results/ shows, when they are printed and when their measurements are
# judged again by the detectors of today.
cd "$(dirname "$0")/../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for run in results/runs/*; do
	id=${run##*/}
	cp -r "$run" "$tmp/$id"
	beside=()
	[[ $id != table1-* ]] || beside=(--against hotdep09-table1)
	shown=$(grep '^[|*]' "results/$id.md")
	within() { # every line of the table stands in the page
		local line missing=0
		while read -r line; do grep -qxF -- "$line" <<<"$shown" || { echo "not in the page: $line"; missing=1; }; done < <(grep '^[|*]')
		return $missing
	}
	check "$id: the page shows its table" within < <("$culprit" table "$tmp/$id" "${beside[@]}" --format markdown)
	check "$id: there is a table" [ "$("$culprit" table "$tmp/$id" "${beside[@]}" --format markdown | grep -c '^|')" -gt 10 ]
	check "$id: judged again, it is the same" within < <("$culprit" rescore "$tmp/$id" "${beside[@]}" --format markdown)
	check "$id: its report can be made" bash -c "'$culprit' report '$tmp/$id' -o '$tmp/page.html' && [ \$(stat -c %s '$tmp/page.html') -gt 100000 ]"
done
# What README and page say of the half of Table 1's run that was held out.
held=$("$culprit" rescore "$tmp/table1-20261121" --cells 45-84)
check "held out: 30 of 30, nobody wrong, 0 of 10 controls" grep -qx "peer-robust  *1.00 \[.88,1\]  *1.00 \[.88,1\]  *0.00 \[0,.12\]  *0.00 \[0,.31\]" <<<"$held"
check "of 30 faulty cells and 10 controls" grep -q "^ *30 faulty  *10 controls" <<<"$held"
check "with the right cause" grep -q "cause for 1.00 \[.88,1\]" <<<"$held"
check "and in all of it 57 and 8 of 60" test "$("$culprit" rescore "$tmp/table1-20261121" --json |
	perl -MJSON::PP -0777 -ne 'print map { "$_->{detector} $_->{faulty}{right_server}{count}/$_->{faulty}{n} " }
		grep { $_->{detector} =~ /^peer/ } @{ decode_json($_)->{summary}{detectors} }')" = "peer-robust 57/60 peer-threshold 8/60 "
for cells in x 4 9-3 0-4 5-44x 900-901; do
	check "--cells $cells is refused" bash -c "'$culprit' table '$tmp/table1-20261121' --cells $cells 2>&1 | grep -q 'cell'; [ \${PIPESTATUS[0]} = 2 ]"
done
done_testing
