# Recorded runs as fleets of servers: one CSV file a cell, and the score of what was found in them.
#
#     culprit query --samples RUN | fleet_recorded.pl convert DIR
#     fleet_recorded.pl score TAP FINDINGS          TAP: culprit table RUN --tap; FINDINGS: fleet_public_trial findings
use strict;
use warnings;

# Column: what is declared of it, and the metric of 'culprit query --samples' that it is the sum, count or mean of.
my @columns = (
	(map { [ "${_}_s", "unit=s worse=more kind=amount per=${_}s", $_, "sum" ], [ "${_}s", "worse=load", $_, "count" ] }
		qw(dread dwrite nsread ncread)),
	[ "read_time_s", "unit=s worse=more kind=amount per=reads", "disk_read_time_s", "sum" ],
	[ "reads", "worse=load", "disk_reads", "sum" ],
	[ "write_time_s", "unit=s worse=more kind=amount per=writes", "disk_write_time_s", "sum" ],
	[ "writes", "worse=load", "disk_writes", "sum" ],
	[ "busy_s", "unit=s worse=more kind=amount per=requests", "disk_busy_s", "sum" ],
	[ "requests", "worse=load", "disk_reads+disk_writes", "sum" ],
	(map { my $end = $_;
		[ "${end}rtt_s", "unit=s worse=more kind=gauge zero=missing", "${end}tcp_rtt_s", "mean" ],
		[ "${end}retransmitted", "worse=more kind=amount zero=value per=${end}sent", "${end}tcp_retransmitted_segments", "sum" ],
		[ "${end}sent", "worse=load", "${end}tcp_sent_segments", "sum" ],
		[ "${end}out_of_order", "worse=more kind=amount zero=value per=${end}received", "${end}tcp_out_of_order_segments", "sum" ],
		[ "${end}received", "worse=load", "${end}tcp_received_segments", "sum" ] } "", "client_"),
	[ "nic_received", "worse=more kind=amount per=received", "nic_received_packets", "sum" ],
	[ "nic_sent", "worse=more kind=amount per=sent", "nic_sent_packets", "sum" ],
);

sub convert {
	my ($dir) = @_;
	my (%of, %cell, $number);
	for my $k (0 .. $#columns) { push @{ $of{$_} }, $k for split /\+/, $columns[$k][2] }
	my $flush = sub {
		return if !%cell;
		open my $f, ">", sprintf("%s/cell-%04d.csv", $dir, $number) or die "cannot write to '$dir': $!\n";
		print $f map { "# metric $_->[0] $_->[1]\n" } @columns;
		print $f join(",", qw(time group member), map { $_->[0] } @columns), "\n";
		for my $key (sort { (split / /, $a)[0] <=> (split / /, $b)[0] || $a cmp $b } keys %cell) {
			my ($second, $server) = split / /, $key;
			print $f join(",", $second, "servers", $server, map { $_ // "" } @{ $cell{$key} }[0 .. $#columns]), "\n";
		}
		close $f or die "cannot write to '$dir': $!\n";
		%cell = ();
	};
	while (<STDIN>) {
		my ($n, undef, $metric, $server, $second, $count, $sum) = split /,/;
		next if !$of{$metric};
		if (!defined $number || $n != $number) { $flush->(); $number = $n }
		for my $k (@{ $of{$metric} }) {
			my $how = $columns[$k][3];
			my $v = $how eq "sum" ? $sum : $how eq "count" ? $count : $count ? $sum / $count : next;
			$cell{"$second $server"}[$k] += $v;
		}
	}
	$flush->();
}

sub score {
	my ($tap, $findings) = @_;
	my (%first, %said, %by, @order);
	open my $f, "<", $findings or die "cannot open '$findings': $!\n";
	while (<$f>) {
		my ($file, $kind, $who) = split /,/;
		my ($cell) = $file =~ /cell-0*(\d+)\.csv$/ or next;
		$who =~ s{.*/}{};
		$first{$cell} = $who if $kind eq "first";
		$said{$cell}{$who} = 1 if $kind eq "shift" || $kind eq "bursts";
	}
	open my $t, "<", $tap or die "cannot open '$tap': $!\n";
	while (<$t>) {
		my ($fault) = / - peer-robust: (\S+) under / or next;
		my ($cell, $victim, $robust) = (<$t> // "") =~ /^# cell (\d+), guilty (\S+): said ([^,\n]+(?:\+[^,\n]+)*)/ or next;
		push @order, $fault if !$by{$fault};
		my $b = $by{$fault} //= { map { $_ => 0 } qw(cells first tp fp robust_tp robust_fp) };
		my %robust = map { $_ => 1 } grep { $_ ne "nobody" } split /\+/, $robust;
		$b->{cells}++;
		$b->{first}++ if ($first{$cell} // "") eq $victim;
		$b->{tp}++ if $said{$cell}{$victim};
		$b->{fp}++ if grep { $_ ne $victim } keys %{ $said{$cell} // {} };
		$b->{robust_tp}++ if $robust{$victim};
		$b->{robust_fp}++ if grep { $_ ne $victim } keys %robust;
	}
	print "fault,cells,first,tp,fp,robust_tp,robust_fp\n";
	print join(",", $_, @{ $by{$_} }{qw(cells first tp fp robust_tp robust_fp)}), "\n" for sort @order;
}

my $what = shift // "";
if ($what eq "convert" && @ARGV == 1) { convert(@ARGV) }
elsif ($what eq "score" && @ARGV == 2) { score(@ARGV) }
else { die "usage: fleet_recorded.pl convert DIR | score TAP FINDINGS\n" }
