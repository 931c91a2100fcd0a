#!/bin/bash
# net-delay and net-rate act, which a client measures, and leave every node as it was; without the program that delays packets an
# attempt is invalid. Has its own lab.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/nodes.sh
for program in sqlite3 perl; do command -v $program >/dev/null || skip_all "there is no $program"; done

scenario() { # NAME FAULTS
	echo "return { name = '$1', workloads = { { 'ddw', records = 1 } }, detectors = { 'always-healthy' }, faults = { $2 },
		phases = { before = '1s', fault = '6s', after = '1s' }, attempts = 3 }" >"$1.lua"
}
run() { # NAME [OPTION ...]
	local name=$1
	shift
	timeout 500 "$culprit" run --quiet --seed 1 --inventory "$inventory" -o "run-$name" "$@" "$name.lua" >said 2>&1
}
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "$(printf '%s\n' "'$2', not '$3'" && cat said)"; fi; }

# A server of bytes on each server: "N" sends N bytes, "0" takes all there are. A client connects, takes and sends 200 kB, and prints:
# what, server, when (s), how long (s).
serve='use IO::Socket::INET; $SIG{CHLD} = "IGNORE"; $l = IO::Socket::INET->new(Listen => 64, LocalPort => 5999, ReuseAddr => 1) or die;
while (1) { $c = $l->accept or next; next if fork; print $c "x" x ($n = <$c>); $c->flush; shutdown($c, 1) if $n > 0; 1 while sysread($c, $b, 65536); shutdown($c, 1);
exit }'
probe='use IO::Socket::INET; use Time::HiRes qw(time sleep); $| = 1;
sub dial { IO::Socket::INET->new(PeerAddr => $_[0], PeerPort => 5999, Timeout => 10) }
sub note { printf "%s %s %.6f %.6f\n", @_[0, 1], $_[2], time - $_[2] }
while (1) { for $s (@ARGV) {
	$t = time; $c = dial($s) or next; note("connect", $s, $t);
	$t = time; print $c "200000\n"; $c->flush; shutdown($c, 1); 1 while sysread($c, $b, 65536); note("take", $s, $t);
	$c = dial($s) or next; $t = time; print $c "0\n" . "x" x 200000; $c->flush; shutdown($c, 1); 1 while sysread($c, $b, 65536); note("give", $s, $t);
} sleep 0.02 }'
# figures FAULT PARAMETER WHAT: of the attempt with this parameter, the median seconds of WHAT during the fault (the undo comes a moment
# before the offset), and else; and the least during the fault.
figures() {
	local victim from to
	IFS='|' read -r victim from to < <(sqlite3 run-slow/run.db "SELECT c.victims->>0, a.onset_ns / 1e9, a.offset_ns / 1e9 FROM attempt a
		JOIN cell c ON a.cell = c.number WHERE a.outcome = 'confirmed' AND c.fault LIKE '$1%' AND c.fault LIKE '%$2%'")
	sort -k 4n probes | awk -v what="$3" -v server="$net.1${victim#s}" -v from="$from" -v to="$to" '
	$1 != what || $2 != server { next }
	$3 > from && $3 + $4 < to - 1 { during[++n] = $4 }
	$3 + $4 < from - 1 || $3 > to + 1 { other[++m] = $4 }
	END { print n ? during[int((n + 1) / 2)] : -1, m ? other[int((m + 1) / 2)] : -1, n ? during[1] : -1 }'
}
holds() { # NAME FIGURES CONDITION: of during, other, least
	if awk "{ during = \$1; other = \$2; least = \$3; exit !($3) }" <<<"$2"; then ok "$1"; else not_ok "$1" "during, other, least: $2"; fi
	echo "# during the fault, else, least: $2 s"
}

lab_up --cpus 1 --memory 512MiB
check "every node has the agent" "$culprit" undo --inventory "$inventory"
for s in s1 s2 s3; do node $s -- perl -e "$serve" & done
until_true 60 node s3 -- sh -c 'ss -Htln "sport = 5999" | grep -q .'
before=$(fingerprints)
check "there is something to compare" [ "$(grep -c '"mounts"' <<<"$before")" = 5 ]

node c1 -- perl -e "$probe" "$net.11" "$net.12" "$net.13" >probes &
scenario slow "{ 'net-delay', latency = '100ms', jitter = '20ms' }, { 'net-delay', latency = '80ms', direction = 'in' },
	{ 'net-rate', rate = '8Mbit/s' }"
run slow
sleep 2 # as before, once more
is "all are confirmed" "$(sqlite3 run-slow/run.db "SELECT count(*) FROM attempt WHERE outcome = 'confirmed'")" 3
holds "a round trip takes the latency longer, within the jitter" "$(figures net-delay jitter connect)" \
	"least >= 0.08 && during > 3 * other && during < 0.5"
holds "also where the packets to the victim are delayed" "$(figures net-delay direction=in connect)" \
	"least >= 0.08 && during > 3 * other"
holds "a connection is slow by its round trips alone" "$(figures net-delay jitter take)" "during > 2 * other && during < 2"
holds "what the victim sends passes at the rate" "$(figures net-rate rate take)" "least >= 0.9 * 0.2 && during > 5 * other"
holds "what it receives, too" "$(figures net-rate rate give)" "least >= 0.9 * 0.2 && during > 5 * other"
of() { # FAULT FIGURES
	sqlite3 run-slow/run.db "SELECT $2 FROM attempt a JOIN cell c ON a.cell = c.number, json_each(a.detail->'verified_still_on') e
	WHERE c.fault LIKE '$1%'"
}
is "the evidence has the time" "$(of 'net-delay(jitter' "e.value->'out'->>'packets' > 10, e.value->'out'->>'mean_s' BETWEEN 0.08 AND 0.15")" "1|1"
is "... and the bytes a second, in both directions" \
	"$(of net-rate "e.value->'in'->>'bytes_per_second' < 1100000, e.value->'out'->>'bytes_per_second' < 1100000")" "1|1"
check "nothing is left" clean
check "every node is as it was" diff <(echo "$before") <(fingerprints)
node c1 -- pkill -x perl

scenario killed "{ 'net-delay', latency = '100ms' }"
sed -i 's/attempts = 3/attempts = 1/' killed.lua
run killed &
pid=$!
until_true 120 grep -q 'step onset$' run-killed/run.log
on_all 'kill -KILL $(pgrep -f "culprit-agent [d]elay") 2>/dev/null'
wait $pid
check "an attempt whose program was killed is invalid" grep -q "invalid: .*the program that delays packets has ended" run-killed/run.log
check "nothing of it is left" clean
check "every node is as it was again" diff <(echo "$before") <(fingerprints)

check "the lab goes down" "$culprit" lab down --dir "$lab"
done_testing
