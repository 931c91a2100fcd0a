#!/bin/bash
# The example fleet: its file is what was recorded, the victims come first, and what the page and the README show is what the program
# prints. 'culprit query --samples --wide' prints what 'culprit diagnose --csv' reads.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
command -v sqlite3 >/dev/null || skip_all "no sqlite3"
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
is() { [ "$1" = "$2" ] || { printf 'got:      %s\nexpected: %s\n' "$1" "$2"; return 1; }; }
example=results/fleet/example.csv.gz labels=results/fleet/example-labels.csv

check "the file is what was recorded" cmp <(zcat "$example") <(ci/bench/fleet_example.sh --csv)
check "the labels are" cmp "$labels" <(ci/bench/fleet_example.sh --labels)
check "it is of moderate size" [ "$(stat -c %s "$example")" -lt 400000 ]
check "pages show what the program prints" ci/pages.sh --check results/fleet-example.md README.md
victims=$(tail -n +2 "$labels" | cut -d, -f1 | sort | xargs)
"$culprit" diagnose --csv "$example" --labels "$labels" --rank --json >"$tmp/out.json"
json() { perl -MJSON::PP -0777 -e 'my $v = decode_json(<STDIN>); print eval $ARGV[0]' "$1" <"$tmp/out.json"; }
check "those with a label are ranked first" is "$(json 'join " ", sort map { $_->{member} } @{$v->{ranking}}[0, 1]')" "$victims"
check "they are the findings, and nobody else is" is "$(json 'my %m = map { $_->{member} => 1 } @{$v->{findings}}; join " ", sort keys %m')" "$victims"

"$culprit" query --samples results/corpora/ci --wide >"$tmp/wide.csv"
"$culprit" query --samples results/corpora/ci --wide --cell 9 --metric disk_read_time_s --metric dread >"$tmp/few.csv"
check "wide: a head, then rows of as many fields" is "$(grep -v '^#' "$tmp/wide.csv" | awk -F, '{ print NF }' | sort -u | wc -l)" 1
check "a metric comes with what it is divided by" is "$(sed -n '/^time/p' "$tmp/few.csv")" "time,server,dread,dread_count,disk_reads,disk_read_time_s"
check "... as its declaration says" grep -qx '# metric disk_read_time_s unit=s worse=more kind=amount per=disk_reads' "$tmp/few.csv"
sums() { awk -F, -v s="$1" -v v="$2" 'NR > 1 && $v != "" && $s == "s1" && (v == 3 || $3 == "dread") { n += $v } END { printf "%.6f\n", n }'; }
check "its sums are those of the long form" is "$(grep -v '^#' "$tmp/few.csv" | sums 2 3)" "$("$culprit" query --samples results/corpora/ci --cell 9 --metric dread | sums 4 7)"
check "diagnose reads it from a pipe" bash -c "'$culprit' query --samples results/corpora/ci --wide | '$culprit' diagnose --csv - | grep -q 'members judged'"
check "diagnose guesses nothing about the wide form" prints_without guessed 0 "$culprit" diagnose --csv "$tmp/wide.csv"
done_testing
