#!/bin/bash
# What each part of peer-robust contributes: scores without it, on a recorded run or corpus.
#
#     ci/bench/ablation.sh [RUN]       default: results/corpora/matrix, which it was tuned on
#
# One line per variant: cells with the right server and no other; of those, cells with the right cause; cells with a wrong
# server; controls with an alarm; the lowest score of any victim by its true cause; the highest score of any healthy server by
# any cause. Scores are divided by their limit (as logarithms if the score is a ratio), so 1 is the threshold.
set -euo pipefail
cd "$(dirname "$0")/../.."
culprit=${OUT:-out}/culprit run=${1:-results/corpora/matrix} source=diag/detectors/peer-robust.lua
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if [ -e "$run/run.db" ]; then cp "$run/run.db" "$tmp/db"; else zcat "$run/run.db.gz" >"$tmp/db"; fi
sqlite3 -separator '|' "$tmp/db" "SELECT number, fault, coalesce(victims, '[]') FROM cell" >"$tmp/truth"

cat >"$tmp/count.pl" <<'P'
use strict; use JSON::PP;
my ($name, $truth) = @ARGV;
my %cause = ("disk-hog" => "disk", "disk-busy" => "disk", "write-network-hog" => "network/hog, received", "read-network-hog" =>
	"network/hog, sent", "receive-pktloss" => "network/receive-loss", "send-pktloss" => "network/send-loss", "cpu-hog" => "cpu",
	"memory-hog" => "memory");
my (%fault, %victim);
open my $f, "<", $truth or die; while (<$f>) { chomp; my ($n, $fault, $v) = split /\|/; $fault =~ s/\(.*//; $fault{$n} = $fault; $victim{$n} = { map { $_ => 1 } @{ decode_json($v) } }; }
my ($faulty, $right, $cause, $wrong, $controls, $alarms, $low, $high) = (0) x 6;
for my $row (@{ decode_json(do { local $/; <STDIN> }) }) {
	my ($cell, $v) = ($row->{cell}, $row->{verdict});
	next if $v->{metric} ne "any";
	my %said = map { $_ => 1 } @{ $v->{indicted} };
	my $true = $victim{$cell}; my $hits = grep { $true->{$_} } keys %said; my $others = keys(%said) - $hits;
	if (%$true) {
		$faulty++; $wrong++ if $others;
		if ($hits == keys %$true && !$others) { $right++; (my $c = $cause{$fault{$cell}} // "") =~ s/,.*//; $cause++ if ($v->{resource} // "") eq $c; }
	} else { $controls++; $alarms++ if $others; }
	my $causes = $v->{evidence}{causes} // {};
	for my $c (keys %$causes) {
		my ($limit, $highest) = @{ $causes->{$c} }{qw(limit highest)};
		for my $server (keys %$highest) {
			my $x = exists $causes->{$c}{noise} ? log($highest->{$server}) / (log($limit) || 1e-9) : $highest->{$server} / $limit;
			if ($true->{$server}) { $low = $x if $c eq ($cause{$fault{$cell}} // "") && (!defined $low || $x < $low); }
			elsif (!defined $high || $x > $high) { $high = $x; }
		}
	}
}
printf "| %s | %d of %d | %d of %d | %d | %d of %d | %s | %s |\n", $name, $right, $faulty, $cause, $right, $wrong, $alarms, $controls,
	map { defined $_ ? sprintf("%.2f", $_) : "-" } $low, $high;
P

# A perl expression makes the variant from the detector's source; one that changes nothing is an error in this script.
variant() {
	perl -0pe "$2" $source >"$tmp/variant.lua"
	if [ "$2" ] && cmp -s $source "$tmp/variant.lua"; then
		echo "ablation: '$1' changes nothing" >&2
		exit 1
	fi
	"$culprit" diagnose "$run" --detector "$tmp/variant.lua" --json | perl "$tmp/count.pl" "$1" "$tmp/truth"
}

echo "| without, or instead | right server | right cause | wrong server | false alarms | lowest victim | highest healthy |"
echo "|---|--:|--:|--:|--:|--:|--:|"
variant "as it is" ''
variant "disk: per request only" 's/per = \{ requests, bytes \}/per = { requests }/g'
variant "disk: per byte only" 's/per = \{ requests, bytes \}/per = { bytes }/g'
variant "disk: busy time only" 's/\t\t\t\{ says = "time in the disk.s queue".*?floor = 0.02 \},\n//s'
variant "disk: time in the queue only" 's/\t\t\t\{ says = "time that the disk is busy".*?floor = 0.02 \},\n//s'
variant "disk: service times of calls only" 's/"disk_busy_s" \}, amount/"no readings" }, amount/; s/"disk_queue_s" \}/"no readings" }/'
variant "rates: the whole span only" 's/vec\.least \{ whole\[i\], typical\[i\] \}/whole[i]/'
variant "rates: its typical second only" 's/vec\.least \{ whole\[i\], typical\[i\] \}/typical[i]/'
variant "rates: its typical 3 seconds, not one" 's/compare\(k, 1, span\)/compare(k, 3, span - 2)/'
variant "rates: its typical second of nine, not eight" 's/compare\(k, 1, span\)/compare(k, 1, span + 1)/'
variant "rates: no floor" 's/\(view\.of and vec\.of\(sizes\):median\(\) or 1\)/0/'
variant "rates: noise of the run only, no least ratio" 's/math\.max\(math\.log\(least\), z \* noise\)/math.max(1e-3, z * noise)/'
variant "rates: least ratio only, no noise" 's/math\.max\(math\.log\(least\), z \* noise\)/math.log(least)/'
variant "hog: the server's own sockets only" 's/vec\.least \{ payload - of\(own\), payload - of\(theirs\) \}/(payload - of(own))/'
variant "loss: how many segments, not in how many seconds" 's/lost = metric\(again\), load = metric\(sent\),\n[^\n]*\n/amount = metric(again), floor = 1, per = { metric(from .. "tcp_sent_segments") } } },\n/;
	s/return \{ cause = cause, views/return { cause = cause, least = 3, views/; s/(balance = \{ default = )true/$1false/'
variant "loss: the receiver's end only" 's/views, instead = lossy\(from, to\)/_, views = lossy(from, to)/; s/, instead = instead,/,/'
variant "loss: both ends must say so" 's/(local views), instead = lossy\(from, to\)\n/$1, other = lossy(from, to)\n\tviews[2] = other[1]\n/; s/, instead = instead,/,/'
variant "loss: needless ones counted" 's/if view\.needless then/if false then/'
variant "loss: a full link's seconds like others" 's/ - most \+ 1\)/ - 1e18)/'
variant "loss: the median of the peers, not their share" 's/\tlocal peers = 0\n/\tlocal typical, typically, peers = {}, {}, 0\n\tfor load = 1, 2 do\n\t\tlocal lately, always = {}, {}\n\t\tfor i in ipairs(run.servers) do\n\t\t\tlately[i], always[i] = ks[load].each[i] \/ ns[load].each[i], vec.new(run.seconds, ks[load].own[i] \/ math.max(ns[load].own[i], 1))\n\t\tend\n\t\ttypical[load], typically[load] = vec.others(lately), vec.others(always)\n\tend\n/; s/local always = .*?, 1\)\n/local always = typically[load][i]\n/; s/local lately = .*?:fill\(0\)\n/local lately = typical[load][i]:fill(0)\n/'
variant "loss: peers' share as if it were known" 's/ \+ vec\.likelihood\(k_of_others, others, theirs\)\n[^\n]*\n/\n\t\t\t\t- vec.likelihood(k, n, (k_of_others + 0.5) \/ (others + 1))\n/'
variant "loss: nothing by what never came" 's/(balance = \{ default = )true/$1false/'
variant "loss: by what never came only" 's/\tlocal by_view, tell/\tif cause.also then views = known(run, { cause.also }) end\n$&/; s/(balance = \{ default = )true/$1false/'
variant "never came: whatever was missing before" 's/ \+ risen\n/\n/'
variant "never came: however much it goes up and down" 's/clamp\(falls > 1 and falls or 1\)/clamp(1)/'
variant "never came: NICs that merge, too" 's/if merged:sum\(\) > 0 then/if false then/'
variant "never came: only where segments carry next to nothing" 's/(local n = then_sent:clamp\(0, 1\) \* whole)\n/$1 * (then_sent * 500 - load:lag(2, 0) + 1):clamp(0, 1)\n/'
variant "loss: over the span, not twice" 's/2 \* span, span\)/span)/g'
variant "order: disk before loss before hog" 's/(\t\{ cause = "network\/hog".*?\n)(\t\{ cause = "network\/hog".*?\n)(\tloss\("network\/receive.*?\n\tloss\("network\/send.*?\n)(\t\{\n\t\tcause = "disk".*?\n\t\},\n)/$4$3$1$2/s'
variant "hold: one second, not two" 's/(hold = \{ default = )2/${1}1/'
variant "hold: three seconds" 's/(hold = \{ default = )2/${1}3/'
variant "hold: of rates only" 's/scores\[i\] = held/scores[i] = not least and held(scores[i], 1) or held/'
variant "hold: of loss only" 's/scores\[i\] = held/scores[i] = least and held(scores[i], 1) or held/'
variant "alarm: one run in a hundred" 's/(alarm = \{ default = )"0\.1%"/$1"1%"/'
variant "no peers: against one of the servers" 's/vec\.others\(rates, 2\)/(function() local t = {} for i in ipairs(rates) do t[i] = rates[1] end return t end)()/g'
