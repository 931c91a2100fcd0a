#!/bin/bash
# diag/detectors/HOW.md and README.md: the detectors that they show run, and score what they say; the figures are what the recorded
# runs give, byte for byte. No root, no cluster.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
root=$PWD culprit=$PWD/${OUT:-out}/culprit corpus=results/corpora/matrix
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# block NAME PAGE: the Lua of that detector, as the page has it.
block() { what="= \"$1\"" perl -0777 -ne 'while (/^```lua\n(.*?)^```/msg) { print $1 if index($1, $ENV{what}) >= 0 }' "$2"; }
# shown COMMAND PAGE: what the page says that this command prints, without the indentation.
shown() { what=$1 perl -0777 -ne 'print $1 =~ s/^    //gmr if /^    \$ culprit \Q$ENV{what}\E[^\n]*\n((?:    [^\$][^\n]*\n|\n(?=    [^\$]))+)/m' "$2"; }
# in_order FILE: its lines are in standard input, in their order; "..." leaves some out.
in_order() {
	perl -e 'open F, shift; chomp(my @want = grep { !/^\.\.\.$/ } <F>); my $k = 0;
		while (<STDIN>) { chomp; $k++ if $k < @want && $_ eq $want[$k] } print "not printed: $want[$k]\n" if $k < @want; exit($k < @want || !@want)' "$1"
}
counts() { # FILE FAULTS: cells with the right server, cells with a wrong one, in the faults that match
	"$culprit" rescore $corpus --detector "$1" --format csv | awk -F, -v name="$3" -v faults="$2" \
		'$1 == name && $4 == "any" && $2 ~ faults { tp += $8; fp += $12 } END { print tp + 0, fp + 0 }'
}

page=diag/detectors/HOW.md
block busy-disk $page >"$tmp/busy-disk.lua"
block busiest-disk diag/detectors/README.md >"$tmp/busiest-disk.lua"
check "HOW.md: its detector has twenty lines" [ "$(wc -l <"$tmp/busy-disk.lua")" -eq 20 ]
for what in "rescore results/corpora/matrix --detector ./busy-disk.lua" "diagnose results/corpora/matrix --cell 36" \
	"rescore results/corpora/matrix --detector ./busiest-disk.lua --tap"; do
	shown "$what" $page >"$tmp/shown"
	command=$(grep -F "    \$ culprit $what" $page | sed 's/^ *\$ culprit //; s/ |.*//')
	# shellcheck disable=SC2086
	check "HOW.md: culprit $what prints what is shown" in_order "$tmp/shown" < <(cd "$tmp" && ln -sfn "$root/results" results && "$culprit" $command)
done
"$culprit" rescore $corpus --detector "$tmp/busiest-disk.lua" --detector peer-robust >"$tmp/out"
shown "rescore results/corpora/matrix --detector ./busiest-disk.lua --detector peer-robust" diag/detectors/README.md >"$tmp/shown"
check "README.md: its detector prints what is shown" in_order "$tmp/shown" <"$tmp/out"

check "HOW.md: it finds 9 of the 12 disk faults, with no false indictment" [ "$(counts "$tmp/busy-disk.lua" '^disk-' busy-disk)" = "9 0" ]
check "it finds nothing else" [ "$(counts "$tmp/busy-disk.lua" . busy-disk)" = "9 0" ]
check "the README's finds 8 of them" [ "$(counts "$tmp/busiest-disk.lua" '^disk-' busiest-disk | cut -d' ' -f1)" = 8 ]
sed 's|{ by_request\[i\] / requests\[i\], by_byte|{ by_byte|' "$tmp/busy-disk.lua" >"$tmp/bytes.lua"
check "by the byte alone, 8 cells are wrong" [ "$(counts "$tmp/bytes.lua" . busy-disk | cut -d' ' -f2)" = 8 ]
check "where no disk was sampled, it abstains" bash -c "'$culprit' diagnose results/corpora/ci --cell 9 --detector '$tmp/busy-disk.lua' |
	grep -q 'no disk was sampled'"

if command -v python3 >/dev/null; then
	mkdir "$tmp/figures"
	check "the figures are what the detectors say" python3 results/figures/detectors.py "$tmp/figures"
	check "and of a made-up fleet" python3 results/figures/fleet.py "$tmp/figures"
	check "and the results of the sweeps" python3 results/figures/doses.py "$tmp/figures"
	check "and the effects of thresholds" python3 results/figures/roc.py "$tmp/figures"
	check "and what is found in made-up fleets" python3 results/figures/fleets.py "$tmp/figures"
	for figure in results/figures/*.svg; do
		check "$(basename "$figure"): drawn anew (make figures), it is the same" cmp "$figure" "$tmp/figures/$(basename "$figure")"
		check "$(basename "$figure"): a page shows it, and says in words what is on it" bash -c "cat $page results/*.md |
			figure='figures/$(basename "$figure")' perl -0777 -ne 'exit !/!\[[^\]]{150,}\]\((..\/..\/results\/)?\Q\$ENV{figure}\E\)/'"
		check "$(basename "$figure"): its background is its own, its title and description are named" \
			perl -0777 -ne 'exit !(/<title id="t">.+<desc id="d">.+<rect width="\d+" height="\d+" fill="#ffffff"\/>/s && /role="img" aria-labelledby="t d"/)' "$figure"
	done
	check "and there are no others" [ "$(ls "$tmp/figures" | wc -l)" -eq "$(ls results/figures/*.svg | wc -l)" ]
	# A detector that says something else: its figure is refused.
	mkdir -p "$tmp/liar"
	printf '#!/bin/sh\n"%s" "$@" | sed "s/\\"s2\\": 10.0$/\\"s2\\": 11/"\n' "$culprit" >"$tmp/liar/culprit"
	chmod +x "$tmp/liar/culprit"
	check "a figure that is not what the detector says is refused" bash -c "! OUT='$tmp/liar' python3 results/figures/detectors.py '$tmp/figures' 2>'$tmp/err' &&
		grep -q 'the detector says 11' '$tmp/err'"
else
	tap_n=$((tap_n + 1))
	echo "ok $tap_n # SKIP no python3 here"
fi
done_testing
