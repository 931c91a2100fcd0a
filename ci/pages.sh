#!/bin/bash
# What pages show of runs is printed by the program, not typed. In the pages it stands between
#
#   <!-- $ culprit table results/runs/RUN --format markdown -->      any pipeline; culprit and fleet_families are this build's
#   <!-- end -->
#
# (in a fence of its own, if there is one).
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
export -f culprit fleet_families
rc=0
new=$(mktemp)
trap 'rm -f "$new"' EXIT
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
