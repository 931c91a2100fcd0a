-- Ceph: BlueStore OSDs on raw devices are the servers, ceph-fuse mounts of CephFS the clients. Tests:
-- ceph.md.

local function program(p)
	return (p.cmdline[1] or ""):match("[^/]*$")
end

-- The value of an option: '--name value', '--name=value' or '-n value'.
local function option(p, long, short)
	for i, word in ipairs(p.cmdline) do
		if word == long or word == short then return p.cmdline[i + 1] end
		if word:sub(1, #long + 1) == long .. "=" then return word:sub(#long + 2) end
	end
end

-- The number of an OSD as text, or nil. systemd runs 'ceph-osd -f --cluster ceph --id 3'; container packages
-- use '-n osd.3'.
local function osd_id(p)
	local name = option(p, "--name", "-n")
	return option(p, "--id", "-i") or name and name:match("^osd%.(%d+)$")
end

-- The OSD's folder, in which 'block' is a link to its device.
local function osd_folder(p)
	local id = osd_id(p)
	local cluster = option(p, "--cluster") or "ceph"
	return option(p, "--osd-data") or id and ("/var/lib/ceph/osd/%s-%s"):format(cluster, id)
end

local function osd(p, run)
	local found = { pid = p.pid, how = "command line" }
	local folder = osd_folder(p)
	local block = folder and folder .. "/block"
	if block and run { "readlink", "-e", block } ~= "" then
		found.storage, found.how = block, "command line, " .. block
	end
	return found
end

local function unescape(text) -- a field of /proc/mounts
	return (text:gsub("\\(%d%d%d)", function(octal) return string.char(tonumber(octal, 8)) end))
end

local function mounted_by(p, mount)
	if program(p) ~= "ceph-fuse" then return false end
	for i = 2, #p.cmdline do
		if p.cmdline[i] == mount then return true end
	end
	return false
end

-- Reads one block of each of 256 objects of an empty file, bypassing the client's cache. CRUSH spreads the
-- objects over the OSDs: an OSD gets no object with a probability of 2e-11 with ten OSDs and 0.5 % with thirty.
-- The objects do not exist: the OSDs answer from memory, and their disks are not written.
local PROBE = [[
import mmap, os, sys
path = "%s/.culprit-probe.%s.%d" % (sys.argv[1], sys.argv[2], os.getpid())
unit = 65536
fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_DIRECT, 0o600)
try:
    os.setxattr(fd, "ceph.file.layout", b"stripe_unit=%d stripe_count=1 object_size=%d" % (unit, unit))
    os.ftruncate(fd, 256 * unit)
    block = mmap.mmap(-1, 4096)
    for i in range(256):
        os.preadv(fd, [block], i * unit)
finally:
    os.unlink(path)
]]

local LAYOUT = [[
import os, sys
unit = int(sys.argv[2])
os.setxattr(sys.argv[1], "ceph.dir.layout", b"stripe_unit=%d stripe_count=1 object_size=%d" % (unit, unit))
]]

-- The lab. Manager m1 runs a monitor, an MDS, and osd.0 for metadata with its store in memory. Server N runs
-- osd.N. No node runs ceph-mgr, so data is never rebalanced.

local function folder(kind, id)
	return ("/var/lib/ceph/%s/ceph-%s"):format(kind, id)
end

local function uuid(number)
	return ("c0ffee00-0000-4000-8000-%012d"):format(number)
end

-- Defaults except for the two sizes: a write-ahead log of 256 MB would not fit into its file.
local ROCKSDB = "compression=kNoCompression,max_write_buffer_number=4,min_write_buffer_number_to_merge=1,"
	.. "recycle_log_file_num=4,writable_file_max_buffer_size=0,write_buffer_size=16777216,max_total_wal_size=67108864"

-- The OSD does not read ahead, cache objects or write them twice, so each request reaches the disk once.
local function conf(lab)
	return ([[
[global]
fsid = %s
mon_host = [v2:%s:3300]
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_bind_msgr1 = false
ms_async_op_threads = 1
run_dir = /run/culprit
admin_socket =
crash_dir =
log_to_file = false
log_to_stderr = true
err_to_stderr = true
debug_rocksdb = 0
mon_cluster_log_to_file = false
mon_cluster_log_to_stderr = false
osd_pool_default_size = 1
osd_pool_default_pg_autoscale_mode = off
[mon]
paxos_propose_interval = 0.01
paxos_min_wait = 0.01
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
mon_data_avail_warn = 1
mon_data_avail_crit = 1
[osd]
osd_crush_update_on_start = false
osd_objectstore = bluestore
osd_op_num_shards = 2
osd_op_num_threads_per_shard = 2
bluestore_cache_autotune = false
bluestore_cache_size = 16M
bluestore_default_buffered_read = false
bluefs_buffered_io = false
bluestore_prefer_deferred_size = 0
bluestore_prefer_deferred_size_hdd = 0
bluestore_block_db_create = true
bluestore_block_db_size = 1G
bluestore_rocksdb_options = %s
[osd.0]
osd_objectstore = memstore
memstore_device_bytes = 256M
[client]
fuse_disable_pagecache = true
client_oc_size = 32M
]]):format(uuid(0), lab.managers[1].address, ROCKSDB)
end

-- Placement groups: a power of two, at least 16 per server, so that the servers' counts differ by at most
-- one.
local function groups(lab)
	local n = 16
	while n < 16 * #lab.servers do n = n * 2 end
	return n
end

-- All of the monitor's commands in one session of 'ceph': each start of it takes a third of a second.
local function commands(lab)
	local list = { "osd set noout", "osd set noscrub", "osd set nodeep-scrub", "osd set nodown",
	               "osd new " .. uuid(0), "osd crush add osd.0 1 root=metadata host=m1",
	               "osd crush rule create-replicated metadata metadata osd",
	               "osd set-require-min-compat-client luminous" }
	local function add(...) list[#list + 1] = (...):format(select(2, ...)) end
	for _, server in ipairs(lab.servers) do
		add("osd new %s", uuid(server.number))
		add("osd crush add osd.%d 1 root=data host=%s", server.number, server.name)
	end
	add("osd crush rule create-replicated data data osd")
	add("osd pool create metadata 8 8 replicated metadata")
	add("osd pool create data %d %d replicated data", groups(lab), groups(lab))
	for i = 0, groups(lab) - 1 do
		add("osd pg-upmap 2.%x %d", i, lab.servers[i % #lab.servers + 1].number)
	end
	add("fs new lab metadata data")
	return table.concat(list, "\n") .. "\n"
end

-- Starts a daemon in the foreground, with its usual command line.
local function daemon(node, lab, kind, id)
	local path = node:write("ceph.conf", conf(lab))
	local argv = { "ceph-" .. kind, "-f", "-c", path, "--id", id }
	if kind ~= "mon" then argv[#argv + 1] = "--public-addr" argv[#argv + 1] = node.address end
	node:spawn(kind, argv)
end

-- Waits until the daemon's log contains the text.
local function await(node, log, text)
	node:wait(60, ("'%s' in %s.log"):format(text, log), function()
		return (node:read(("%s/log/%s.log"):format(node.dir, log)) or ""):find(text, 1, true) ~= nil
	end)
end

local function format_osd(node, lab)
	local path = folder("osd", node.number)
	node:run { "mkdir", "-p", path }
	node:run { "ln", "-s", node.storage, path .. "/block" }
	node:run { "ceph-osd", "-c", node:write("ceph.conf", conf(lab)), "--id", tostring(node.number), "--mkfs",
	           "--osd-uuid", uuid(node.number) }
end

local function start_osd(node, lab)
	daemon(node, lab, "osd", tostring(node.number))
	await(node, "osd", "state: booting -> active")
end

local function start_manager(node, lab)
	local path, map = node:write("ceph.conf", conf(lab)), node.dir .. "/monmap"
	local script = node:write("commands", commands(lab))
	for kind, id in pairs { mon = "a", osd = "0", mds = "a" } do node:run { "mkdir", "-p", folder(kind, id) } end
	node:run { "monmaptool", "--create", "--fsid", uuid(0), "--addv", "a", ("[v2:%s:3300]"):format(node.address),
	           map }
	node:run { "ceph-mon", "-c", path, "--id", "a", "--mkfs", "--monmap", map }
	daemon(node, lab, "mon", "a")
	local said = node:run({ "sh", "-c", 'exec ceph -c "$1" <"$2" 2>&1', "sh", path, script }, { timeout = 60 })
	local complaint = said:match("Error [^\n]*")
	if complaint then error(("ceph on %s: %s"):format(node.name, complaint), 0) end
	node:run { "ceph-osd", "-c", path, "--id", "0", "--mkfs", "--osd-uuid", uuid(0) }
	daemon(node, lab, "osd", "0")
	daemon(node, lab, "mds", "a")
	await(node, "mds", "up:creating --> up:active")
end

local function start_client(node, lab)
	node:spawn("client", { "ceph-fuse", "-f", "-c", node:write("ceph.conf", conf(lab)), "--id", "admin", node.mount })
	node:wait(60, "the mount on " .. node.mount, function()
		return (node:read("/proc/mounts") or ""):find((" %s fuse.ceph-fuse "):format(node.mount), 1, true) ~= nil
	end)
	node:run { "python3", "-c", LAYOUT, node.mount, ("%d"):format(lab.params.object) }
end

local function probe(host)
	return { "python3", "-c", PROBE, host.mount, host.name }
end

---@type culprit.FileSystem
return {
	summary = "Ceph (BlueStore OSDs, CephFS by ceph-fuse)",
	storage = "device",

	-- The OSDs or mounts on the host. A server's storage is the link 'block' in its OSD's folder: the link leads
	-- to the device, and its path names the OSD.
	discover = function(host, processes, run)
		local found = {}
		if host.role == "server" then
			for _, p in ipairs(processes) do
				if program(p) == "ceph-osd" then found[#found + 1] = osd(p, run) end
			end
			return found
		end
		for line in (run { "cat", "/proc/mounts" } or ""):gmatch("[^\n]+") do
			local source, point, kind = line:match("^(%S+) (%S+) (%S+)")
			local mount = { mount = unescape(point or ""), source = unescape(source or ""), how = "/proc/mounts" }
			if kind == "fuse.ceph-fuse" then
				for _, p in ipairs(processes) do
					if mounted_by(p, mount.mount) then mount.pid = p.pid end
				end
				found[#found + 1] = mount
			elseif kind == "ceph" then
				mount.how = "/proc/mounts; mounted by the kernel, which has no process to trace"
				found[#found + 1] = mount
			end
		end
		return found
	end,

	-- The OSD whose folder contains the storage, otherwise all OSDs of the host.
	server_pids = function(host, processes)
		local all, mine = {}, {}
		for _, p in ipairs(processes) do
			if program(p) == "ceph-osd" then
				all[#all + 1] = p.pid
				if host.storage == (osd_folder(p) or "") .. "/block" then mine[#mine + 1] = p.pid end
			end
		end
		return #mine > 0 and mine or all
	end,

	client_pids = function(host, processes)
		local pids = {}
		for _, p in ipairs(processes) do
			if mounted_by(p, host.mount) then pids[#pids + 1] = p.pid end
		end
		return pids
	end,

	probe = probe,

	-- Where /etc/ceph has ceph.conf and a key, as it has on most hosts with an OSD.
	health = function(host)
		return host.role == "server" and { "ceph", "--connect-timeout", "4", "health" } or nil
	end,

	-- An OSD takes free ports from 6800 up, different ones after each restart.
	service = function(host) return host.address end,

	-- Tested with one OSD killed by SIGKILL, stopped, and out of descriptors: an application's call waits until
	-- the OSD is back, however long that takes.
	lost_errnos = {},
	errno_map = {},

	empty_storage = "an OSD does not start without the identity and index on its device",
	cannot = {
		["err-fsize"] = "an OSD writes to a device, to which RLIMIT_FSIZE does not apply",
		["err-remount"] = "an OSD's device has no file system that could become read-only",
	},

	lab = {
		programs = { ["ceph-mon"] = "ceph-mon", ["ceph-osd"] = "ceph-osd", ["ceph-mds"] = "ceph-mds",
		             ["ceph-fuse"] = "ceph-fuse", ceph = "ceph-common", monmaptool = "ceph-base", python3 = "python3" },
		layouts = { { name = "objects", summary = "every file is split into objects, each on one server" } },
		params = {
			object = { default = "1MiB", unit = "bytes", min = "64KiB", max = "64MiB", integer = true,
			           help = "bytes of a file in one object; a multiple of 64 KiB" },
		},
		managers = 1,
		start_manager = start_manager,
		format = format_osd,
		start_server = start_osd,
		start_client = start_client,
		ready = function(node)
			local output, why = node:try(probe(node), { timeout = 20 })
			return output and true or nil, why
		end,
	},
}
