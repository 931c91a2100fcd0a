#!/bin/bash
# A timeline in Perfetto's protobuf decodes by the public schema's numbers, its slices nest and are those of the OTLP export; OTLP
# has the shape of an ExportTraceServiceRequest, with parents in the same trace that begin no later. Hostile names, times and
# arrows break neither.
# shellcheck disable=SC2016
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
model=$PWD/${OUT:-out}/bench/timeline_model
for program in protoc perl; do
	command -v $program >/dev/null || skip_all "no $program"
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

made() { "$model" "$1" 4000 "$2" 2>"$tmp/said" >"$tmp/$1.$2" || { cat "$tmp/said"; return 1; }; }
decoded() { protoc --proto_path=ci/tests/timeline --decode=Trace perfetto.proto <"$1"; }
same() { diff -u "$1" "$2" | head -20; cmp -s "$1" "$2"; }

for what in three requests hostile empty; do
	for form in perfetto otlp; do
		check "$what as $form" made $what $form
	done
	check "$what: protoc decodes it" decoded "$tmp/$what.perfetto"
	decoded "$tmp/$what.perfetto" >"$tmp/$what.text"
	check "... no field is unknown to the schema" bash -c '! grep -qE "^ *[0-9]+[: ]" "$1"' - "$tmp/$what.text"
done

# slices TEXT: "TRACK NAME CATEGORY START DURATION" of each slice, from begins and ends that must nest
cat >"$tmp/slices.pl" <<'END'
my (%name, %category, %track, %stack, %field, @path, @events, $clock);
sub text { my $t = shift; $t =~ s/^"|"$//g; $t =~ s/\\([0-7]{3})/chr oct $1/ge; $t =~ s/\\(.)/$1/g; $t }
sub packet {
	my %p = @_;
	my @iids = map { split ' ', $_ } $p{iid} // ();
	$track{$p{uuid}} = $p{track} if defined $p{uuid};
	push @events, {%p} if defined $p{type};
}
my (%p, $in);
while (<>) {
	chomp;
	if (/^packet \{/) { %p = () }
	elsif (/^\}/) { packet(%p) }
	elsif (/^\s*(\w+) \{/) { push @path, $1; %{$p{entry}} = () if $1 =~ /^event_/ }
	elsif (/^\s+\}/) {
		my $left = pop @path;
		$name{$p{entry}{iid}} = $p{entry}{name} if $left eq "event_names";
		$category{$p{entry}{iid}} = $p{entry}{name} if $left eq "event_categories";
	}
	elsif (/^\s*(\w+): (.*)/) {
		my ($k, $v, $at) = ($1, $2, $path[-1] // "");
		if ($at =~ /^event_/) { $p{entry}{$k} = $k eq "name" ? text($v) : $v }
		elsif ($at eq "track_descriptor") { $p{$k eq "name" ? "track" : $k} = $k eq "name" ? text($v) : $v }
		elsif ($at eq "track_event") { $p{$k} = $v; push @{$p{flows}{$k}}, $v if $k =~ /flow/ }
		elsif ($at eq "") { $p{$k} = $v }
	}
}
my (%out, %in);
for my $e (@events) {
	my $stack = $stack{$e->{track_uuid}} ||= [];
	die "unknown track $e->{track_uuid}\n" unless exists $track{$e->{track_uuid}};
	if ($e->{type} eq "TYPE_SLICE_BEGIN") {
		die "a begin before the last event of its track\n" if @$stack && $e->{timestamp} < $stack->[-1]{timestamp};
		push @$stack, $e;
		$out{$_} = $e->{timestamp} for @{$e->{flows}{flow_ids} || []};
		$in{$_} = $e->{timestamp} for @{$e->{flows}{terminating_flow_ids} || []};
	} elsif ($e->{type} eq "TYPE_SLICE_END") {
		my $b = pop @$stack or die "an end without begin\n";
		print join("|", $track{$e->{track_uuid}}, $name{$b->{name_iid}}, $category{$b->{category_iids}}, $b->{timestamp}, $e->{timestamp} - $b->{timestamp}), "\n";
	}
}
die "slices that do not end\n" if grep { @$_ } values %stack;
for (keys %in) { die "flow $_ ends but does not begin\n" unless defined $out{$_}; die "flow $_ leads back\n" if $in{$_} < $out{$_} }
for (keys %out) { die "flow $_ does not end\n" unless defined $in{$_} }
printf STDERR "%d flows\n", scalar keys %out;
END

cat >"$tmp/spans.pl" <<'END'
use JSON::PP;
my $d = decode_json(<STDIN>);
my (%span, %trace, $arrows);
sub value { my $v = shift; die "no value\n" unless 1 == keys %$v; my ($k) = keys %$v; die "$k\n" unless $k =~ /^(string|int)Value$/; $v->{$k} }
sub hex_of { my ($id, $n) = @_; die "id '$id'\n" unless $id =~ /^[0-9a-f]{$n}$/ && $id =~ /[1-9a-f]/ }
for my $r (@{$d->{resourceSpans}}) {
	my %about = map { $_->{key} => value($_->{value}) } @{$r->{resource}{attributes}};
	die "no service.name\n" unless defined $about{"service.name"};
	for my $s (map { @{$_->{spans}} } @{$r->{scopeSpans}}) {
		hex_of($s->{traceId}, 32);
		hex_of($s->{spanId}, 16);
		die "twice: $s->{spanId}\n" if $span{$s->{spanId}};
		$span{$s->{spanId}} = $s;
		die "times\n" unless $s->{startTimeUnixNano} =~ /^\d+$/ && $s->{endTimeUnixNano} >= $s->{startTimeUnixNano};
		my %a = map { $_->{key} => value($_->{value}) } @{$s->{attributes}};
		utf8::encode($_) for values %a, $s->{name};
		print join("|", $a{"culprit.track"}, $s->{name}, $a{"culprit.category"}, $s->{startTimeUnixNano}, $s->{endTimeUnixNano} - $s->{startTimeUnixNano}), "\n";
	}
}
for my $s (values %span) {
	for (grep { defined } $s->{parentSpanId}) {
		my $p = $span{$_} or die "no parent $_\n";
		die "a parent in another trace\n" if $p->{traceId} ne $s->{traceId};
		die "a parent that begins later\n" if $p->{startTimeUnixNano} > $s->{startTimeUnixNano};
	}
	for my $l (@{$s->{links} || []}) {
		die "a link to no span\n" unless $span{$l->{spanId}} && $span{$l->{spanId}}{traceId} eq $l->{traceId};
	}
}
printf STDERR "%d spans, %d children\n", scalar keys %span, scalar grep { defined $_->{parentSpanId} } values %span;
END

slices() { perl "$tmp/slices.pl" "$tmp/$1.text" 2>"$tmp/said" | sort >"$tmp/$1.slices"; cat "$tmp/said"; [ "${PIPESTATUS[0]}" = 0 ] && grep -q 'flows$' "$tmp/said"; }
spans() { perl "$tmp/spans.pl" <"$tmp/$1.otlp" 2>"$tmp/said" | sort >"$tmp/$1.spans"; cat "$tmp/said"; grep -q 'children$' "$tmp/said"; }
for what in three requests hostile empty; do
	check "$what: slices of Perfetto's tracks nest, flows begin before they end" slices $what
	check "$what: spans have parents of their trace" spans $what
done
check "the same slices in both" same "$tmp/requests.slices" "$tmp/requests.spans"
check "... which are many" [ "$(wc -l <"$tmp/requests.slices")" = 4000 ]
check "three slices, as they were made" [ "$(cut -d'|' -f1-3,5 "$tmp/three.slices" | tr '\n' ' ')" = \
	"io-1|read|disk|10000000 io-1|read|disk|70000000 io-1|send|network|10000000 " ]
check "requests: each has one trace" [ "$(grep -o '"traceId":"[0-9a-f]*"' "$tmp/requests.otlp" | sort -u | wc -l)" = 500 ]
check "... and one root" [ "$(grep -o '"spanId"' "$tmp/requests.otlp" | wc -l)" -ge 4000 ]
check "counters have values and units" bash -c 'grep -q "unit_name: \"requests\"" "$1" && grep -q "double_counter_value: 1[0-9]" "$1"' - "$tmp/requests.text"
check "the fault's onset and offset" bash -c 'grep -q "categories: \"fault onset\"" "$1" && grep -q "categories: \"fault offset\"" "$1"' - "$tmp/requests.text"
check "hostile: as many slices in both" [ "$(wc -l <"$tmp/hostile.spans")" = 768 ]
check "hostile: Perfetto has them all" [ "$(grep -c '' "$tmp/hostile.slices")" = 768 ]
check "a write error is reported" bash -c '"$1" requests 4000 perfetto 2>&1 >/dev/full | grep -q "cannot write the timeline"' - "$model"
done_testing
