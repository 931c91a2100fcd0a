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
done_testing
