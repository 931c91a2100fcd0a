#!/bin/bash
# What pages show of runs is printed by the program, not typed. In the pages it stands between
#
#   <!-- $ culprit table results/runs/RUN --format markdown -->      any pipeline; culprit, fleet_families, table61 are this build's,
#                                                                    $(recorded NAME) is a log of ci/tests/data, unpacked
#   <!-- end -->
#
# (in its own fence, if there is one).
#
#   ci/pages.sh [PAGE...]          prints it anew there
#   ci/pages.sh --check [PAGE...]  says which pages are not as it would be, and ends with 1 then
set -euo pipefail
cd "$(dirname "$0")/.."
check=
[[ ${1-} != --check ]] || { check=1; shift; }
if [ $# = 0 ]; then mapfile -t pages < <(grep -rlF '<!-- $ ' --include='*.md' README.md scenarios results diag); else pages=("$@"); fi
culprit() { "$PWD/${OUT:-out}/culprit" "$@"; }
fleet_families() { "$PWD/${OUT:-out}/bench/fleet_families" "$@"; }
recorded() { zcat "ci/tests/data/$1.log.gz" >"$logs/$1" && echo "$logs/$1"; }
table61() { "$PWD/${OUT:-out}/bench/table61" "$@"; }
export -f culprit fleet_families table61 recorded
rc=0
new=$(mktemp)
export logs=$(mktemp -d)
trap 'rm -rf "$new" "$logs"' EXIT
for page in "${pages[@]}"; do
	perl -0777 -pe 's{(<!-- \$ (.*?) -->\n(```\w*\n)?)(.*?)((?:```\n)?<!-- end -->)}{
		my ($head, $command, $tail) = ($1, $2, $5);
		open(my $p, "-|", "bash", "-o", "pipefail", "-c", $command) or die "$command: $!\n";
		local $/; my $text = <$p>;
		close($p) or die "$ARGV: \"$command\" failed\n";
		"$head$text$tail"}gse' "$page" >"$new"
	cmp -s "$page" "$new" && continue
	if [ "$check" ]; then
		echo "$page is not what its commands print; 'ci/pages.sh $page' prints it anew:"
		diff -u "$page" "$new" | head -40 || true
		rc=1
	else
		cat "$new" >"$page"
		echo "$page is new"
	fi
done
exit $rc
