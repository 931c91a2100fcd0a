#!/bin/bash
# Time and memory of one diagnosis, by servers and seconds, for both peer comparisons; and how the time grows.
#
#     ci/bench/scale.sh [RUN [PLOT.svg]]       default: results/corpora/matrix, no plot
#
# Each time is the least processor time of three runs. The last lines compare growth with the goal: at most linear.
set -eu
cd "$(dirname "$0")/../.."
run=${1:-results/corpora/matrix} plot=${2:-} scale=${OUT:-out}/bench/scale
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

echo "| detector | servers | seconds | diagnosis, s | us a server and second | memory, MiB | of it measurements | indicted |"
echo "|---|--:|--:|--:|--:|--:|--:|---|"
for detector in peer-robust peer-threshold; do
	for size in "10 600" "30 600" "100 600" "300 600" "1000 600" "1000 60" "1000 120" "1000 300"; do
		for _ in 1 2 3; do
			# shellcheck disable=SC2086
			"$scale" "$run" "$detector" $size
		done | sort -n -k3 | head -1 >"$tmp/best"
		read -r servers seconds took rss before indicted <"$tmp/best"
		echo "$detector $servers $seconds $took" >>"$tmp/points"
		echo "| $detector | $servers | $seconds | $took | $(awk "BEGIN { printf \"%.2f\", 1e6 * $took / $servers / $seconds }") | $rss | $before | $indicted |"
	done
done
echo
perl -ane '
	push @{ $of{$F[0]} }, [ @F[1 .. 3] ];
	END {
		for my $d (sort keys %of) {
			for my $axis (0, 1) {
				my @on = sort { $a->[$axis] <=> $b->[$axis] } grep { $_->[1 - $axis] == ($axis ? 1000 : 600) } @{ $of{$d} };
				@on = grep { $_->[$axis] >= ($axis ? 60 : 100) } @on;
				my ($from, $to) = @on[0, -1];
				printf "%s: from %d to %d %s: %.1f times the %2\$s, %.1f times the time (exponent %.2f)\n" =~ s/%2\$s/size/r, $d, $from->[$axis],
					$to->[$axis], $axis ? "seconds" : "servers", $to->[$axis] / $from->[$axis], $to->[2] / $from->[2],
					log($to->[2] / $from->[2]) / log($to->[$axis] / $from->[$axis]);
			}
		}
	}' "$tmp/points"

[ -z "$plot" ] || perl -ane '
	push @{ $of{$F[0]} }, [ $F[1] * $F[2], $F[3], $F[2] == 600 ];
	END {
		my ($w, $h, $l, $t) = (640, 400, 70, 20);
		my $x = sub { $l + ($w - $l - 45) * (log($_[0] / 5000) / log(1e6 / 5000)) };
		my $y = sub { $t + ($h - $t - 50) * (1 - log($_[0] / 0.001) / log(5 / 0.001)) };
		print qq{<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 $w $h" font-family="sans-serif" font-size="12" role="img">\n};
		print qq{<title>Processor time of one diagnosis by servers times seconds</title>\n<rect width="$w" height="$h" fill="white"/>\n};
		for my $v (1e4, 1e5, 1e6) { printf qq{<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>\n},
			($x->($v)) x 2, $y->(0.001), $y->(5), $x->($v), $h - 32, $v =~ s/000000$/,000,000/r =~ s/(\d)000$/$1,000/r; }
		for my $v (0.001, 0.01, 0.1, 1) { printf qq{<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s s</text>\n},
			$x->(5000), $x->(1e6), ($y->($v)) x 2, $l - 6, $y->($v) + 4, $v; }
		printf qq{<text x="%d" y="%d" text-anchor="middle">servers times seconds</text>\n}, $w / 2, $h - 10;
		printf qq{<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#888" stroke-dasharray="4 3"/><text x="%.1f" y="%.1f" fill="#555">2 s</text>\n},
			$x->(5000), $y->(2), $x->(1e6), $y->(2), $x->(5200), $y->(2) - 4;
		my %colour = ("peer-robust" => "#0b62a4", "peer-threshold" => "#c2541a"); my $k = 0;
		for my $d (sort keys %of) {
			my @p = sort { $a->[0] <=> $b->[0] } @{ $of{$d} };
			my ($fx, $fy) = @{ (grep { $_->[2] && $_->[0] >= 60000 } @p)[0] };
			printf qq{<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-opacity="0.35"/>\n}, $x->(5000), $y->($fy * 5000 / $fx), $x->(1e6), $y->($fy * 1e6 / $fx), $colour{$d};
			printf qq{<circle cx="%.1f" cy="%.1f" r="4" stroke="%s" fill="%s"/>\n}, $x->($_->[0]), $y->($_->[1]), $colour{$d}, $_->[2] ? $colour{$d} : "white" for @p;
			printf qq{<text x="%d" y="%d" fill="%s">%s</text>\n}, $l + 20, $t + 70 + 18 * $k++, $colour{$d}, $d;
		}
		printf qq{<text x="%d" y="%d" fill="#555">filled: 600 s; hollow: 1,000 servers; lines: proportional</text>\n}, $w - 370, $y->(0.0015);
		print "</svg>\n";
	}' "$tmp/points" >"$plot"
