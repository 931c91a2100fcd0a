#!/bin/bash
# culprit diagnose --csv judges time series of other tools without conversion and reports an error in a file with its line.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

# Four servers, two metrics, steps of one second; s3 is six times slower from 150 to 190, and every tenth value is missing.
series() { perl -e 'srand($ARGV[0]); my ($from, $to, $step, $ill) = @ARGV[1..4]; print "time,server,metric,value\n";
	for (my $t = $from; $t < $to; $t += $step) { for my $s (1..4) { my $v = 10 * (1 + 0.2 * rand());
		$v *= 6 if $ill && $s == 3 && $t >= 150 && $t < 190;
		printf "%s,s%d,latency_ms,%s\n%s,s%d,queue,%.2f\n", $t, $s, rand() < .1 ? "" : sprintf("%.3f", $v), $t, $s, 3 + rand() } }' "$@"; }
series 1 0 240 1 1 >ill.csv
series 2 0 240 1 0 >well.csv

"$culprit" diagnose --csv ill.csv --train-until 100 >out
check "the slow server is named, by its metric" grep -q '^    by latency_ms: s3 (since 15[0-9] s)$' out
check "the other metric indicts no server" lacks "by queue: s" out
check "the same series without the fault is healthy" bash -c "'$culprit' diagnose --csv well.csv --train-until 100 | grep -q 'peer-threshold: healthy'"
"$culprit" diagnose --csv ill.csv --train well.csv --window 60s >out
check "both windows in which the fault acts indict the slow server" \
	[ "$(grep -B1 'peer-threshold: s3' out | grep '^[0-9]')" = $'120 .. 180 s\n180 .. 240 s' ]
check "the windows before are healthy" [ "$(grep -A1 -e '^0 .. 60 s' -e '^60 .. 120 s' out | grep -c healthy)" = 2 ]
check "four windows have one verdict each" [ "$(grep -c '^[0-9]* \.\. [0-9]* s$' out) $(grep -c 'peer-threshold: ' out)" = "4 4" ]

check "the slow server is also named without training" bash -c "'$culprit' diagnose --csv ill.csv --detector peer-robust | grep -q 'peer-robust: s3 (since 1[56][0-9] s)'"
check "... and the series without the fault is healthy" bash -c "'$culprit' diagnose --csv well.csv --detector peer-robust | grep -q 'peer-robust: healthy'"

# The same series in other forms.
judged() { "$culprit" diagnose --csv - --train-until 100 --json | perl -MJSON::PP -0777 -ne 'for (@{decode_json($_)}) {
	my $v = $_->{verdict}; print "$v->{metric} @{$v->{indicted}} ", join(",", map { "$_=$v->{time_s}{$_}" } sort keys %{$v->{time_s}}), "\n" }'; }
judged <ill.csv >want
check "the reference has a verdict" grep -q '^latency_ms s3 s3=15' want
check "with CRLF" diff want <(sed 's/$/\r/' ill.csv | judged)
check "with a byte order mark" diff want <({ printf '\xef\xbb\xbf'; cat ill.csv; } | judged)
check "missing values called NaN, null, NA or -" diff want <(awk -F, -v OFS=, 'BEGIN { split("NaN null NA -", w, " ") }
	$4 == "" { $4 = w[NR % 4 + 1] } { print }' ill.csv | judged)
check "semicolons" diff want <(tr , ';' <ill.csv | judged)
check "compressed by gzip" diff want <(gzip -c ill.csv | judged)
check "columns in another order, quoted" diff want <(awk -F, '{ printf "\"%s\",%s,\"%s\",%s\n", $3, $4, $2, $1 }' ill.csv | judged)
check "times in milliseconds" diff want <(awk -F, 'NR == 1 { print "time_ms,server,metric,value"; next } { printf "%d,%s,%s,%s\n", $1 * 1000, $2, $3, $4 }' ill.csv | judged)
check "series that follow one another" diff <(sort want) <({ head -n 1 ill.csv; tail -n +2 ill.csv | sort -t, -k2,2 -k3,3 -s; } | judged | sort)
check "without the last newline" diff want <(printf '%s' "$(cat ill.csv)" | judged)
series 1 0 14400 60 0 | awk -F, -v OFS=, 'NR > 1 && $2 == "s3" && $3 == "latency_ms" && $1 >= 9000 && $4 != "" { $4 *= 6 } { print }' >slow.csv
check "steps of a minute are detected" bash -c "'$culprit' diagnose --csv slow.csv --train-until 6000 | grep -q 'latency_ms: s3 (since 9[0-9]*0 s)'"
cat >mine.lua <<'L'
return { name = "mine", summary = "lists the data", diagnose = function(run)
	return { { metric = "any", evidence = { seconds = run.seconds, metrics = run.metrics, servers = run.servers } } } end }
L
check "a detector sees the file's names and steps" bash -c "'$culprit' diagnose --csv slow.csv --detector ./mine.lua --evidence |
	tr -d '\n ' | grep -q 'metrics:\[\"latency_ms\",\"queue\"\]seconds:240servers:\[\"s1\",\"s2\",\"s3\",\"s4\"\]'"

# refused SENTENCE ROW...: the error names the last row.
refused() {
	local what=$1
	shift
	{ echo "time,server,metric,value"; printf '%s\n' "$@"; } >bad.csv
	"$culprit" diagnose --csv bad.csv --detector peer-robust >out 2>err
	local code=$?
	[ $code -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q "^culprit diagnose: bad.csv:$(($# + 1)): .*$what" err || { echo "code $code"; cat err; return 1; }
}
check "a value that is not a number" refused "value '12x' is not a decimal number" 1,a,m,1 2,a,m,12x
check "an infinite value counts as missing" refused "" 1,a,m,inf 2,a,m,12x
check "a hexadecimal value" refused "value '0x10'" 1,a,m,0x10
check "a value that is too large" refused "value '1e999'" 1,a,m,1e999
check "a time that is not a number" refused "time '12:30' is neither" 1,a,m,1 12:30,a,m,1
check "a missing time" refused "time '' is neither" ,a,m,1
check "too few fields" refused "fewer fields" 1,a,m,1 2,a,m
check "too many fields" refused "more fields" 1,a,m,1 2,a,m,1,1
check "a repeated row" refused "has had this time" 1,a,m,1 1,a,m,1
check "rows out of order" refused "goes back in time" 2,a,m,1 1,a,m,1
check "no server" refused "name of the member is empty" 1,,m,1
check "a name that is not UTF-8" refused "cannot name a member" "1,$(printf 'a\377b'),m,1"
check "the message is valid UTF-8" bash -c "iconv -f utf-8 -t utf-8 err >/dev/null"
check "a metric called any" refused "called 'any'" 1,a,any,1
check "an open quote" refused "quote is not closed" '1,"a,m,1'
check "a quote in the middle" refused "a misplaced quote" '1,a"b",m,1'
head_refused() { printf '%s\n1,a,m,1\n' "$2" >bad.csv; "$culprit" diagnose --csv bad.csv --detector peer-robust 2>err; [ $? -eq 2 ] && grep -q "bad.csv:1: .*$1" err || { cat err; return 1; }; }
check "metrics without values" head_refused "none of values" time,server,metric,vlaue
check "a missing column" head_refused "no column of times.* the columns are 'server', 'metric', 'value'" server,metric,value
check "a repeated column" head_refused "column 'server' occurs twice" time,server,server,metric,value
check "an empty file" bash -c ": >bad.csv; '$culprit' diagnose --csv bad.csv --detector peer-robust 2>&1 | grep -q 'bad.csv:1: it is empty'"
check "a file without a value" bash -c "echo time,server,metric,value >bad.csv; '$culprit' diagnose --csv bad.csv --detector peer-robust 2>&1 | grep -q 'not one value'"
check "an error in the training file names that file" bash -c "echo 1,a >>bad.csv; '$culprit' diagnose --csv ill.csv --train bad.csv 2>&1 | grep -q 'bad.csv:2: fewer'"
check "no training for a detector that needs it" bash -c "'$culprit' diagnose --csv ill.csv --detector peer-threshold 2>&1 | grep -q -- '--train'"
printf 'time,server,metric,value\n0,a,m,1\n1e12,a,m,1\n' >bad.csv
check "times too far apart for the given interval" bash -c "'$culprit' diagnose --csv bad.csv --interval 1s --detector always-same 2>&1 | grep -q 'too much for one run'"
check "a run and a file at once" bash -c "'$culprit' diagnose run --csv ill.csv 2>/dev/null; [ \$? -eq 2 ]"
done_testing
