#!/usr/bin/perl
# flow_table.pl coverage|sentences|named FILE.json ...: tables in Markdown from what 'culprit slow RUN --json' or slow_score.pl
# printed.
use strict;
use warnings;
use JSON::PP;

my $what = shift @ARGV // '';
die "usage: flow_table.pl coverage|sentences|named FILE.json ...\n" unless $what =~ /^(coverage|sentences|named)$/ && @ARGV;
my @runs = map { local (@ARGV, $/) = $_; decode_json(<>) } @ARGV;

sub number { my $n = reverse shift; $n =~ s/(\d{3})(?=\d)/$1,/g; return scalar reverse $n }

# The cells' sum, and the least and largest share of a cell.
sub share {
	my ($cells, $part, $whole) = @_;
	my ($p, $w, @shares) = (0, 0);
	for (map { $_->{coverage} } @$cells) {
		my ($mine, $all) = (0, $_->{$whole});
		$mine += $_ for @$_{@$part};
		$p += $mine;
		$w += $all;
		push @shares, 100 * $mine / $all if $all;
	}
	@shares = sort { $a <=> $b } @shares;
	my $text = number($p) . ' of ' . number($w);
	return $p == $w ? $text : sprintf '%s; %.2f to %.2f %% a cell', $text, @shares[0, -1];
}

if ($what eq 'sentences') {
	print "| run, cell | workload | fault | `culprit slow` |\n|---|---|---|---|\n";
	for my $run (@runs) {
		for (grep { $_->{victims} && @{ $_->{victims} } } @{ $run->{cells} }) {
			my ($workload) = $_->{workload} =~ /^(\w+)/;
			my ($fault) = $_->{fault} =~ /^([\w-]+)/;
			print "| $run->{run}, $_->{cell} | $workload | $fault on @{ $_->{victims} } | $_->{sentence} |\n";
		}
	}
	exit;
}
if ($what eq 'named') {
	my ($faulty, $right, $wrong, $controls, $alarms) = (0) x 5;
	print "| run, cell | workload | fault | named | `culprit slow` |\n|---|---|---|---|---|\n";
	for my $run (@runs) {
		for (@{ $run->{cells} }) {
			my ($workload) = $_->{workload} =~ /^(\w+)/;
			my ($fault) = $_->{fault} =~ /^([\w-]+)/;
			my @victims = @{ $_->{victims} // [] };
			my %true = map { $_ => 1 } @victims;
			my @found = @{ $_->{found} };
			my $others = grep { !$true{$_} } @found;
			if (@victims) {
				$faulty++;
				$right++ if !$others && @found == @victims;
				$wrong++ if $others;
			} else {
				next unless $_->{as_if};
				$controls++;
				$alarms++ if @found;
			}
			printf "| %s, %d | %s | %s | %s | %s |\n", $run->{run}, $_->{cell}, $workload,
				@victims ? "$fault on @victims" : sprintf('none, from %.1f to %.1f s', @{ $_->{as_if} }{qw(onset_s offset_s)}),
				"@found" || '-', $_->{sentence};
		}
	}
	print "\nVictims named, and nobody else: $right of $faulty. Healthy servers named: in $wrong of $faulty cells with a fault, "
		. "in $alarms of $controls without.\n";
	exit;
}
my @rows = (
	['receives bound to their sends', '100 %', ['receives_bound'], 'receives'],
	['requests with all four legs', '99.9 %', ['requests_whole'], 'requests'],
	["servers' data calls and syncs bound to requests", '99.5 %', [qw(disk_calls_by_thread disk_calls_by_content)], 'disk_calls'],
	["clients' data requests bound to applications' calls", '99 %', ['data_requests_in_calls'], 'data_requests'],
	["their other requests, but for the client's own", '95 %', ['other_requests_in_calls'], 'other_requests'],
);
print '| | goal |', (map { " $_->{run}: " . @{ $_->{cells} } . ' cells |' } @runs), "\n|---|---|", '---|' x @runs, "\n";
for my $row (@rows) {
	print "| $row->[0] | $row->[1] |", (map { ' ' . share($_->{cells}, @$row[2, 3]) . ' |' } @runs), "\n";
}
