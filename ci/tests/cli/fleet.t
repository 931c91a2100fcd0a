#!/bin/bash
# culprit diagnose --csv with the detector 'fleet': who is found in a small fleet and how it is said; windows, ranking, labels, JSON,
# and which options do not go together. No root, no cluster.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/schema.sh
culprit=$PWD/${OUT:-out}/culprit page=$PWD/diag/detectors/FLEET.md
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

# 12 hosts of 4 disks, an hour a step for 14 days from 2026-11-01 UTC; host3's sdc is 1.6 times as slow from the 100th hour, host7's sda
# three times for 6 hours of 50. The disks of a host share a daily load.
fleet() { perl -e 'srand($ARGV[0]); my $zero = $ARGV[1]; print "time,host,disk,latency_ms\n";
	for my $t (0 .. 14 * 24 - 1) { for my $h (1 .. 12) { for my $d (0 .. 3) {
		my $v = 5 * (1 + .3 * sin($t / 24 * 6.283 + $h)) * exp(.15 * (rand() + rand() + rand() - 1.5));
		if ($ARGV[2]) { $v *= 1.6 if $h == 3 && $d == 2 && $t >= 100; $v *= 3 if $h == 7 && $d == 0 && $t % 50 < 6; }
		printf "%d,host%d,sd%s,%s\n", $zero + 3600 * $t, $h, chr(97 + $d), rand() < .02 ? "" : sprintf("%.3f", $v) } } }' "$@"; }
fleet 1 1793491200 1 >ill.csv
fleet 2 1793491200 0 >well.csv
fleet 1 0 1 >seconds.csv

is() { [ "$1" = "$2" ] || { printf 'got:      %s\nexpected: %s\n' "$1" "$2"; return 1; }; }
exits() { local want=$1; shift; "$@" >out 2>err; is $? "$want" || { cat err; return 1; }; }
# refused WHAT ARGUMENT...: exit code 2, nothing on standard output, one line that says WHAT
refused() { local what=$1; shift; exits 2 "$culprit" diagnose "$@" && [ ! -s out ] && is "$(wc -l <err)" 1 && { grep -q -- "$what" err || { cat err; return 1; }; }; }
found() { grep -c -E '^ +[0-9.]+  host' "$1"; }

check "a fleet with two ill disks is judged: 0" exits 0 "$culprit" diagnose --csv ill.csv
cp out text
sed -n '/^    \$ culprit diagnose --csv disks.csv --rank 3$/,/^\*\*/{s/^    //;/^\(\$\|\*\*\)/d;s/, [.][.][.]$//;p}' "$page" | grep . >shown
cp ill.csv disks.csv && "$culprit" diagnose --csv disks.csv --rank 3 >printed
missing=$(grep -q severity shown || echo "no example"; while read -r line; do grep -qF -- "$line" printed || echo "not printed: $line"; done <shown)
check "diag/detectors/FLEET.md shows this fleet, and what is printed of it" is "$missing" ""
check "... what was understood comes first" grep -q '^ill.csv: CSV .*'"'disk'.*'host'" text
check "... also the guess what the metric is" grep -q '^  latency_ms: more is worse.*guessed' text
check "the lasting one has effect, share, onset" grep -qE '^ +[0-9.]+  host3/sdc  latency_ms     1\.[5-7][0-9]   all  +(100|9[0-9]) %  2026-11-05 0[0-9]:00  still +lasting$' text
check "the other one is told as bursts" grep -qE '^ +[0-9.]+  host7/sda  latency_ms .* in bursts$' text
check "... and over which stretches they are so long" grep -qE '^ +[0-9.]+  host7/sda  latency_ms +[23]\.[0-9]+ +[0-9]+ h +1[0-9] % ' text
check "nobody else is" is "$(found text)" 2
check "a summary" grep -q '^2 findings: 1 lasting, 1 in bursts$' text
check "... with the number of members" grep -q '^48 of 48 members judged$' text
check "... and what false alarms were asked for" grep -q '^false alarms asked for: 1 in 10,000 series and weeks; least ratio 1.15' text
check "a healthy fleet: nobody" exits 0 "$culprit" diagnose --csv well.csv
check "... as it says" grep -q '^0 findings$' out
check "times from zero are told in seconds" bash -c "'$culprit' diagnose --csv seconds.csv | grep -qE 'host3/sdc .* 3[0-9]{5} s +still'"
check "the same through a pipe" diff <("$culprit" diagnose --csv - <ill.csv | tail -n +2) <(tail -n +2 text)

check "--fail: 1 if there is a finding" exits 1 "$culprit" diagnose --csv ill.csv --fail
check "... and 0 if there is none" exits 0 "$culprit" diagnose --csv well.csv --fail
check "--least above the effect of the lasting fault: the disk is not found" prints_without host3/sdc 0 "$culprit" diagnose --csv ill.csv --least 2
check "... and what is printed is never less than asked for" prints_without '^ +[0-9.]+  host.*  1\.' 0 "$culprit" diagnose --csv ill.csv --least 2
check "fewer false alarms may be asked for as a fraction" bash -c "'$culprit' diagnose --csv well.csv --false-alarms 1/1000000 | grep -q '1 in 1,000,000 series'"
check "a metric declared as not to be looked at accuses nobody" exits 2 "$culprit" diagnose --csv ill.csv --metric 'latency_ms worse=none'
check "where less is worse, the slow disk is not found" prints_without '^ .*host3/sdc .* 1\.' 0 "$culprit" diagnose --csv ill.csv --metric 'latency_ms worse=less unit=ms'

check "a declaration of a metric that there is not is told, with the near one" bash -c \
	"'$culprit' diagnose --csv ill.csv --metric 'latency worse=more' | grep -q \"'latency' is declared.* did you mean 'latency_ms'\""
check "nothing between two times: file and options are named" refused "ill.csv: no sample lies between --from and --to" --csv ill.csv --from 2030-01-01
printf 'time,server,latency\n1,a,2\n2,a,2\n1,b,2\n2,b,3\n1,c,2\n2,c,\n' >short.csv
check "no limit is told where too little was measured" bash -c "'$culprit' diagnose --csv short.csv 2>/dev/null | grep -q 'latency: too few samples for a limit'"

"$culprit" diagnose --csv ill.csv --rank >out
check "--rank lists 20 members" is "$(sed -n '/^rank/,/^$/p' out | grep -c host)" 20
check "... the worst first" is "$(sed -n '/^rank/{n;n;p}' out | awk '{ print $1, $3 }')$(sed -n '/^rank/{n;p}' out | awk '{ print $1 }')" "2 $(sed -n '/^rank/{n;n;p}' out | awk '{ print $3 }')1"
check "--rank 3 lists three" is "$("$culprit" diagnose --csv ill.csv --rank 3 | sed -n '/^rank/,/^$/p' | grep -c host)" 3
check "--rank=3 too" is "$("$culprit" diagnose --rank=3 --csv ill.csv | sed -n '/^rank/,/^$/p' | grep -c host)" 3
check "--rank before another option" is "$("$culprit" diagnose --rank --csv ill.csv | sed -n '/^rank/,/^$/p' | grep -c host)" 20

"$culprit" diagnose --csv ill.csv --window 1d >out
check "by days: a member is one line, with the number of its days" is "$(grep -cE '^ +[0-9.]+  host3/sdc .* (9|10) of 14$' out)" 1
"$culprit" diagnose --csv ill.csv --window 1w >out
check "weeks begin on Monday: three of them" grep -q '3 of 3 windows judged' out
"$culprit" diagnose --csv ill.csv --window 1d --all-windows >out
check "all windows: each is printed" is "$(grep -c '^2026-11-.. 00:00 to 2026-11-.. 00:00' out)" 14
check "... with who was found in it" [ "$(grep -c '  host3/sdc  ' out)" -ge 9 ]
check "from and to" bash -c "'$culprit' diagnose --csv ill.csv --to 2026-11-05T00:00:00Z | grep -q '2026-11-01 00:00 to 2026-11-0[45] '"

printf '# known to be ill\nhost3/sdc\nhost7/sda\n' >labels
"$culprit" diagnose --csv ill.csv --labels labels >out
check "--labels scores" grep -q 'TP 2, FP 0, FN 0, TN 46' out
echo host3/sdz >odd.labels
check "a label of nobody is refused" refused "odd.labels:1: no member 'host3/sdz'; did you mean" --csv ill.csv --labels odd.labels

"$culprit" diagnose --csv ill.csv --json --rank 2 --window 1d --labels labels >out.json
field() { perl -MJSON::PP -0777 -e 'my $v = decode_json(<STDIN>); print eval $ARGV[0]' "$1" <out.json; }
check "JSON: detector and version" is "$(field '"$v->{detector} $v->{version} $v->{clock}"')" "fleet 1 unix"
fits diagnose out.json
check "JSON: findings" is "$(field 'join ",", sort map { $_->{member} } @{$v->{findings}}')" "host3/sdc,host7/sda"
check "JSON: a finding has all fields" is "$(field 'join ",", sort keys %{$v->{findings}[0]}')" \
	"effect,first_window,kind,last_window,member,metric,open,other_metrics,over_s,over_share,severity,share,share_of_all,since,since_s,until,until_s,windows"
check "JSON: windows, ranking, labels" is "$(field 'scalar(@{$v->{windows}}) . " " . scalar(@{$v->{ranking}}) . " $v->{labels}{tp}"')" "14 2 2"
check "JSON: what was asked for" is "$(field '"$v->{options}{false_alarms} $v->{options}{least} $v->{options}{window_s}"')" "0.0001 1.15 86400"

# Files of several days, and of several members.
awk -F, 'NR == 1 || $1 < 1794000000' ill.csv >first.csv
awk -F, 'NR == 1 || $1 >= 1794000000' ill.csv >second.csv
awk -F, '$2 != "host1"' ill.csv >others.csv
awk -F, 'NR == 1 || $2 == "host1"' ill.csv >host1.csv
body() { tail -n +4 "$1" | grep .; }
"$culprit" diagnose --csv first.csv --csv second.csv >out && body out >joined
check "files of several days are one recording" diff joined <(body text)
awk -F, 'NR == 1 || $1 >= 1794300000' ill.csv >last.csv
awk -F, 'NR == 1 || ($1 >= 1794000000 && $1 < 1794300000)' ill.csv >middle.csv
"$culprit" diagnose --csv first.csv --csv last.csv --csv middle.csv >disordered && body disordered >joined
check "... in any order, which is said" diff <(grep -v 'latency_ms: [0-9]* samples are older than the one before$' joined) <(body text)
check "... once" [ "$(grep -c 'are older than' joined)" = 1 ]
check "... named by the first, and how many" grep -q '^first.csv and 1 more file: CSV ' out
"$culprit" diagnose --csv others.csv --csv host1.csv >out && body out >joined
check "files of several hosts are one fleet" diff joined <(body text)
check "members that two files do not tell apart are refused" refused "first.csv:[0-9]*: a file before it has samples of the same series and time" \
	--csv first.csv --csv first.csv
sed 's/latency_ms/latency_us/' second.csv >unlike.csv
"$culprit" diagnose --csv first.csv --csv unlike.csv >out
check "a file that is understood unlike the first is told" grep -q "^  unlike.csv: CSV .*'latency_us'" out
check "other detectors take one file" refused "several --csv need the detector 'fleet'" --csv first.csv --csv second.csv --detector peer-robust
printf 'time,pool,host,ms\n1,3,a,2\n1,x,a,2\n' >key.csv
check "a text that may be a key: the option is named" refused "give --member 'pool'" --csv key.csv

check "a run and a file" refused "not two" run --csv ill.csv
check "a file and Prometheus" refused "not both" --csv ill.csv --prometheus http://127.0.0.1:9 --query x
check "nothing" refused "which run"
check "options of series with a run" refused "--rank needs --csv" run --rank
check "... that all detectors have" refused "--window needs --csv" run --window 1h
check "options of fleet with another detector" refused "--least is an option of the detector 'fleet'" --csv ill.csv --detector peer-robust --least 2
check "... and with training" refused "--report is an option" --csv ill.csv --train well.csv --report x.html
check "training for fleet" refused "no --train" --csv ill.csv --detector fleet --train well.csv
check "fleet and another" refused "given alone" --csv ill.csv --detector fleet --detector peer-robust
check "another and fleet" refused "given alone" --csv ill.csv --detector peer-robust --detector fleet
check "fleet on a run says how it judges a cell" refused "query --samples RUN --cell N" run --detector fleet
check "fleet is listed" bash -c '"$1" list detectors | grep -q "^  fleet .*peers"' - "$culprit"
check "... apart from the detectors of runs" bash -c '"$1" list --json | grep -q series_detectors' - "$culprit"
check "parameters in the detector's name" refused "options such as --least" --csv ill.csv --detector fleet,least=2
check "--cell of a file" refused "--cell needs a run" --csv ill.csv --cell 3
check "--evidence of fleet" refused "no --evidence" --csv ill.csv --evidence
check "--all-windows alone" refused "needs --window" --csv ill.csv --all-windows
check "--last of a file" refused "--last needs --prometheus" --csv ill.csv --last 1d
check "an end before the start" refused "--from must be before --to" --csv ill.csv --from 2026-11-03 --to 2026-11-02
check "a time that is none" refused "takes a time" --csv ill.csv --from yesterday
check "a rate that is none" refused "takes a rate" --csv ill.csv --false-alarms 1/0
check "a rank that is none" refused "takes a number of members" --csv ill.csv --rank=all
check "a report on standard output" refused "takes a file" --csv ill.csv --report -
check "very many windows" refused "give a longer one" --csv ill.csv --window 10s
check "a declaration with an unknown word" refused "worse" --csv ill.csv --metric 'latency_ms worze=more'
check "no such file" refused "none.csv" --csv none.csv
check "no such labels" refused "none.labels" --csv ill.csv --labels none.labels
check "a near match of an option" refused "did you mean '--labels'" --csv ill.csv --label x
head -n 2 ill.csv >one.csv
check "a fleet of one: 2" exits 2 "$culprit" diagnose --csv one.csv
check "... and why" bash -c "grep -q 'fewer than two peers' out && grep -q 'no member could be judged' err"
check "a report that cannot be written: 2" exits 2 "$culprit" diagnose --csv ill.csv --report none/x.html

mkdir home && printf 'time,disk,ms\n' >odd.csv
for t in $(seq 40); do for d in a b c d e $'\xd7\xa9\xf0\x9f\x92\xbe<b>'; do echo "$((1793491200 + t * 60)),$d,$((10 + (t * 7 + ${#d}) % 3))"; done; done >>odd.csv
check "names of any characters" exits 0 "$culprit" diagnose --csv odd.csv --rank
printf '1793491260,\xe2\x80\xaea,5\n' >>odd.csv
check "but none that turns the direction of text: 2" exits 2 "$culprit" diagnose --csv odd.csv --rank
check "... and which" grep -qF 'odd.csv:242: ' err
done_testing
