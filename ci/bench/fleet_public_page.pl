# fleet_public_page.pl DIR: the page results/fleet-public.md from the CSV files that fleet_public.sh left in DIR.
use strict;
use warnings;

my ($dir) = @ARGV or die "usage: fleet_public_page.pl DIR\n";

sub rows {
	my ($name) = @_;
	open my $f, "<", "$dir/$name" or die "cannot open '$dir/$name': $!; run fleet_public.sh first\n";
	chomp(my $head = <$f>);
	my @keys = split /,/, $head;
	return map { chomp; my %r; @r{@keys} = split /,/, $_, -1; \%r } <$f>;
}
sub percent { my ($k, $n) = @_; return $n && $k ne "" ? sprintf("%.0f %%", 100 * $k / $n) : "-" }
sub day { my @t = gmtime $_[0]; return sprintf "%d-%02d-%02d", $t[5] + 1900, $t[4] + 1, $t[3] }
sub clock { return sprintf "%02d:%02d:%02d", (gmtime $_[0])[2, 1, 0] }
sub line { return "| " . join(" | ", @_) . " |\n" }

my @sets = (
	[ "flights", "late_min", "minutes late a flight; airports in census divisions, 3 hours a sample, half of 2001" ],
	[ "air", "pm10", "PM10; stations in networks, a day a sample, 1998 to 2009" ],
	[ "cpus", "sys", "system time a second; processors of one machine, 3 s a sample, 6 minutes" ],
);

sub findings {
	my ($set) = @_;
	my @f = grep { $_->{file} eq "$set.csv" && $_->{kind} ne "first" } rows("public-findings.csv");
	return "No finding.\n" if !@f;
	my $when = $set eq "cpus" ? \&clock : \&day;
	my $text = "| who | finding | severity | times its peers | off, of all its samples | from | to | samples | median ratio | in the first, second half | MAD z | samples above its peers |\n"
		. "|---|---|--:|--:|--:|---|---|--:|--:|--:|--:|--:|\n";
	for my $f (@f) {
		$text .= line($f->{who}, $f->{kind} eq "class" ? "class of $f->{members}" : $f->{kind}, sprintf("%.1f", $f->{severity}),
			sprintf("%.2f", $f->{effect}), percent($f->{share_of_all}, 1), $when->($f->{since_s}), $when->($f->{until_s}),
			map({ /\d/ ? $_ : "-" } @$f{qw(samples median_ratio)}), join(", ", map { /\d/ ? $_ : "-" } @$f{qw(first_half second_half)}),
			map({ /\d/ ? $_ : "-" } $f->{mad_z}), percent($f->{above_peers}, 1));
	}
	return $text;
}

# The members that are highest by simple statistics, found or not.
sub highest {
	my ($set, $n) = @_;
	my @m = sort { $b->{median_ratio} <=> $a->{median_ratio} } grep { $_->{median_ratio} =~ /^[\d.]+$/ } rows("public-members-$set.csv");
	splice @m, $n if @m > $n;
	return "| who | median ratio | MAD z | samples above its peers | finding | severity |\n|---|--:|--:|--:|---|--:|\n" . join "",
		map { line(@$_{qw(who median_ratio mad_z)}, percent($_->{above_peers}, 1), $_->{found} || "-", $_->{severity}) } @m;
}

sub planted {
	my ($set) = @_;
	my ($clean, @r) = rows("public-planted-$set.csv");
	my $text = "| ratio | share of the time | placed as | found | named its group | ranked first | median ratio > 1.5 | MAD z > 5 | others accused, a draw |\n"
		. "|--:|--:|---|--:|--:|--:|--:|--:|--:|\n";
	for my $r (@r) {
		$text .= line($r->{ratio}, percent($r->{share}, 1), $r->{share} == 1 ? "all" : $r->{way} eq "bursts" ? "bursts" : "one stretch",
			(map { percent($r->{$_}, $r->{draws}) } qw(found group first median_ratio mad_z)), sprintf "%.3f", $r->{others} / $r->{draws});
	}
	return "Untouched, of $clean->{draws} members: the detector accuses $clean->{found}, the median ratio $clean->{median_ratio}, the MAD "
		. "z-score $clean->{mad_z}. Planted, $r[0]{draws} draws a row:\n\n$text"
		. (grep({ $_->{found} } @r) ? "" : "\nNot one planted fault is found.\n");
}

sub recorded {
	my @keys = qw(cells first tp fp robust_tp robust_fp);
	my ($text, $controls, $alarms) = ("", 0, 0);
	for my $file (sort glob "$dir/recorded-*.csv") {
		my ($run) = $file =~ m{recorded-([^/]+)\.csv$};
		my %all;
		$text .= "\n`$run`:\n\n| fault | cells | victim ranked first | victim accused | another accused | peer-robust: victim | peer-robust: another |\n"
			. "|---|--:|--:|--:|--:|--:|--:|\n";
		for my $r (rows("recorded-$run.csv")) {
			my $control = $r->{fault} eq "none";
			$text .= line($r->{fault}, map { $control && /first|tp/ ? "-" : $r->{$_} } @keys);
			$all{$_} += $control ? 0 : $r->{$_} for @keys;
			($controls, $alarms) = ($controls + $r->{cells}, $alarms + $r->{fp}) if $control;
		}
		$text .= line("**all faults**", @all{@keys});
	}
	return "$text\nIn $alarms of $controls fault-free cells a server is accused by the fleet detector. One in 10,000 servers is asked for, one in a thousand\n"
		. "cells. An earlier version accused one in 18 of 120 and was changed for it, so these runs are no longer unseen: alarms in fleets as small and\n"
		. "recordings as short as these are not shown to be as rare as asked for.\n";
}

# What the processors had counted since the machine's start when the recording began, as a ratio to their median: evidence
# of another time.
sub before {
	my @r = rows("public-cpus-before.csv");
	my @ms = sort { $a <=> $b } map { $_->{ms} } @r;
	my %found = map { $_->{who} =~ s{.*/}{}r => 1 } grep { $_->{file} eq "cpus.csv" && $_->{kind} =~ /shift|bursts/ } rows("public-findings.csv");
	my @told = map { sprintf "%s%s %.2f", $_->{who}, $found{$_->{who}} ? " (found)" : "", $_->{ms} / $ms[@ms / 2] } sort { $b->{ms} <=> $a->{ms} } @r;
	return join(", ", @told) . ".\n";
}

# What is known of a set besides the data.
my %known = (
	flights => "Hubs and airports with bad weather are later than others, lastingly: the fleet is not of one kind, and healthy members differ widely.\n"
		. "The detector learns its limit from that, so it accuses few of them, and finds large faults only.\n",
	cpus => "An independent check: what each processor had counted before the recording, since the machine's start, over the median of all:\n"
		. before()
		. "Counts come in ticks of 10 ms, so that a sample of 3 s is a small whole number, often 0: healthy\nprocessors differ by several times, and the limit is above that.\n",
);
# And of members; said of those that are in a table above it.
my %places = (
	"UB/DEUB034" => "on Helgoland, an island: sea salt is counted as PM10; it has one month of samples",
	"NI/DENI058" => "on Norderney, an island: sea salt is counted as PM10",
	"NW/DENW081" => "among farms near the Dutch border",
	"UB/DEUB004" => "on a mountain (Schauinsland): above the fogs of winter it has a third of its peers' PM10, in summer as much as they have,\n"
		. "  so that its ratio has a season",
);

sub places {
	my ($text) = @_;
	my $list = join "", map { "- $_ is $places{$_}.\n" } grep { $text =~ /^\| \Q$_\E /m } sort keys %places;
	return $list && "\nWhere some of them are, by the coordinates in the package:\n\n$list";
}

sub ranked_first {
	my ($set) = @_;
	my ($f) = grep { $_->{file} eq "$set.csv" && $_->{kind} eq "first" } rows("public-findings.csv");
	return $f ? "\nThe detector ranks $f->{who} first, with severity $f->{severity} (from 1 on it is a finding).\n" : "";
}

sub build {
	open my $f, "<", "$dir/public-build" or die "cannot open '$dir/public-build': $!; run fleet_public.sh trial first\n";
	chomp(my $build = <$f>);
	return $build;
}

print "# The fleet detector on data that others made\n\n";
print "Written by `ci/bench/fleet_public.sh page` from the CSV files in [fleet/](fleet/), of the detector of commit ", build(), ", at its default.\n";
print <<'E';
Sources, versions, licences and checksums are in the head of `ci/bench/fleet_public.sh`; `get DIR` fetches, `trial DIR` repeats the trial.
No limit was fitted to these data. A first trial with them showed weak points (members with few samples, fleets of few members), which were
then mended, so they are not quite unseen. None of these data says who is ill. So two questions are asked: is what the detector
finds there really off, and does it find faults that are planted? What is known of each family of fleets, and false alarms, are in
[fleet-families.md](fleet-families.md).

- **Findings** stand beside simple statistics that the detector does not use: the median over time of a member's ratio to the median
  of its peers (its group's other members, or all others where fewer than four have a value); the distance of that ratio, as a
  logarithm, from the fleet's in MADs; how many samples lie above the peers' median.
- **Planted faults**: one member's values are multiplied, all the time, in one stretch, or in bursts (fortieths of the time, drawn). It is
  drawn from the members that neither the detector nor the simple statistics accuse, the same ones in each row. *Found*: a finding (shift
  or bursts) names that member. *Others accused*: members that are not accused in the untouched data. The simple statistics look at the
  whole time and cannot find a fault that is on for less than half of it.
E
for my $set (@sets) {
	my ($name, $metric, $what) = @$set;
	my $tables = findings($name) . "\nThe highest by the median ratio:\n\n" . highest($name, 6);
	print "\n## $name\n\n`$metric`: $what.\n\n$tables", ranked_first($name), places($tables);
	print "\n$known{$name}" if $known{$name};
	print "\n", planted($name);
}
print <<'E', recorded();

## Recorded runs, with known victims

Cells of this project's own runs as fleets: 10 servers in one group, some 24 seconds each, a fault in the second part of a cell. Metrics:
service times, device times a request, round-trip times, retransmitted and misordered segments, packets of the interface a segment
(`ci/bench/fleet_recorded.pl`). `peer-robust` knows these metrics and their causes, and was tuned on an earlier run: its figures are the mark
to aim at. A recording of 24 samples is short for a detector of lasting shifts, and ten members show little of how healthy ones differ.
E
