#!/bin/bash
# strace and sysstat as tracers: they start, stop and end like all tracers; their files are complete and readable by the
# real tools; the traced process continues; no process remains.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
agent=$PWD/${OUT:-out}/agent/culprit-agent
busy=$PWD/${OUT:-out}/helpers/busy
export ASAN_OPTIONS=detect_leaks=0
for program in strace sar; do command -v $program >/dev/null || skip_all "needs $program"; done
[[ $EUID -eq 0 ]] || skip_all "needs root"
tmp=$(mktemp -d)
started=()
trap 'kill -9 "${started[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

start_busy() { # a process that works, in $pid; it ends when we do
	mkfifo in.$1
	truncate -s 4096 side.$1
	"$busy" side.$1 <in.$1 &
	pid=$!
	started+=("$pid")
	exec {hold}>in.$1
	until_true 60 grep -q 'Threads:[[:space:]]*[2-9]' /proc/$pid/status
}
tracer() { # TRACER FILE PID: starts it and waits until it is ready; its pid is $tracer
	mkfifo ready.$2
	"$agent" trace --tracer $1 -o $2 --ready-fd 3 -p $3 3>ready.$2 2>err.$2 &
	tracer=$!
	started+=("$tracer")
	read -r ready <ready.$2
}
tracer_of() { awk '/^TracerPid:/ { print $2 }' /proc/$1/task/*/status | sort -u | xargs; }
untraced() { [[ $(tracer_of $1) == 0 ]]; }
progress() { # the process continues
	local seen
	seen=$(od -An -tu8 -N8 side.$1)
	until_true 60 eval '[[ $(od -An -tu8 -N8 side.'"$1"') -gt '"$seen"' ]]'
}
below() { # PID: its descendants
	local child
	for child in $(cat /proc/$1/task/*/children 2>/dev/null); do echo $child; below $child; done
}
gone() { local p; for p in "$@"; do [[ ! -e /proc/$p || $(awk '/^State/ { print $2 }' /proc/$p/status 2>/dev/null) == Z ]] || return 1; done; }
sound() { # an strace file: every line is complete
	[[ -s $1 ]] && ! grep -vqE '^[0-9]+ +[0-9]+\.[0-9]{6} .*(<[0-9.]+>|\+\+\+|---|unfinished \.\.\.>|= \?|<detached \.\.\.>)$' $1
}

# strace
start_busy a
tracer strace st $pid
check "strace is ready" [ "$ready" = ready ]
said=$(tracer_of $pid)
check "... with every thread attached" [ "$said" != 0 -a "$(wc -w <<<"$said")" = 1 ]
check "the process continues under it" progress a
tools=$(below $tracer)
kill -TERM $tracer
wait $tracer
check "after a stop signal it ends with 0" [ $? = 0 ]
check "its programs have ended" until_true 60 gone $tools
check "the process is no longer traced" untraced $pid
check "the process continues after it" progress a
check "every line of the file is complete" sound st
check "it has calls with their times" grep -qE ' = [0-9]+ <[0-9]+\.[0-9]+>$' st
out=$("$agent" trace --tracer strace -o st2 -- sh -c 'echo out; echo err >&2; exit 7' 2>err)
check "a command's exit code and output are passed on" [ "$? $out $(cat err)" = "7 out err" ]
check "the command is recorded up to its end" grep -q '+++ exited with 7 +++' <(tail -n 1 st2)
check "... from its beginning" grep -q execve st2

# Earlier children of a process are recorded with it.
sh -c 'sh -c "while :; do sleep 0.05; done" & wait' &
parent=$!
started+=("$parent")
until_true 60 pgrep -P $parent >/dev/null
child=$(pgrep -P $parent)
started+=("$child")
tracer strace st4 $parent
check "an earlier child is recorded" until_true 60 grep -q "^$child .*clone\|^$child .*fork\|^$child .*wait4" st4
kill -TERM $tracer
wait $tracer
check "after a stop signal it ends with 0 again" [ $? = 0 ]
check "the child continues untraced" untraced $child
kill $parent $child

# Its stop signal goes to the command, also when all children of the tracer are signalled.
"$agent" trace --tracer strace -o st3 -- sh -c 'trap "exit 5" INT; echo; while :; do sleep 0.05; done' >up &
tracer=$!
started+=("$tracer")
until_true 60 test -s up
pkill -INT -P $tracer
wait $tracer
check "a signal to all its children ends the command, and strace with it" [ "$? $(tail -n 1 st3 | grep -o '+++.*')" = "5 +++ exited with 5 +++" ]

# sysstat
tracer sysstat sa $pid
check "sysstat is ready" [ "$ready" = ready ]
check "it does not trace the process" untraced $pid
until_true 60 eval '[[ $(sar -f sa 2>/dev/null | grep -c all) -ge 2 ]]'
tools=$(below $tracer)
kill -TERM $tracer
wait $tracer
check "after a stop signal it ends with 0" [ $? = 0 ]
check "its programs have ended" until_true 60 gone $tools
check "the process continues after it" progress a
check "sar reads CPU, memory, disks and network without an error" [ -z "$(sar -u -r -d -n DEV -f sa 2>&1 >/dev/null)" -a \
	"$(sar -u -r -d -n DEV -f sa | grep -c -E '%idle|kbmemfree|rkB/s|rxkB/s')" -ge 4 ]
"$agent" trace --tracer sysstat -o sa2 -- sh -c 'exit 6'
check "a command's exit code is passed on" [ $? = 6 ]
check "its file is readable by sadf" [ -z "$(sadf -j sa2 2>&1 >/dev/null)" ]

# Failures
for t in strace sysstat; do
	tracer $t hard.$t $pid
	tools=$(below $tracer)
	kill -KILL $tracer
	wait $tracer 2>/dev/null
	check "$t: its programs end when the tracer is killed" until_true 60 gone $tools
	check "$t: the process continues untraced" until_true 60 untraced $pid
	tracer $t hard2.$t $pid
	tool=$(below $tracer | tail -n 1)
	kill -KILL $tool
	wait $tracer
	check "$t: it reports an incomplete file after its tool was killed" [ $? = 3 ]
	said=$("$agent" trace --tracer $t -o st -p $pid 2>&1)
	check "$t: an existing file is not overwritten" [ "$?$(grep -c "cannot create 'st'" <<<"$said")" = 21 ]
	said=$("$agent" trace --tracer $t --mode sums -o no -p $pid 2>&1)
	check "$t: the mode sums is refused" [ "$?$(ls no 2>/dev/null)" = 2 ]
	said=$("$agent" trace --tracer $t -o no -- /no/such 2>&1)
	check "$t: a command that does not exist: 127, no file" [ "$?$(ls no 2>/dev/null)" = 127 ]
	said=$("$agent" trace --tracer $t -o no -p 4000000 2>&1)
	check "$t: a process that does not exist: 2, no file" [ "$?$(ls no 2>/dev/null)" = 2 ]
done
"$agent" trace -o other --tracer ptrace -p $pid --ready-fd 3 3>other.ready 2>/dev/null &
other=$!
started+=("$other")
until_true 60 test -s other.ready
said=$("$agent" trace --tracer strace -o no -p $pid 2>&1)
check "a process that is traced already: strace's message comes last" [ "$?$(tail -n 1 <<<"$said" | grep -c 'strace: .*not permitted')" = 21 ]
kill -TERM $other
wait $other
said=$(PATH=/none "$agent" trace --tracer strace -o no -p $pid 2>&1)
check "without strace: 2, and the package is named" [ "$? $said" = "2 culprit-agent trace: there is no strace here; on Debian: apt-get install strace" ]
said=$(unshare -m sh -c "mount -t tmpfs none /usr/lib/sysstat && exec '$agent' trace --tracer sysstat -o no -p $pid" 2>&1)
check "without sysstat: 2, and the package is named" [ "$? $said" = "2 culprit-agent trace: there is no sadc here; on Debian: apt-get install sysstat" ]

# Answers of the agent for these tracers.
coproc serve { "$agent" serve --dir "$tmp/agent" 2>&1; }
started+=("$serve_PID")
ask() { # JSON: the answer of the same id, in $answer
	echo "$1" >&"${serve[1]}"
	while read -r -t 20 answer <&"${serve[0]}"; do [[ $answer == *'"id":'* ]] && return 0; done
	return 1
}
for t in strace sysstat; do
	ask '{"id":1,"op":"trace.start","tracer":"'$t'","pids":['$pid'],"out":"'$tmp/agent.$t'"}'
	handle=$(sed 's/.*"handle":"\([^"]*\)".*/\1/' <<<"$answer")
	ask '{"id":2,"op":"trace.stop","handle":"'$handle'"}'
	check "$t: trace.stop reports a complete file, without counts" grep -q '"records":null.*"lost":null.*"whole":true' <<<"$answer"
	ask '{"id":3,"op":"process.start","argv":["sh","-c","trap \"exit 5\" INT; echo; while :; do sleep 0.05; done"],"stdout":"'$tmp/app.$t.out'","trace":{"tracer":"'$t'","out":"'$tmp/app.$t'"}}'
	handle=$(sed 's/.*"handle":"\([^"]*\)".*/\1/' <<<"$answer")
	until_true 60 test -s app.$t.out
	ask '{"id":4,"op":"process.stop","handle":"'$handle'","signal":"INT"}'
	check "$t: a traced program is stopped, its exit code kept, the file whole" grep -q '"exit":5.*"records":null.*"whole":true' <<<"$answer"
done
serving=$serve_PID
ask '{"id":9,"op":"bye"}'
wait $serving
check "the agent ends with 0" [ $? = 0 ]
exec {hold}>&-
done_testing
