#!/bin/bash
# What log followers from Debian do when a file is replaced under them: which lines they lose, and whether 'culprit findings' says so of
# their traces alone (the case of Esteves et al. 2023).
#
#   ci/bench/followers.sh [TRACER]     ebpf, or ptrace (which slows followers, and needs no eBPF)
#   FOLLOWERS="tail imfile" CASES="renamed" KEEP=FOLDER ci/bench/followers.sh     these only; the logs are kept
#
# Each case: a file of 26 bytes, which the follower reads; the file is replaced by one with a second line; the follower looks again; a last
# line is appended, whose end is waited for. What came of the second line and of the last one is printed. Cases:
#   renamed        the file is renamed and a new one made, as logrotate does
#   same-inode     the file is removed and made anew under the same inode number, in a file system in which that happens at once
#   while-down     the same while the follower is not running; then it is started again
#   cut-smaller    the file is cut to nothing and 16 bytes are written, while the follower is stopped (SIGSTOP): it is busy elsewhere
#   cut-equal      the same with 26 bytes
# Needs root, for a small ext4 of its own.
set -eu
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo "needs root, to mount a file system in which inode numbers are used again" >&2; exit 2; }
tracer=${1:-ebpf}
[ "${INSIDE:-}" = 1 ] || INSIDE=1 exec unshare -m --propagation private "$0" "$tracer"
culprit=$PWD/${OUT:-out}/culprit
dir=$(mktemp -d)
follower='' trace=''
finish() {
	[ -z "$follower" ] || kill -KILL "$follower" 2>/dev/null || true
	[ -z "$trace" ] || kill -TERM "$trace" 2>/dev/null || true
	wait
	umount "$dir/fs" 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT
export XDG_CACHE_HOME=$dir/cache
mkdir "$dir/fs"
truncate -s 4M "$dir/image"
mkfs.ext4 -q -N 16 "$dir/image"
mount -o loop "$dir/image" "$dir/fs"
log=$dir/fs/app.log

until_true() { # TENTHS COMMAND...
	local n=$1
	shift
	until "$@" 2>/dev/null; do
		n=$((n - 1))
		[ $n -gt 0 ] || return 1
		sleep 0.1
	done
}
has() { grep -aq "$1" "$dir/out"; }
let_go() { [ -z "$(find "/proc/$follower/fd" -lname "$log (deleted)" 2>/dev/null)" ]; }

rsyslog() { # MODE
	mkdir -p "$dir/work"
	cat >"$dir/rsyslog.conf" <<-L
		global(workDirectory="$dir/work")
		module(load="imfile" mode="$1" pollingInterval="1")
		template(name="raw" type="string" string="%msg%\n")
		input(type="imfile" file="$log" tag="app" ruleset="out" persistStateInterval="1")
		ruleset(name="out") { action(type="omfile" file="$dir/out" template="raw") }
	L
	echo "exec rsyslogd -n -f '$dir/rsyslog.conf' -i '$dir/rsyslog.pid'"
}
command_of() { # FOLLOWER: a shell's words
	case $1 in
	tail) echo "exec tail -n +1 -F '$log' >>'$dir/out' 2>/dev/null" ;;
	tail-polling) echo "exec tail -n +1 -F ---disable-inotify -s 0.2 '$log' >>'$dir/out' 2>/dev/null" ;;
	imfile) rsyslog inotify ;;
	imfile-polling) rsyslog polling ;;
	esac
}
program_of() { case $1 in tail*) echo tail ;; *) echo rsyslogd ;; esac; }
version_of() {
	case $1 in
	tail*) tail --version | head -n 1 ;;
	*) rsyslogd -v | sed -n '1s/ (.*//p' ;;
	esac
}

# The program among the shell's descendants, which may be the shell itself.
find_follower() {
	local pid
	for pid in $(cat "$dir/pid") $(pgrep -P "$(cat "$dir/pid")"); do
		[ "$(cat "/proc/$pid/comm")" != "$1" ] || { follower=$pid; return 0; }
	done
	return 1
}
start() { # FOLLOWER: one trace; a second life of the follower is in the same
	rm -f "$dir/log" "$dir/pid" "$dir/again"
	{
		echo "echo \$\$ >'$dir/pid'"
		command_of "$1" | sed 's/^exec //'
		echo "[ -e '$dir/again' ] || exit 0"
		echo "until [ -e '$dir/go' ]; do sleep 0.1; done"
		command_of "$1" | sed 's/^exec //'
	} >"$dir/run.sh"
	(cd "$dir" && exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$culprit" trace --tracer "$tracer" -o "$dir/log" -- \
		sh "$dir/run.sh" >/dev/null 2>"$dir/errors") &
	trace=$!
	until_true 300 test -s "$dir/pid" && until_true 300 find_follower "$(program_of "$1")"
}
stop() {
	kill -TERM "$follower"
	until_true 300 gone
	follower=''
}
gone() { [ ! -e "/proc/$follower" ]; }
end_trace() { wait "$trace" || true; trace=''; }

make() { printf '%s\n' "$1" >"$log"; stat -c %i "$log" >"$dir/inode"; }
again() { # until the number is the same
	local n
	for n in $(seq 50); do
		rm -f "$log"
		printf '%s\n' "$1" >"$log"
		[ "$(stat -c %i "$log")" != "$(cat "$dir/inode")" ] || return 0
	done
	return 1
}

replace() { # CASE FOLLOWER
	case $1 in
	renamed) mv "$log" "$log.1"; printf 'second line, 16\n' >"$log" ;;
	same-inode) rm "$log"; until_true 50 let_go || true; again 'second line, 16' || echo "(another inode)" ;;
	while-down)
		touch "$dir/again"
		stop
		again 'second line, 16' || echo "(another inode)"
		touch "$dir/go"
		until_true 300 find_follower "$(program_of "$2")" ;;
	cut-smaller) kill -STOP "$follower"; printf 'second line, 16\n' >"$log"; kill -CONT "$follower" ;;
	cut-equal) kill -STOP "$follower"; printf 'second line, 26 bytes in.\n' >"$log"; kill -CONT "$follower" ;;
	esac
}

came() { # BEGINNING END
	if has "$1"; then echo came; elif has "$2"; then echo partly; else echo lost; fi
}
case_of() { # FOLLOWER CASE
	local note
	rm -rf "$dir/out" "$dir/work" "$dir/go" "$log" "$log.1"
	: >"$dir/out"
	make 'first line, 26 bytes long'
	start "$1" || { echo "$1: did not start: $(cat "$dir/errors")" >&2; return 1; }
	until_true 300 has 'first line' || { echo "$1 $2: the first line never came" >&2; return 1; }
	note=$(replace "$2" "$1")
	[ "$2" != while-down ] || find_follower "$(program_of "$1")"
	until_true 50 has 'second line' || true
	printf 'the last line, of which a follower that goes on at byte 26 reads a part: END\n' >>"$log"
	until_true 300 has END || true
	stop
	end_trace
	[ -z "${KEEP:-}" ] || cp "$dir/log" "$KEEP/$1.$2.log"
	"$culprit" findings --json "$dir/log" >"$dir/findings" 2>/dev/null || true
	printf '%-15s %-12s %-6s  %-6s  %s\n' "$1" "$2" "$(came 'second line' 'second line')" "$(came 'the last line' END)" \
		"$(sed -n 's/.*"finding":"\([a-z-]*\)".*/\1/p' "$dir/findings" | sort -u | tr '\n' ' ')$note"
}

for f in ${FOLLOWERS:-tail tail-polling imfile imfile-polling}; do
	command -v "$(program_of "$f")" >/dev/null || { echo "$f: no $(program_of "$f") here: left out"; continue; }
	echo "$f: $(version_of "$f")"
done
echo
printf '%-15s %-12s %-6s  %-6s  %s\n' follower file second last 'culprit findings'
for f in ${FOLLOWERS:-tail tail-polling imfile imfile-polling}; do
	command -v "$(program_of "$f")" >/dev/null || continue
	for c in ${CASES:-renamed same-inode while-down cut-smaller cut-equal}; do
		case $f.$c in tail*.while-down) continue ;; esac # it keeps nothing between lives
		case_of "$f" "$c"
	done
done
