#!/usr/bin/perl
# slow_score.pl RUN: what 'culprit slow' says of each cell, as JSON for flow_table.pl: without servers, layers and single
# requests. A cell without a fault is judged as if it had had one where the run's faulty cells have theirs on average.
use strict;
use warnings;
use JSON::PP;

die "usage: slow_score.pl RUN\n" unless @ARGV == 1;
my $run = shift @ARGV;
my $culprit = ($ENV{OUT} // 'out') . '/culprit';

sub output {
	my ($what, @argv) = @_;
	open my $f, '-|', @argv or die "slow_score.pl: cannot run $argv[0]: $!\n";
	local $/;
	my $text = <$f>;
	close $f or die "slow_score.pl: $what failed\n";
	return $text;
}

my $sql = "SELECT avg((onset_ns - start_ns) / 1e9), avg((offset_ns - start_ns) / 1e9) FROM attempt JOIN cell ON cell = cell.number "
	. "WHERE outcome = 'confirmed' AND NOT training AND onset_ns AND offset_ns AND victims != '[]'";
my ($onset, $offset) = split /\|/, output('sqlite3', 'sqlite3', "$run/run.db", $sql);
die "slow_score.pl: '$run' has no confirmed cell with a fault\n" unless $onset;
my ($from, $to) = map { sprintf '%.3f', $_ } $onset, $offset;

my $said = decode_json(output('culprit slow', $culprit, 'slow', $run, '--top', 0, '--json'));
for my $cell (@{ $said->{cells} }) {
	if (!@{ $cell->{victims} // [] }) {
		my $as_if = decode_json(output('culprit slow', $culprit, 'slow', $run, '--top', 0, '--json', '--cell', $cell->{cell}, '--onset',
			"${from}s", '--offset', "${to}s"));
		$cell = $as_if->{cells}[0];
		$cell->{as_if} = { onset_s => $from + 0, offset_s => $to + 0 };
	}
	delete @$cell{qw(servers layers slowest clocks)};
}
print JSON::PP->new->canonical->pretty->encode($said);
