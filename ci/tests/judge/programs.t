#!/bin/bash
# Programs as detectors: the README's example works unchanged, questions and answers arrive complete, and each way of
# failing gives one clear message and stops neither the run nor other detectors.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
corpus=$PWD/results/corpora/ci
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
sed -n '/^```perl$/,/^```$/p' diag/detectors/PROGRAMS.md | sed '1d;$d' >"$tmp/slowest.pl"
cd "$tmp" || exit 1
mkdir -m 1777 tmp && export TMPDIR=$tmp/tmp
if [ "$(id -u)" -ne 0 ] && ! unshare -Ur true 2>/dev/null; then skip_all "needs namespaces to confine programs"; fi
program() { cat >"$1" && chmod +x "$1"; }
json() { perl -MJSON::PP -0777 -ne "my \$v = decode_json(\$_); $1"; }

# The README's example.
chmod +x slowest.pl
"$culprit" rescore "$corpus" --detector ./slowest.pl --json >out 2>err
check "the README's program runs unchanged" bash -c "[ ! -s err ] && [ -s out ]"
check "it finds the slow reader" [ "$(json 'for (@{$v->{scores}}) { print $_->{tp}{count} if "@$_{qw(detector fault workload metric)}" eq "slowest disk-hog ddr any" }' <out)" -ge 2 ]
check "its resource is scored" [ "$(json 'for (@{$v->{scores}}) { print $_->{resource}{count} if "@$_{qw(detector fault workload metric)}" eq "slowest disk-hog ddr any" }' <out)" -ge 2 ]
check "the null detectors are also scored" [ "$(json 'print join " ", map { $_->{detector} } grep { $_->{null} } @{$v->{summary}{detectors}}' <out)" = \
	"always-healthy always-same seeded-random" ]

# Questions to programs.
program echo.sh <<'P'
#!/bin/sh
n=0
while IFS= read -r line; do
	case $line in
	'{"type":"train","run":{'*) n=$((n + 1)) ;;
	'{"type":"judge","params":{'*) judge=$line ;;
	*) echo "what is this?" >&2; exit 9 ;;
	esac
done
printf '[{"metric":"any","indicted":["server-0002","server-0001","server-0002"],"time_s":{"server-0002":3.5},"resource":"disk","evidence":{"trained":%d,"asked":%s}},{"metric":"dread","abstain":true,"reason":"why"}]\n' $n "$judge"
P
"$culprit" diagnose "$corpus" --cell 5 --detector './echo.sh,ratio=2.5,mode=fast,careful=true' --json >out 2>err
cat err | sed 's/^/# /'
any() { json "for (@\$v) { my \$x = \$_->{verdict}; if (\$x->{metric} eq 'any') { print do { $1 } } }" <out; }
check "all training runs come first" [ "$(any '$x->{evidence}{trained}')" = 4 ]
check "its parameters are passed" [ "$(any 'my $p = $x->{evidence}{asked}{params}; "$p->{ratio} $p->{mode} " . ($p->{careful} ? "yes" : "no")')" = "2.5 fast yes" ]
check "a series has a number or null for each second" \
	[ "$(any 'my $r = $x->{evidence}{asked}{run}; join " ", $r->{seconds}, map { scalar @$_ } map { @$_{qw(mean count max bytes)} } (values %{$r->{series}{dread}})[0]')" = "25 25 25 25 25" ]
check "means times counts are the sums of the store" bash -c "
	[ \$('$culprit' query --samples $corpus --cell 5 --metric dread | awk -F, 'NR > 1 && \$5 >= 0 && \$5 <= 24' | wc -l) = \
	$(any 'my $n = 0; for my $s (values %{$x->{evidence}{asked}{run}{series}{dread}}) { $n += grep { defined } @{$s->{mean}} } $n') ]"
check "the verdict has real names, sorted, without duplicates" [ "$(any 'my @i = @{$x->{indicted}}; scalar(@i) . ($i[0] =~ /^s\d$/ ? " named" : " masked")')" = "2 named" ]
check "each time keeps its server" [ "$(any 'join ",", values %{$x->{time_s}}')" = 3.5 ]

# A program that makes a model sees the training runs once.
program learns.pl <<'P'
#!/usr/bin/perl
use JSON::PP;
my @said = map { decode_json($_) } <STDIN>;
my $last = pop @said;
if ($last->{type} eq 'model') {
	print encode_json({ model => { runs => scalar(@said), ratio => $last->{params}{ratio}, first => $said[0]{run}{id} } });
} else {
	print encode_json({ metric => 'any', indicted => [], evidence => { trained => scalar(@said), model => $last->{model}, id => $last->{run}{id} } });
}
P
"$culprit" diagnose "$corpus" --detector './learns.pl,ratio=2.5' --json >out 2>err
cat err | sed 's/^/# /'
check "a program's own model comes with each run, in place of the training runs" \
	[ "$(json 'print join ",", map { my $x = $_->{verdict}{evidence}; "$x->{trained} $x->{model}{runs} $x->{model}{ratio}" } @$v' <out | tr , '\n' | sort | uniq -c | xargs)" = "28 0 4 2.5" ]
check "... and no run gets another run's model" [ "$(json 'print scalar grep { my $x = $_->{verdict}{evidence}; $x->{model}{first} eq $x->{id} } @$v' <out)" = 0 ]

# Failures. Each gives one line and exit code 2, and the other detector's verdict.
# The limit is 2 s where the test exceeds it; otherwise long enough for a loaded machine.
fails() { # NAME PATTERN [LIMIT_S]: ./NAME.sh
	"$culprit" diagnose "$corpus" --cell 5 --detector "./$1.sh,time_limit_s=${3:-300}" --detector always-healthy >out 2>err
	local code=$?
	[ $code -eq 2 ] && grep -q '^  always-healthy: healthy$' out && [ "$(wc -l <err)" -eq 1 ] && grep -q "$2" err || { echo "code $code"; cat out err; return 1; }
}
printf '#!/bin/sh\nwhile :; do sleep 1; done\n' | program hangs.sh
check "a program that hangs" fails hangs 'did not end within 2 s' 2
printf '#!/bin/sh\necho "{\\"metric\\": \\"any\\", \\"indicted\\": []}"; exec >&- 2>&-; while :; do sleep 1; done\n' | program lingers.sh
check "a program that has answered and does not end" fails lingers 'did not end within 2 s' 2
printf '#!/bin/sh\nkill -SEGV $$\n' | program crashes.sh
check "a program that crashes" fails crashes 'ended by signal 11 (Segmentation fault)'
printf '#!/bin/sh\necho one >&2; echo "cannot find my weights" >&2; exit 3\n' | program ends.sh
check "a program that exits with an error: its last line is shown" fails ends 'exit code 3: cannot find my weights'
printf '#!/usr/bin/perl\ndie "no such thing"\n' | program dies.sh
check "a program with exit code 255" fails dies 'exit code 255: no such thing'
printf '#!/bin/sh\n:\n' | program silent.sh
check "a program that prints nothing" fails silent 'printed nothing'
printf '#!/bin/sh\necho "I think it is server-0001"\n' | program talks.sh
check "a program that prints no JSON" fails talks 'is not one line of JSON'
printf '#!/bin/sh\nyes\n' | program floods.sh
check "a program that floods standard output" fails floods 'printed more than 1024 KiB'
printf '#!/bin/sh\nyes >&2\n' | program moans.sh
check "a program that floods standard error" fails moans 'did not end within 2 s' 2
printf '#!/bin/sh\necho "{\\"metric\\": \\"any\\", \\"indicted\\": [\\"server-0099\\"]}"\n' | program invents.sh
check "a program that indicts an unknown server" fails invents "indicts 'server-0099', which is not a server"
printf '#!/bin/sh\necho "{\\"metric\\": \\"any\\", \\"guilty\\": []}"\n' | program misspells.sh
check "a program with an unknown key in its verdict" fails misspells "unknown key 'guilty'"
printf '#!/bin/sh\necho "[" ; i=0; while [ $i -lt 5000 ]; do printf "["; i=$((i+1)); done\n' | program nests.sh
check "a program that nests arrays too deep" fails nests 'is not one line of JSON'
printf '#!/no/such/interpreter\n' | program lost.sh
check "a program without its interpreter" fails lost 'cannot start the detector'
printf '#!/bin/sh\n(while :; do sleep 1; done) & (while :; do sleep 1; done) >/dev/null 2>&1 &\necho "{\\"metric\\": \\"any\\", \\"indicted\\": []}"\n' | program forks$$.sh
check "a program that leaves children behind: its answer counts" bash -c "'$culprit' diagnose '$corpus' --cell 5 --detector ./forks$$.sh | grep -q 'forks$$: healthy'"
check "their processes and folders are gone" until_true 60 bash -c '! pgrep -f "$1" && ! ls -d "$TMPDIR"/culprit-detector.* 2>/dev/null' - "[f]orks$$\.sh"

"$culprit" rescore "$corpus" --detector ./hangs.sh,time_limit_s=1 --detector always-same --json >out 2>err
check "after repeated hangs a detector is not asked again, and the table is printed" \
	[ "$(json 'for (@{$v->{summary}{detectors}}) { print "$_->{faulty}{failed} of $_->{faulty}{n}, $_->{controls}{failed} of $_->{controls}{n}" if $_->{detector} eq "hangs" }' <out)" = "20 of 20, 8 of 8" ]
check "... with one line of error message" [ "$(wc -l <err)" = 1 ]
# Asked in parallel: identical questions, and verdicts in the same order.
printf '#!/bin/sh\nexec /usr/bin/perl -MDigest::MD5 -0777 -ne '"'"'print "{\\"metric\\":\\"any\\",\\"evidence\\":{\\"asked\\":\\"", Digest::MD5::md5_hex($_), "\\"}}\\n"'"'\n" | program digest.sh
"$culprit" diagnose "$corpus" --detector ./digest.sh,time_limit_s=300 --json >out 2>err
taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" "$culprit" diagnose "$corpus" --detector ./digest.sh,time_limit_s=300 --json >alone 2>>err
check "asked in parallel, programs get the same questions and their verdicts keep the order" bash -c "cat err; cmp out alone && [ ! -s err ] && [ \$(grep -o '\"asked\": *\"[0-9a-f]*\"' out | sort -u | wc -l) = 28 ]"
if [ "$(nproc)" -ge 2 ]; then
	printf '#!/bin/sh\nsleep 0.5\necho "{\\"metric\\": \\"any\\", \\"indicted\\": []}"\n' | program sleeps.sh
	"$culprit" diagnose "$corpus" --detector ./sleeps.sh >/dev/null 2>&1 &
	pid=$! most=0
	while [ $most -lt 2 ] && kill -0 $pid 2>/dev/null; do
		now=$(cat /proc/$pid/task/*/children 2>/dev/null | wc -w)
		[ "$now" -le $most ] || most=$now
	done
	kill $pid
	wait $pid 2>/dev/null
	check "with two processors, two run at a time" [ $most -ge 2 ]
else
	ok "with two processors, two run at a time # SKIP needs two processors"
fi
chmod -x talks.sh
check "a file that is neither Lua nor executable is refused at once" bash -c "'$culprit' rescore '$corpus' --detector ./talks.sh 2>&1 | grep -q 'neither a Lua file'"
check "... and so is a missing file" bash -c "'$culprit' rescore '$corpus' --detector ./nowhere.py 2>&1 | grep -q \"cannot read the detector './nowhere.py'\""
# A question larger than a pipe, left unread.
printf '#!/bin/sh\necho "{\\"metric\\": \\"any\\", \\"indicted\\": []}"\n' | program rude.sh
check "a program that answers before it has read its input: the answer counts" bash -c "'$culprit' diagnose '$corpus' --cell 5 --detector ./rude.sh | grep -q 'rude: healthy'"
done_testing
