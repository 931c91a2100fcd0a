#!/bin/bash
# 'lab up' killed with SIGKILL at each of its stages: 'lab down' leaves nothing, and 'lab up' begins anew.
# CULPRIT_SOAK=N: N more kills, at moments all over the bring-up.
. "$(dirname "$0")/../lab/lab_lib.sh"

stages=$(sed -n 's/.*[^a-z_]stage("\([a-z]*\)").*/\1/p' "$(dirname "$0")/../../../harness/lab/build.c")
check "the stages are known" test "$(wc -w <<<"$stages")" -ge 10
own=(--cpus 0.5 --memory 256MiB)
up "${own[@]}" >/dev/null
link=$("$culprit" lab status --json --dir "$dir" | sed -n 's/.*"link": "\(.*\)".*/\1/p')
down >/dev/null
[ -n "$link" ] || echo "# the interface's name is not known"

# Without the shell's word about the killed job.
killed_up() { CULPRIT_LAB_DIE_AT=$1 up "${own[@]}" >/dev/null 2>&1; }
for stage in $stages; do
	killed_up "up@$stage" 2>/dev/null
	is "up killed at '$stage'" $? 137
	check "down after it" down
	check "... leaves nothing" clean
done 2>/dev/null
for stage in groups loops links clients; do
	exits "the builder killed at '$stage': up fails" 3 'build died while.*killed by signal 9' env CULPRIT_LAB_DIE_AT="build@$stage" \
		"$culprit" lab up --dir "$dir" --subnet "$subnet" "${own[@]}"
	check "... and cleans up itself" only_logs
	exits "... 'down' removes the logs" 0 'the lab is down' down
done
killed_up up@groups 2>/dev/null
rm -rf "$dir"
until_true 10 bash -c '! ps -eo args= | grep -q "[c]ulprit lab .*$1"' - "$dir"
exits "down finds control groups of a lab that left nothing else" 0 'the lab is down' down
check "... and leaves nothing" clean
killed_up up@clients 2>/dev/null
exits "up after a crash begins anew" 0 'the lab is up:' up
killed_up up@start 2>/dev/null
mv "$dir" "$dir.moved"
exits "down finds a lab whose folder is gone" 0 'the lab is down' down
check "... and leaves nothing" clean
rm -rf "$dir.moved"
for ((i = 0; i < ${CULPRIT_SOAK:-0}; i++)); do
	"$culprit" lab up --dir "$dir" --subnet "$subnet" "${own[@]}" >/dev/null 2>&1 &
	pid=$!
	sleep "$(printf '0.%03d' $((i * 7 % 700)))"
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
	check "down after a kill at $((i * 7 % 700)) ms" down
	check "... leaves nothing" clean
done
done_testing
