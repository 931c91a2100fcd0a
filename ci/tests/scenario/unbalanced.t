#!/bin/bash
# scenarios/unbalanced.lua plans the cells of Dinh 2009's two experiments; workloads/mpi-io.lua's script writes what
# mpi-io-test writes: each block of the shared file once, by the process whose turn it is.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
command -v lua5.4 >/dev/null || skip_all "there is no lua5.4"
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "'$2', not '$3'"; fi; }
culprit=$PWD/${OUT:-out}/culprit
here=$PWD
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
{
	echo 'return { file_system = { type = "orangefs" }, nodes = {'
	for i in 1 2 3 4; do
		echo "{ name = \"s$i\", role = \"server\", address = \"192.0.2.$i\", host_key = \"ssh-ed25519 AAAA\", storage = \"/b\", service_port = 3334 },"
	done
	for i in 1 2 3 4 5; do
		echo "{ name = \"c$i\", role = \"client\", address = \"192.0.2.1$i\", host_key = \"ssh-ed25519 AAAA\", mount = \"/m\" },"
	done
	echo '} }'
} >inventory.lua
plan=$("$culprit" run --inventory inventory.lua --dry-run "$here/scenarios/unbalanced.lua" 2>&1)
is "five cells of each kind" "$(grep -c ' unbalanced(' <<<"$plan") $(grep -c ' none' <<<"$plan")" "5 5"

# The workload's own script, with dd, and then with a program in place of pvfs2-cp that notes its arguments.
cat >argv.lua <<'L'
local root, clients, client, library = arg[1], tonumber(arg[2]), tonumber(arg[3]), arg[4]
package.preload.culprit = function() return {} end
local ctx = {
	run = "run", clients = {},
	params = { processes = 5, block = 4096, blocks = 3, orangefs = library },
	file_system = { type = library == "ignored" and "glusterfs" or "orangefs" },
}
for i = 1, clients do ctx.clients[i] = { name = "c" .. i, mount = "m" } end
for _, word in ipairs(dofile(root .. "/workloads/mpi-io.lua").command(ctx, ctx.clients[client]).argv) do
	io.write(word, "\0")
end
L
start() { # CLIENTS CLIENT LIBRARY
	local words
	mapfile -d '' words < <(lua5.4 argv.lua "$here" "$@")
	"${words[@]}"
}
mkdir -p m/run
said=$(start 2 1 ""; start 2 2 "")
is "all blocks of all processes are written" "$(stat -c %s m/run/mpi-io) $(grep -c '^4096 bytes' <<<"$said")" "$((15 * 4096)) 15"
is "over two clients, three and two at a time" "$(grep -c '^3 processes at a time' <<<"$said") $(grep -c '^2 processes at a time' <<<"$said")" "1 1"
rm m/run/mpi-io
start 2 2 ignored >/dev/null
is "the second client's are every second block" "$(stat -c %s m/run/mpi-io)" "$((14 * 4096))"
is "a client without a process waits" "$(lua5.4 argv.lua "$here" 9 9 "" | tr '\0' ' ')" "sleep infinity "
rm m/run/mpi-io
mkdir m/run/mpi-io
said=$(start 2 1 ""; echo "code $?")
check "a failing process fails the whole, with its words" eval "grep -q 'Is a directory' <<<'${said//\'/}' && grep -q 'code 1' <<<'${said//\'/}'"
said=$(start 2 1 /bin/false; echo "code $?")
check "the library needs a mount of OrangeFS" eval "grep -q 'mpi-io: m is no mount of OrangeFS' <<<'${said//\'/}' && grep -q 'code 1' <<<'${said//\'/}'"
done_testing
