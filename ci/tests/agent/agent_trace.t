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

check "ptrace works here" grep -q '"able": *true' <<<"$(ask '{"id":1,"op":"check","what":"trace.ptrace"}')"
said=$(ask '{"id":2,"op":"check","what":"trace.nonsense"}')
check "an unknown tracer does not, and the reason names it" grep -q "\"able\": *false.*there is no tracer 'nonsense'" <<<"$said"
said=$(ask "{\"id\":3,\"op\":\"process.start\",\"argv\":[\"sleep\",\"0.2\"],\"times\":\"$tmp/times\"}")
handle=$(sed -n 's/.*"handle": *"\([^"]*\)".*/\1/p' <<<"$said")
for _ in $(seq 300); do [ -s "$tmp/times" ] && break; sleep 0.1; done
check "the time of a run is written once, to the requested file" \
	awk -F'[:,}]' 'NR == 1 && $1 == "{\"start_ns\"" && $4 >= 0.2 && $4 < 30 && $6 == 0 { good = 1 } END { exit !(good && NR == 1) }' "$tmp/times"
ask "{\"id\":4,\"op\":\"process.stop\",\"handle\":\"$handle\"}" >/dev/null
said=$(ask '{"id":5,"op":"process.start","argv":["true"],"trace":{"out":"x","tracer":"ptrace","speed":1}}')
check "an unknown member of a trace is refused by name" grep -q "trace has no member 'speed'" <<<"$said"
said=$(ask '{"id":6,"op":"trace.start","pids":[1],"out":"x","mode":"sums","tracer":"ptrace"}')
check "a mode that the tracer does not have is refused" grep -q 'ptrace knows no sums' <<<"$said"
echo '{"id":9,"op":"bye"}' >&"${SESSION[1]}"
wait "$SESSION_PID" 2>/dev/null
done_testing
