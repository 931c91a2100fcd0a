#!/bin/bash
# culprit trace ends when it is signalled, whatever its command does, and its log is complete.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
[ "$(id -u)" -eq 0 ] || skip_all "tracers need root"
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'kill -9 "$(cat "$tmp/pid")" 2>/dev/null; rm -rf "$tmp"' EXIT
touch "$tmp/pid"

# After writing their pid, the commands ignore signals, or wait in a stop until a debugger, their parent, lets them continue; the tracer
# is no debugger.
cat >"$tmp/deaf" <<P
trap '' TERM HUP
echo \$\$ >$tmp/pid
while :; do sleep 0.1; done
P
cat >"$tmp/stopped" <<P
import ctypes, os, signal
open("$tmp/pid", "w").write(str(os.getpid()))
ctypes.CDLL(None).ptrace(0, 0, 0, 0)
os.kill(os.getpid(), signal.SIGUSR1)
P

within() { # SECONDS COMMAND...: until it succeeds
	local n=$(($1 * 20))
	shift
	until "$@" 2>/dev/null; do ((n-- > 0)) || return 1; sleep 0.05; done
}
state() { [ -s "$tmp/pid" ] && [[ $(sed 's/.*) //; s/ .*//' "/proc/$(cat "$tmp/pid")/stat") == [$1] ]]; }
ended() { ! kill -0 "$1"; }
# signalled SIGNAL STATES TRACER COMMAND...: starts it, sends the signal once the command is in one of the states, and waits.
signalled() {
	local signal=$1 states=$2 tracer=$3 rc
	shift 3
	rm -f "$tmp/log"
	: >"$tmp/pid"
	"$culprit" trace --tracer "$tracer" -o "$tmp/log" -- "$@" >/dev/null 2>"$tmp/said" &
	within 30 state "$states" || { echo "it has not reached its state"; return 1; }
	kill -"$signal" $!
	within 30 ended $! || { kill -9 $!; echo "it has not ended within 30 s"; return 1; }
	wait $!
	rc=$?
	"$culprit" log -c "$tmp/log" >"$tmp/counts" || { cat "$tmp/counts"; return 1; }
	echo "exit code $rc"
}
for tracer in ebpf ptrace; do
	if ! "$culprit" trace --tracer $tracer -o "$tmp/try" -- true 2>"$tmp/why"; then
		ok "$tracer # SKIP $(tail -n 1 "$tmp/why")"
		continue
	fi
	rm -f "$tmp/try"
	check "$tracer: it ends on SIGTERM although the command does not" signalled TERM SRt $tracer sh "$tmp/deaf"
	check "$tracer: the command continues, with a note" bash -c "kill -0 $(cat "$tmp/pid") && grep -q 'process $(cat "$tmp/pid"), or a process that it started, has not ended 5 s' '$tmp/said'"
	check "$tracer: ... normally" within 10 state SR
	check "$tracer: its calls are in the log" grep -q wait4 "$tmp/counts"
	kill -9 "$(cat "$tmp/pid")"
done
if "$culprit" trace --tracer ebpf -o "$tmp/try" -- true 2>"$tmp/why"; then
	for signal in TERM INT; do
		check "ebpf: SIG$signal ends a command that waits for its parent as a debugger" signalled $signal t ebpf python3 "$tmp/stopped"
		check "ebpf: the command has ended" within 10 ended "$(cat "$tmp/pid")"
	done
else
	ok "ebpf: a command in a ptrace stop # SKIP $(tail -n 1 "$tmp/why")"
fi
done_testing
