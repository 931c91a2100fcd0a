-- MooseFS: chunkservers keep data and are the servers; the master keeps metadata and is not in the inventory;
-- clients run mfsmount. Tests: harness/fs/moosefs.md.

-- mfsmount overwrites its command line with "mfsmount (mounted on: /mnt/fs)", so programs are identified by
-- comm.
local function has_word(p, word)
	for _, w in ipairs(p.cmdline) do
		if w == word then return true end
	end
	return false
end

-- "KEY = VALUE" of a configuration file.
local function setting(text, key)
	return (text or ""):match("^%s*" .. key .. "%s*=%s*(%S+)") or (text or ""):match("\n%s*" .. key .. "%s*=%s*(%S+)")
end

-- The file given with -c, and the mfshdd.cfg that it names. A chunkserver may have several storage folders:
-- then the inventory must give one.
local function chunkserver(p, run)
	local file = "/etc/mfs/mfschunkserver.cfg"
	for i, word in ipairs(p.cmdline) do
		if word == "-c" then file = p.cmdline[i + 1] or file end
	end
	local config = run { "cat", file }
	local disks = run { "cat", setting(config, "HDD_CONF_FILENAME") or "/etc/mfs/mfshdd.cfg" }
	local found = { pid = p.pid, service_port = tonumber(setting(config, "CSSERV_LISTEN_PORT") or 9422), how = file }
	local folders = {}
	for line in (disks or ""):gmatch("[^\n]+") do
		local folder = line:match("^%s*[*<>~]*(/%S+)")
		if folder then folders[#folders + 1] = folder end
	end
	if #folders == 1 then found.storage = folders[1] end
	return found
end

local function unescape(text) -- a field of /proc/mounts
	return (text:gsub("\\(%d%d%d)", function(octal) return string.char(tonumber(octal, 8)) end))
end

-- Calls fn(source, mount point) for each mount of MooseFS, whose source is "mfs#MASTER:PORT".
local function each_mount(text, fn)
	for source, point in (text or ""):gmatch("(%S+) (%S+) fuse[^\n]*") do
		if unescape(source):match("^mfs#") then fn(unescape(source), unescape(point)) end
	end
end

-- ---- the lab ----

local PORT = 9422

local MASTER = [[
WORKING_USER = root
WORKING_GROUP = root
DATA_PATH = %s
EXPORTS_FILENAME = %s
NICE_LEVEL = 0
ATIME_MODE = 4
]]

-- No background tests of chunks, and zeros are written: the disk gets exactly the clients' writes.
local CHUNKSERVER = [[
WORKING_USER = root
WORKING_GROUP = root
DATA_PATH = %s
HDD_CONF_FILENAME = %s
NICE_LEVEL = 0
HDD_TEST_SPEED = 0
HDD_REBALANCE_UTILIZATION = 0
HDD_LEAVE_SPACE_DEFAULT = 16MiB
HDD_SPARSIFY_ON_WRITE = 0
MASTER_HOST = %s
MASTER_RECONNECTION_DELAY = 1
CSSERV_LISTEN_PORT = %d
]]

local function listens(node, port)
	return (node:read("/proc/net/tcp") or ""):find(("00000000:%04X 00000000:0000 0A"):format(port), 1, true) ~= nil
end

---@type culprit.FileSystem
return {
	summary = "MooseFS (chunkservers, FUSE clients)",

	discover = function(host, processes, run)
		local found = {}
		if host.role == "server" then
			for _, p in ipairs(processes) do
				if p.comm == "mfschunkserver" then found[#found + 1] = chunkserver(p, run) end
			end
		else
			each_mount(run { "cat", "/proc/mounts" }, function(source, point)
				found[#found + 1] = { mount = point, source = source, how = "/proc/mounts" }
			end)
		end
		return found
	end,

	server_pids = function(_, processes)
		local pids = {}
		for _, p in ipairs(processes) do
			if p.comm == "mfschunkserver" then pids[#pids + 1] = p.pid end
		end
		return pids
	end,

	client_pids = function(host, processes)
		local pids = {}
		for _, p in ipairs(processes) do
			local title = table.concat(p.cmdline, " "):find("(mounted on: " .. host.mount .. ")", 1, true)
			if p.comm == "mfsmount" and (title or has_word(p, host.mount)) then pids[#pids + 1] = p.pid end
		end
		return pids
	end,

	-- Each new file has a separate chunk, on the chunkservers in turn.
	probe = function(host)
		return { "sh", "-c", [[set -e
			d=$(mktemp -d "$1/.culprit-probe.XXXXXX")
			trap 'rm -rf "$d"' EXIT
			for i in 0 1 2 3 4 5 6 7; do for k in 0 1 2 3 4 5 6 7; do echo x >"$d/$i$k"; done; done
			]], "sh", host.mount }
	end,

	service = function(host) return host.address, host.service_port end,

	-- Clients write back: the write succeeds, and fsync or close fails. EIO: no answer; ENXIO: no server has the
	-- chunk.
	lost_errnos = { "EIO", "ENXIO" },

	-- A failed write of a server becomes the loss of a chunk.
	errno_map = { EFBIG = { "ENXIO", "EIO" }, ENOSPC = { "ENXIO", "EIO", "ENOSPC" }, EROFS = { "ENXIO", "EIO" } },

	lab = {
		programs = { mfsmaster = "moosefs-master", mfschunkserver = "moosefs-chunkserver", mfsmount = "moosefs-client",
		             mfssetgoal = "moosefs-client" },
		path     = { "/usr/sbin" },
		layouts  = { { name = "chunks", summary = "files are split into chunks of 64 MiB, each on one server" } },
		params   = {
			goal    = { default = 1, min = 1, max = 9, integer = true, help = "copies of each chunk" },
			retries = { default = 3, min = 1, max = 1000, integer = true,
			            help = "attempts of a client before an error; MooseFS's default is 30, which takes minutes" },
		},
		managers = 1,
		port     = PORT,

		start_manager = function(node)
			local data = "/var/lib/mfs"
			node:run { "mkdir", "-p", data }
			node:write("exports.cfg", "* / rw,alldirs,maproot=0\n* . rw\n")
			-- The content of the package's metadata.mfs.empty, which this node may not see.
			node:run { "sh", "-c", 'printf "MFSM NEW" >"$1"', "sh", data .. "/metadata.mfs" }
			local file = node:write("mfsmaster.cfg", MASTER:format(data, node.dir .. "/exports.cfg"))
			node:spawn("master", { "mfsmaster", "-f", "-c", file, "start" })
			node:wait(20, "mfsmaster to listen", function() return listens(node, 9421) end)
		end,

		start_server = function(node, lab)
			local data = "/var/lib/mfs"
			node:run { "mkdir", "-p", data }
			node:write("mfshdd.cfg", node.storage .. "\n")
			local file = node:write("mfschunkserver.cfg",
			                        CHUNKSERVER:format(data, node.dir .. "/mfshdd.cfg", lab.managers[1].address, PORT))
			node:spawn("chunkserver", { "mfschunkserver", "-f", "-c", file, "start" })
			node:wait(20, "mfschunkserver to reach the master", function()
				return (node:read(node.dir .. "/log/chunkserver.log") or ""):find("connected to Master", 1, true) ~= nil
			end)
		end,

		start_client = function(node, lab)
			local options = ("mfsnice=0,mfscachemode=DIRECT,mfsioretries=%d"):format(lab.params.retries)
			node:spawn("client", { "mfsmount", "-f", "-H", lab.managers[1].address, "-o", options, node.mount })
			node:wait(20, "mfsmount to mount", function()
				local mounted = false
				each_mount(node:read("/proc/mounts"), function(_, point) mounted = mounted or point == node.mount end)
				return mounted
			end)
			if node.number == 1 then node:run { "mfssetgoal", tostring(lab.params.goal), node.mount } end
		end,

		-- Until the master knows the chunkservers' space, files can be created and closed, but writes fail.
		ready = function(node)
			local file = ("%s/.%s"):format(node.mount, node.name)
			local ok, why = node:try { "dd", "if=/dev/zero", "of=" .. file, "bs=4k", "count=1", "conv=fsync", "status=none" }
			node:try { "rm", "-f", file }
			return ok and true or nil, why
		end,
	},
}
