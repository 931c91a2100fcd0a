#!/bin/bash
# culprit capture: refusals, clean-up after ended commands, compute time, names and sizes in traces. Root, eBPF.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
out=$PWD/${OUT:-out} culprit=$PWD/${OUT:-out}/culprit
[ "$(id -u)" = 0 ] || skip_all "needs root"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/root"
"$out/agent/culprit-agent" trace --tracer ebpf --mode flow --causal -o "$tmp/try" -- true 2>"$tmp/why" || skip_all "no eBPF here: $(cat "$tmp/why")"
rm "$tmp/try" "$tmp/why"
cd "$tmp/root" || exit 1

# refuses NAME CODE PATTERN ARGUMENT ...
refuses() {
	local name=$1 code=$2 pattern=$3 said got
	shift 3
	said=$("$culprit" capture "$@" 2>&1 </dev/null)
	got=$?
	if [ $got -eq "$code" ] && grep -q -- "$pattern" <<<"$said" && [ "$(wc -l <<<"$said")" -eq 1 ]; then ok "$name"; else not_ok "$name" "$got: $said"; fi
}
refuses "no file for the trace" 2 "say where the trace goes: --out FILE" -- true
echo precious >"$tmp/there"
refuses "an existing output file" 2 "'$tmp/there' exists" -o "$tmp/there" -- true
check "... which stays unchanged" grep -qx precious "$tmp/there"
refuses "a missing root" 2 "cannot use '/nowhere/at/all' as --root" -o "$tmp/t" --root /nowhere/at/all -- true
refuses "a root that is a file" 2 "--root takes a folder" -o "$tmp/t" --root "$tmp/there" -- true
refuses "another method" 2 "method" -o "$tmp/t" --method guess -- true
refuses "a period without delays" 2 "--period is for captures that delay calls" -o "$tmp/t" --period 5 -- true
refuses "a share of processes without delays" 2 "--nodes is for captures that delay calls" -o "$tmp/t" --nodes 2 -- true
refuses "a client without an inventory" 2 "--from is for captures on other hosts: add --inventory" -o "$tmp/t" --from c1 -- true
refuses "a launcher without an inventory" 2 "--launcher is for captures on other hosts: add --inventory" -o "$tmp/t" --launcher slurmd -- true
refuses "a missing inventory" 2 "nowhere.lua" -o "$tmp/t" --inventory nowhere.lua -- true
refuses "delays on other hosts" 2 "with --inventory there is only --method messages" -o "$tmp/t" --inventory nowhere.lua --method both -- true
refuses "no calls below the root" 3 "made no call on a file below '$tmp/root'" -o "$tmp/t" -- true
refuses "a command that fails" 3 "ended with exit code 7: nothing is written" -o "$tmp/t" -- sh -c 'exec 2>/dev/null; echo >x; exit 7'
refuses "a command that takes too long" 3 "ran for more than 1 s and has been ended" -o "$tmp/t" --time-limit 1s -- sleep "1000.${$}025"
rm -f x
left() { find "$tmp" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | tr '\n' ' '; }
check "no file of a refused capture remains" [ "$(left)" = "root there " ]
# Only processes of this test: other tests may run at the same time.
gone() { ! pgrep -f "^sleep 1000\.$$0$1" >/dev/null; }
check "... and no process of its command" gone 25

# Interrupted, with a descendant that ignores SIGTERM and SIGINT.
"$culprit" capture -o "$tmp/t" -- sh -c 'trap "" TERM INT; (sleep 1000.'$$'075) & echo >started; wait' >"$tmp/said" 2>&1 &
pid=$!
until_true 60 [ -e started ]
kill -INT $pid
wait $pid
code=$?
check "an interrupted capture ends" [ $code -eq 3 ]
check "... with all that it started" gone 75
rm -f started "$tmp/said"
check "... and leaves no file" [ "$(left)" = "root there " ]

# Compute time: before each of the five calls.
check "a computing program is captured" "$culprit" capture -o "$tmp/c" -- bash -c "exec '$out/helpers/compute' file >'$tmp/spun'"
before() { "$culprit" log "$tmp/c" | grep '^0\.0:.* stat("file")' | sed -n "$1s/.* $2=\([0-9.]*\).*/\1/p"; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0.9 * b && a < 1.1 * b + 0.005) }'; }
below() { awk -v a="${1:-0}" -v b="$2" 'BEGIN { exit !(a < b) }'; }
check "computing is processor time: $(before 2 compute) of $(cat "$tmp/spun") s" near "$(before 2 compute)" "$(cat "$tmp/spun")"
check "sleep counts as away, in full: $(before 3 away) s" below 0.0499 "$(before 3 away)"
check "... and not as compute" below "$(before 3 compute)" 0.02
check "polling without a message is not compute: $(before 4 compute) of 0.2 s" below "$(before 4 compute)" 0.15
check "waiting for a message is not compute" below "$(before 5 compute)" 0.02
check "... and not away" below "$(before 5 away)" 0.02

# Names and sizes.
printf 12345 >kept
printf 12 >grows
printf 1 >goes
script='exec 3<kept 4>>grows; read -r x <&3; printf 345 >&4; mkdir deep; printf x >deep/secretname; rm goes'
check "a script is captured" "$culprit" capture -o "$tmp/n" -- bash -c "$script || true"
"$culprit" log "$tmp/n" >"$tmp/text"
has() { grep -qx "file [0-9]* \"$1\" was=$2 is=$3" "$tmp/text"; }
check "an unchanged file has its size" has kept 5 5
check "a file that grows has both sizes" has grows 2 5
check "a removed file has its old size" has goes 1 -1
check "a new file has its new size" has deep/secretname -1 1
check "a folder is marked as one" grep -q 'file [0-9]* "deep" was=-1 is=0 folder' "$tmp/text"
rm -r deep
printf 12 >grows
printf 1 >goes
check "the script is captured without names" "$culprit" capture --anonymise -o "$tmp/a" -- bash -c "$script || true"
"$culprit" log "$tmp/a" >"$tmp/hidden"
check "the trace has names, unless they are left out" grep -aq secretname "$tmp/n"
check "the anonymised trace has no name" lacks "secretname|kept|grows|deep|$(uname -n)|$tmp" "$tmp/a"
shape() { sed -E 's/"[^"]*"/NAME/g; s/^(rank .*) pid=.*/\1/; s/(compute|away)=[^ ]*|<[^>]*>|^([0-9.:]+) [0-9.]+/\2/g; s/ +/ /g' "$1"; }
check "... and is otherwise equal" diff <(shape "$tmp/text" | sed 's/ after=.*//') <(shape "$tmp/hidden" | sed 's/ after=.*//')
check "log -c prints a row for each rank" bash -c "'$culprit' log -c '$tmp/a' | grep -q '^names *anonymised'"
head -c 300 "$tmp/n" >"$tmp/cut"
said=$("$culprit" log "$tmp/cut" 2>&1)
code=$?
check "a truncated trace is refused: $said" [ $code -eq 2 ]
done_testing
