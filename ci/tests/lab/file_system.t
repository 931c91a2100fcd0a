#!/bin/bash
# 'culprit lab up --fs FILE': the lab runs any file system from its Lua file. Here one of nothing but 'sleep' as server and a
# tmpfs as mount, so that each function and each mistake is seen.
. "$(dirname "$0")/../lab/lab_lib.sh"

work=$(mktemp -d)
cd "$work" || exit
fs_up() { "$culprit" lab up --dir "$dir" --subnet "$subnet" --servers 2 --clients 1 --fs "$@"; }

# made LAB [FIELDS]: writes tiny.lua.
made() {
	cat >tiny.lua <<EOF
return {
	summary = "a tmpfs",
	server_pids = function(host, processes)
		local pids = {}
		for _, p in ipairs(processes) do
			if p.cmdline[1] == "sleep" then pids[#pids + 1] = p.pid end
		end
		return pids
	end,
	client_pids = function(host, processes) return { 1 } end,
	lost_errnos = {},
	${2-}
	lab = {
		programs = { sleep = "coreutils" },
		layouts = { { name = "plain", summary = "one" }, { name = "wide", summary = "two", servers = 3 } },
		params = { size = { default = "1MiB", unit = "bytes", help = "of the tmpfs" }, note = { default = "", help = "a word" } },
		$1
	},
}
EOF
}
client='start_client = function(node, lab) node:run { "mount", "-t", "tmpfs", "-o", ("size=%d"):format(lab.params.size), "tiny", node.mount } end,'

# --- the whole of it
made "$client"'
		managers = 1, port = 4000,
		start_manager = function(node, lab)
			node:write("conf/who", node.role .. " " .. node.name .. " " .. node.address .. " of " .. #lab.servers .. " " .. lab.layout)
		end,
		format = function(node) node:run { "sh", "-c", "dd if=/dev/zero of=\"$0\" bs=4096 count=1 2>&1", node.storage } end,
		start_server = function(node, lab)
			assert(node:try { "false" } == nil)
			assert(select(2, node:try { "sh", "-c", "echo first; echo last; exit 3" }):find("ended with 3: last", 1, true))
			assert(node:run({ "sh", "-c", "echo $A" }, { env = { A = "b" } }) == "b\n")
			assert(node:read("/nonexistent") == nil)
			node:spawn("server", { "sh", "-c", "echo begun $A; exec sleep $1", "sh", "100000" }, { env = { A = "here" } })
			node:wait(20, "the server", function()
				local text, why = node:read(node.dir .. "/log/server.log")
				return text and text:find("begun here", 1, true), why
			end)
			for _, call in ipairs { "setpgrp(0, 0)", "POSIX::setsid() > 0" } do
				node:spawn("daemon" .. #call, { "perl", "-MPOSIX", "-e", call .. " or die $!; $| = 1; print qq(leads\\n); sleep 1000" })
				node:wait(20, call, function() return (node:read(node.dir .. "/log/daemon" .. #call .. ".log") or ""):find("leads", 1, true) ~= nil end)
			end
		end,
		ready = function(node, lab)
			if not node.seen then node.seen = true end
			return node:read("/proc/mounts"):find(" " .. node.mount .. " tmpfs", 1, true) ~= nil, "not mounted"
		end,' 'storage = "device",'
wire=(--no-offload --nic-queue 3ms --tcp-2009)
exits "a file system of a Lua file" 0 "tiny.lua, 2 servers" fs_up "./tiny.lua,size=64MiB" "${wire[@]}"
is "its path is absolute in the inventory" "$(sed -n 's/.*type = "\([^"]*\)".*/\1/p' "$dir/inventory.lua")" "$work/tiny.lua"
check "its settings are there" grep -q 'settings = "size=64 MiB"' "$dir/inventory.lua"
is "a manager is no host of the inventory" "$(grep -c 'name = "m1"' "$dir/inventory.lua")" 0
is "... but a node" "$(inside m1 cat /run/culprit/conf/who)" "manager m1 $net.2 of 2 plain"
check "storage is the raw device" grep -q 'storage = "/dev/loop[0-9]*p1", service_port = 4000' "$dir/inventory.lua"
is "the client has its mount" "$(inside c1 df --output=size -k /mnt/fs | tail -1 | tr -d ' ')" 65536
exits "status knows its processes" 0 'lab.* is up' status
exits "the same lab is up already" 0 'up already' fs_up "$work/tiny.lua,size=64MiB" "${wire[@]}"
exits "with other settings it is another" 2 'other options' fs_up ./tiny.lua
check "status shows the wire" grep -q 'its queue 3 ms; no offload; TCP recovers losses as in 2009' <(status)
ssh -F none -i "$dir/id_ed25519" -o IdentitiesOnly=yes -o BatchMode=yes -o "UserKnownHostsFile=$dir/known_hosts" "root@$net.31" head -c 2000000 /dev/zero >/dev/null
is "no packet is larger than a wire's" "$(inside c1 tc -s qdisc show dev eth0 | awk '/Sent/ { print ($2 > 2000000), ($2 / $4 <= 1514) }')" "1 1"
recovery() { (cd /proc/sys/net/ipv4 && cat tcp_early_retrans tcp_recovery tcp_frto) | tr '\n' ' '; }
is "nodes recover losses as in 2009" "$(inside s1 sh -c 'cd /proc/sys/net/ipv4 && cat tcp_early_retrans tcp_recovery tcp_frto' | tr '\n' ' ')" "0 0 0 "
check "... and this machine as before" [ "$(recovery)" != "0 0 0 " ]
inside s2 pkill sleep
exits "status says which server has no process" 3 's2 has no server process' status
down >/dev/null
check "nothing is left" clean

# --- doctor looks at the disks themselves: a mount and its statvfs outlive them
made "port = 4000,"
exits "servers with folders" 0 "tiny.lua, 2 servers" fs_up ./tiny.lua
doctor() { "$culprit" doctor --json --inventory "$dir/inventory.lua" |
	perl -MJSON::PP -0777 -ne 'print join(" ", map { $_ // "" } @$_{qw(where level what text)}), "\n" for @{ JSON::PP->new->decode($_)->{checks} }'; }
bad() { doctor | grep "^$1 bad storage /srv/storage, on /dev/loop[0-9]*p1, $2"; } # NODE WHY
check "doctor finds both storages" test "$(doctor | grep -c '^s[12] ok storage /srv/storage')" = 2
inside s2 mount -o remount,ro /srv/storage
check "a storage that became read-only is bad" bad s2 "is read-only"
inside s2 mount -o remount,rw /srv/storage
pid=$(pgrep -f "culprit lab disk --dir $dir --name s1( |$)")
kill -9 "$pid"
until_true 20 bash -c "! kill -0 $pid"
check "a folder without its disk is still mounted" inside s1 mountpoint -q /srv/storage
check "... and bad: its device cannot be read" bad s1 "cannot be read: .*Input/output error"
doctor >"$work/said"
check "... so that its file system is not said to be fine" lacks '^s1 ok file system' "$work/said"
check "... while the other's storage is" eval "doctor | grep '^s2 ok storage'"
exits "... and doctor ends with 3" 3 able "$culprit" doctor --json --inventory "$dir/inventory.lua"
down >/dev/null
check "nothing is left of them" clean

# --- mistakes: one line each, exit 2 before anything was made, 3 after
mistake() { # NAME CODE PATTERN LAB [FIELDS]
	made "$4" "${5-}"
	exits "$1" "$2" "$3" fs_up ./tiny.lua
}
mistake "an unknown key" 2 "tiny.lua:[0-9]*: lab: unknown key 'start_servers'.*start_server" 'start_servers = function() end,'
mistake "a function that is none" 2 "tiny.lua:[0-9]*: .*start_server" 'start_server = 5,'
mistake "a program that is missing" 2 "no 'nosuchprogram' here; try 'apt-get install nosuchpackage'" 'programs = { nosuchprogram = "nosuchpackage" },'
mistake "too many managers" 2 "tiny.lua:[0-9]*: .*managers" 'managers = 99,'
mistake "a layout without a summary" 2 "tiny.lua: lab.layouts: .summary. is missing" 'layouts = { { name = "a" } },'
mistake "no layout" 2 "tiny.lua:[0-9]*: lab.layouts" 'layouts = {},'
made "$client"
exits "an unknown setting" 2 "unknown key 'sice'" fs_up ./tiny.lua,sice=2
exits "a setting without a value" 2 "no KEY=VALUE" fs_up ./tiny.lua,size
exits "a layout for more servers" 2 "needs 3 servers" fs_up ./tiny.lua --layout wide
exits "an unknown layout" 2 "no 'wode'; did you mean 'wide'" fs_up ./tiny.lua --layout wode
exits "a file that is not there" 2 "cannot read the file system .*nofile.lua" fs_up ./nofile.lua
sed -i 's/lab = {/lap = {/' tiny.lua
exits "a file without 'lab'" 2 "tiny.lua:[0-9]*: .*unknown key 'lap'" fs_up ./tiny.lua
check "nothing is left of all these" clean
mistake "a command that fails, with the last line of its log" 3 "s[12]: .*ended with 1.*; its log: E: the reason" \
	'start_server = function(node) node:run({ "sh", "-c", "echo E: the reason >$0; echo later >>$0; exit 1", node.dir .. "/log/x" }, { log = node.dir .. "/log/x", complaint = "^E:" }) end,'
mistake "a program that cannot be started" 3 "cannot start 'nosuchprogram'" 'start_server = function(node) node:spawn("x", { "nosuchprogram" }) end,'
mistake "a wait that ends" 3 "the moon: not within 0.*: not yet" 'start_server = function(node) node:wait(0.1, "the moon", function() return nil, "not yet" end) end,'
mistake "an error of its own" 3 "s[12]: .*tiny.lua:[0-9]*: no luck" 'start_server = function(node) error("no luck") end,'
mistake "a file outside the node's folder" 3 "below the node's folder" 'start_server = function(node) node:write("../x", "") end,'
mistake "a mount that cannot hold a file" 3 "c1: cannot write" 'start_client = function(node) node:run { "mount", "-t", "tmpfs", "-o", "ro", "tiny", node.mount } end,'

# --- a program that has ended is not waited for: each of these would take 1000 s, beyond what a step may take
server_says() { # WORDS: a server that runs these, and is waited for
	echo "start_server = function(node) node:spawn('server', { 'sh', '-c', [[$1]] }) node:wait(1000, 'the server', function() end) end,"
}
mistake "a server that fails: its exit code, and the end of its log" 3 \
	"s[12]: .*the server: 'server' ended with exit code 3; log/s[12]/server.log ends with: 3|4|5|6|why (logs: '$dir/log'" \
	"$(server_says 'seq 6; echo why; exit 3')"
check "... only logs are left" only_logs
check "... the whole log is among them" grep -qx 1 "$dir"/log/s[12]/server.log
exits "... as status says" 3 "the last 'up' failed, and only its logs are left" status
mistake "a server that is killed: by which signal" 3 "'server' was killed by signal 11 (SEGV); log/s[12]/server.log is empty" \
	"$(server_says 'kill -SEGV $$')"
mistake "a server in the background that does not come: the end of its log" 3 \
	"the server: not within 3.*; 'server' ended with exit code 0; log/s[12]/server.log ends with: gone" \
	"$(server_says 'echo gone' | sed 's/1000/3/')"
shared=$(mktemp -d -p /var/cache) # nodes have a /tmp of their own
mistake "a server that fails while clients wait" 3 "^culprit lab up: s[12]: 'server' ended with exit code 5; log/s[12]/server.log ends with: bye" \
	"start_server = function(node) node:spawn('server', { 'sh', '-c', 'until [ -e $shared/waits ]; do sleep 0.1; done; echo bye; exit 5' }) end,
	start_client = function(node) node:run { 'touch', '$shared/waits' } node:wait(1000, 'the moon', function() end) end,"
mistake "a client that fails while it is asked whether it is ready" 3 "c1: 'client' ended with exit code 6" \
	"start_client = function(node) node:spawn('client', { 'sh', '-c', 'exit 6' }) end, ready = function() end,"
made ""
printf '#!/bin/sh\necho no keys >/run/culprit/log/sshd.log\nexit 7\n' >sshd && chmod 755 sshd
exits "an sshd that does not start" 3 "'sshd' ended with exit code 7; log/[sco][12]/sshd.log ends with: no keys" unshare -m bash -c \
	'mount --bind sshd /usr/sbin/sshd && exec "$@"' - "$culprit" lab up --dir "$dir" --subnet "$subnet" --servers 2 --clients 1 --fs ./tiny.lua
check "only logs are left of all these, too" only_logs
rm -r "$shared"
exits "down removes them" 0 'the lab is down' down
check "... and nothing is left" clean
cd / && rm -rf "$work"
done_testing
