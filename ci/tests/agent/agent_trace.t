#!/bin/bash
# The agent's answers about tracers, and the times of programs that it runs. Requests are written by hand (PROTOCOL.md).
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
[ "$(id -u)" -eq 0 ] || skip_all "the agent's tracers need root"
agent=$PWD/${OUT:-out}/agent/culprit-agent
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# One request a line. Each answer is waited for, since the end of input ends the session.
coproc SESSION { "$agent" serve --dir "$tmp/state"; }
read -r _ <&"${SESSION[0]}"
ask() { # REQUEST: prints its answer
	echo "$1" >&"${SESSION[1]}"
	local line
	while read -r -t 60 line <&"${SESSION[0]}"; do
		case $line in *'"event"'*) ;; *) echo "$line"; return ;; esac
	done
}

refused() { "$agent" trace --out "$tmp/log" "$@" -- true 2>&1; echo "exit $?"; }
for bulk in 0 -1 x "16408," 16408,x 24,24 4294967297; do
	check "--bulk $bulk is refused" grep -qz "takes 1 to 4294967296 bytes.*not '$bulk'.*exit 2" <<<"$(refused --mode sums --bulk "$bulk")"
done
check "... and a good one without sums" grep -qz 'needs --mode sums.*exit 2' <<<"$(refused --bulk 16408,24)"
check "ptrace works here" grep -q '"able": *true' <<<"$(ask '{"id":1,"op":"check","what":"trace.ptrace"}')"
said=$(ask '{"id":2,"op":"check","what":"trace.nonsense"}')
check "an unknown tracer does not, and the reason names it" grep -q "\"able\": *false.*there is no tracer 'nonsense'" <<<"$said"
said=$(ask '{"id":20,"op":"check","what":"trace.ptrace","mode":"flow","heads":true,"memory_bytes":1048576}')
check "a tracer is tried in the mode that will be used" grep -q '"able": *false.*ptrace has no sums and no flows' <<<"$said"
said=$(ask '{"id":21,"op":"run","argv":["sleep","77"],"timeout_s":0.2}')
check "a command that takes too long is named, with its limit" grep -q "'sleep 77' did not end within 0.2 s, and was killed" <<<"$said"
said=$(ask "{\"id\":3,\"op\":\"process.start\",\"argv\":[\"sleep\",\"0.2\"],\"times\":\"$tmp/times\"}")
handle=$(sed -n 's/.*"handle": *"\([^"]*\)".*/\1/p' <<<"$said")
for _ in $(seq 300); do [ -s "$tmp/times" ] && break; sleep 0.1; done
check "the time of a run is written once, to the requested file" \
	awk -F'[:,}]' 'NR == 1 && $1 == "{\"start_ns\"" && $4 >= 0.2 && $4 < 30 && $6 == 0 { good = 1 } END { exit !(good && NR == 1) }' "$tmp/times"
ask "{\"id\":4,\"op\":\"process.stop\",\"handle\":\"$handle\"}" >/dev/null
said=$(ask '{"id":5,"op":"process.start","argv":["true"],"trace":{"out":"x","tracer":"ptrace","speed":1}}')
check "an unknown member of a trace is refused by name" grep -q "trace has no member 'speed'" <<<"$said"
said=$(ask '{"id":6,"op":"trace.start","pids":[1],"out":"x","mode":"sums","tracer":"ptrace"}')
check "a mode that the tracer does not have is refused" grep -q 'ptrace has no sums' <<<"$said"
# The load of a trigger, apart from that of others: each is since its own last one.
seconds() { sed -n 's/.*"seconds": *\([0-9.e-]*\).*/\1/p'; }
ask '{"id":40,"op":"load"}' >/dev/null
ask '{"id":41,"op":"load","apart":true}' >/dev/null
sleep 0.1
said=$(ask '{"id":42,"op":"load","apart":true}')
between=$(seconds <<<"$said")
said=$(ask '{"id":43,"op":"load"}')
since=$(seconds <<<"$said")
check "a load apart does not shorten the next one's time ($between < $since)" awk "BEGIN { exit !($between >= 0.1 && $since > $between) }"
# A flight recorder, where the kernel allows it.
sleep 100 &
sleeper=$!
said=$(ask "{\"id\":7,\"op\":\"trace.start\",\"pids\":[$sleeper],\"out\":\"ring\",\"mode\":\"flow\",\"heads\":true,\"ring_s\":60,\"control\":true,\"calls\":[\"disk\",\"other\"],\"tracer\":\"ebpf\"}")
handle=$(sed -n 's/.*"handle": *"\([^"]*\)".*/\1/p' <<<"$said")
if [ -n "$handle" ]; then
	for n in 1 2; do
		said=$(ask "{\"id\":8$n,\"op\":\"trace.write\",\"handle\":\"$handle\"}")
		log=$(sed -n 's/.*"log": *"\([^"]*\)".*/\1/p' <<<"$said")
		check "what a tracer keeps is written when told: file $n" test "${log##*.}" = $n -a -s "$log"
		check "and is a whole log" grep -q '^# end at .* 0 lost' <<<"$("${OUT:-out}/culprit" log "$log" 2>&1)"
	done
	said=$(ask "{\"id\":83,\"op\":\"trace.control\",\"handle\":\"$handle\",\"line\":\"filter client=10.9.9.9\"}")
	check "it obeys while it runs" grep -q '"line": *"filter client=10.9.9.9"' <<<"$said"
	said=$(ask "{\"id\":84,\"op\":\"trace.control\",\"handle\":\"$handle\",\"line\":\"filter calls=disc\"}")
	check "and says why it does not" grep -q "unknown kind 'disc'; .*; did you mean 'disk'" <<<"$said"
	said=$(ask "{\"id\":85,\"op\":\"trace.control\",\"handle\":\"$handle\",\"line\":\"write\"}")
	check "what is no order to it is refused" grep -q 'an order is on, off or filter' <<<"$said"
	said=$(ask "{\"id\":10,\"op\":\"trace.stop\",\"handle\":\"$handle\"}")
	check "and at its end" grep -q '"whole": *true' <<<"$said"
	said=$("${OUT:-out}/culprit" log "$(find "$tmp/state" -name ring)" 2>&1)
	check "the log says what was recorded, and since when" \
		test "$(grep -c '### recorded from here: on filter' <<<"$said")" = 2
else
	ok "what a tracer keeps is written when told # SKIP $said"
fi
# A process that has ended is an error, unless it is said that some may have.
true &
ended=$!
wait $ended
for tracer in ptrace ebpf; do
	[ $tracer = ptrace ] || [ -n "$handle" ] || continue
	begin="\"op\":\"trace.start\",\"tracer\":\"$tracer\",\"pids\""
	said=$(ask "{\"id\":90,$begin:[$sleeper,$ended],\"out\":\"$tracer.1\"}")
	check "$tracer: a process that has ended is an error" grep -q "there is no process $ended" <<<"$said"
	said=$(ask "{\"id\":91,$begin:[$ended],\"out\":\"$tracer.2\",\"skip_ended\":true}")
	check "... always, if it is the only one" grep -q "there is no process $ended" <<<"$said"
	said=$(ask "{\"id\":92,$begin:[$ended,$sleeper,$ended],\"out\":\"$tracer.3\",\"skip_ended\":true}")
	living=$(sed -n 's/.*"handle": *"\([^"]*\)".*/\1/p' <<<"$said")
	said=$(ask "{\"id\":93,\"op\":\"trace.stop\",\"handle\":\"$living\"}")
	check "... the others are traced, where that is said" grep -q '"whole": *true' <<<"$said"
done
said=$(ask "{\"id\":11,\"op\":\"trace.start\",\"pids\":[$sleeper],\"out\":\"all\",\"tracer\":\"ptrace\"}")
handle=$(sed -n 's/.*"handle": *"\([^"]*\)".*/\1/p' <<<"$said")
said=$(ask "{\"id\":12,\"op\":\"trace.write\",\"handle\":\"$handle\"}")
check "a tracer that keeps no seconds refuses" grep -q 'it was started without ring_s' <<<"$said"
said=$(ask "{\"id\":13,\"op\":\"trace.start\",\"pids\":[$sleeper],\"out\":\"no\",\"tracer\":\"ptrace\",\"ring_s\":5}")
check "and one that cannot is refused" grep -q 'has no --ring' <<<"$said"
said=$(ask "{\"id\":14,\"op\":\"trace.control\",\"handle\":\"$handle\",\"line\":\"on\"}")
check "one that takes no orders says so" grep -q 'it was started without control' <<<"$said"
# A log that is taken away while it is written: parts of a file, of which what was taken becomes a hole.
sleep 100 &
other=$!
said=$(ask "{\"id\":20,\"op\":\"trace.start\",\"pids\":[$other],\"out\":\"live\",\"tracer\":\"ptrace\",\"bound_bytes\":262144}")
live=$(sed -n 's/.*"handle": *"\([^"]*\)".*/\1/p' <<<"$said")
said=$(ask '{"id":21,"op":"file.read","path":"live","offset":0,"most":192,"release":true}')
data=$(sed -n 's/.*"data": *"\([^"]*\)".*/\1/p' <<<"$said")
check "a growing log is read in parts" [ "$(base64 -d <<<"$data" | head -c 8)" = CULPRLOG ]
dd if=/dev/urandom of="$(dirname "$(find "$tmp/state" -name live)")/file" bs=64k count=4 status=none
file=$(find "$tmp/state" -name file)
said=$(ask '{"id":22,"op":"file.read","path":"file","offset":100000,"most":3000,"release":true}')
check "a part of a file" cmp <(sed -n 's/.*"data": *"\([^"]*\)".*/\1/p' <<<"$said" | base64 -d) <(tail -c +100001 "$file" | head -c 3000)
check "which says how large it is" grep -q '"size": *262144' <<<"$said"
check "what lies before it is released, but for the beginning" [ "$(tail -c +4097 "$file" | head -c 94208 | tr -d '\0' | wc -c)" = 0 -a "$(head -c 4096 "$file" | tr -d '\0' | wc -c)" -gt 4000 ]
said=$(ask '{"id":23,"op":"file.read","path":"file","offset":262144}')
check "behind its end there is nothing yet" grep -q '"data": *""' <<<"$said"
said=$(ask "{\"id\":24,\"op\":\"file.read\",\"path\":\"$file\",\"offset\":0,\"release\":true}")
check "only the session's own files are released" grep -q 'only files of the session' <<<"$said"
said=$(ask '{"id":25,"op":"file.read","path":"/dev","offset":0}')
check "a folder is refused" grep -q 'is no regular file' <<<"$said"
said=$(ask '{"id":26,"op":"file.read","path":"none","offset":0}')
check "and what is not there" grep -q '"code": *-2' <<<"$said"
said=$(ask "{\"id\":27,\"op\":\"trace.stop\",\"handle\":\"$live\"}")
check "the tracer's end is told without reading its log" grep -q '"calls": *null.*"whole": *true' <<<"$said"
said=$(ask "{\"id\":28,\"op\":\"trace.start\",\"pids\":[$sleeper],\"out\":\"no\",\"tracer\":\"ebpf\",\"ring_s\":5,\"bound_bytes\":262144}")
check "a ring has no bound" grep -q 'bound has no effect with --ring' <<<"$said"
kill "$sleeper" "$other"
echo '{"id":9,"op":"bye"}' >&"${SESSION[1]}"
wait "$SESSION_PID" 2>/dev/null
done_testing
