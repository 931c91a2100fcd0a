#!/bin/bash
# culprit-agent file, without SSH: requests and bytes are written by hand (PROTOCOL.md, "Files").
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
agent=$PWD/${OUT:-out}/agent/culprit-agent
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
put="{\"put\":\"$tmp/put\",\"mode\":416,\"size\":5}"
crc=907060870 # of "hello"

printf '%s\nhello{"crc32":%s}\n' "$put" "$crc" | "$agent" file >"$tmp/said"
check "a put is told its size" test "$(cat "$tmp/said")" = '{"size":5}'
check "and has bytes and mode" test "$(cat "$tmp/put") $(stat -c %a "$tmp/put")" = "hello 640"
printf '{"get":"%s"}\n' "$tmp/put" | "$agent" file >"$tmp/said"
check "a fetch brings size, bytes and CRC" test "$(cat "$tmp/said")" = "$(printf '{"size":5}\nhello{"crc32":%s}' "$crc")"
rm "$tmp/put"
printf '%s\nhello{"crc32":1}\n' "$put" | "$agent" file >"$tmp/said"
check "a put with another CRC is refused" grep -q '"error"' "$tmp/said"
check "and leaves nothing" test "$(ls "$tmp")" = said

# An orchestrator that is stopped, or behind a cut network, neither sends nor takes anything, and closes nothing.
ends() { timeout 120 "$agent" file --lease 300ms; [ $? -eq 142 ]; } # SIGALRM
silent() { # TEXT COMMAND: its input is TEXT and does not end
	printf '%s' "$1" >"$tmp/text"
	shift
	mkfifo "$tmp/pipe"
	cat "$tmp/text" - <"$tmp/hold" >"$tmp/pipe" &
	"$@" <"$tmp/pipe" >"$tmp/said"
	local rc=$?
	kill %% 2>/dev/null
	rm -f "$tmp/pipe" "$tmp/text" "$tmp/said"
	return $rc
}
mkfifo "$tmp/hold"
exec {hold}<>"$tmp/hold"
check "without a request it ends after the lease" silent "" ends
check "a put that stops ends after the lease" silent "$put
he" ends
check "so does one whose last line does not come" silent "$put
hello" ends
check "and they leave nothing" test "$(ls "$tmp")" = hold
head -c 4M /dev/zero >"$tmp/large"
mkfifo "$tmp/out"
exec {out}<>"$tmp/out"
full() { ends >"$tmp/out"; }
check "so does a fetch whose bytes nobody takes" full <<<"{\"get\":\"$tmp/large\"}"
exec {out}>&- {hold}>&-
for bad in --lease=0s --lease=soon --lease=9999999d --speed=1 more; do
	"$agent" file "$bad" </dev/null >/dev/null 2>&1
	check "'$bad' is refused" test $? -eq 2
done
done_testing
