-- OrangeFS, PVFS's successor: every server runs pvfs2-server, every client pvfs2fuse (or, with the kernel's
-- client, pvfs2-client-core). Tests: harness/fs/orangefs.md.

local function program(p)
	return (p.cmdline[1] or ""):match("[^/]*$")
end

-- ---- command lines ----

-- pvfs2-server [-d] [-f] [-p FILE] [-a ALIAS] CONFIG: in any order; short options may be combined.
local function server_words(p)
	local alias, config, i = nil, nil, 2
	while i <= #p.cmdline do
		local word = p.cmdline[i]
		local name, value = word:match("^%-%-(%a+)=?(.*)$")
		local letter, rest = word:match("^%-[dfhrve]*([pa])(.*)$")
		if name == "alias" or name == "pidfile" or letter then
			value = letter and rest or value
			if value == "" then
				i = i + 1
				value = p.cmdline[i]
			end
			if name == "alias" or letter == "a" then alias = value end
		elseif word:sub(1, 1) ~= "-" then
			config = config or word
		end
		i = i + 1
	end
	return alias, config
end

-- ---- config files ----

-- The words of a line: quotes and backslashes escape, '#' begins a comment.
local function words(line)
	local list, word, quote, i = {}, nil, nil, 1
	while i <= #line do
		local c = line:sub(i, i)
		if c == quote then
			quote = nil
		elseif not quote and (c == '"' or c == "'") then
			quote, word = c, word or ""
		elseif c == "\\" then
			i = i + 1
			word = (word or "") .. line:sub(i, i)
		elseif not quote and c == "#" then
			break
		elseif not quote and c:match("%s") then
			list[#list + 1], word = word, nil
		else
			word = (word or "") .. c
		end
		i = i + 1
	end
	list[#list + 1] = word
	return list
end

-- A config's data about the server 'alias': its storage folders, its address, and the names of the
-- collections that have a handle range on it. Keywords are case-insensitive; ServerOptions override Defaults.
local function server_config(text, alias)
	local defaults, own, block, names = {}, {}, {}, {}
	local collection = {}
	local address, server
	for line in text:gsub("\\\r?\n", " "):gmatch("[^\r\n]+") do
		local list = words(line)
		local key, value = (list[1] or ""):lower(), list[2]
		if key:sub(1, 2) == "</" then
			local ended = table.remove(block)
			if ended == "serveroptions" then server = nil end
		elseif key:sub(1, 1) == "<" then
			block[#block + 1] = key:match("^<(%w+)")
			if block[#block] == "filesystem" then collection = {} end
		elseif value then
			local where = block[#block]
			if where == "aliases" and key == "alias" and value == alias then
				address = list[3]
			elseif where == "serveroptions" and key == "server" then
				server = value
			elseif where == "defaults" then
				defaults[key] = value
			elseif where == "serveroptions" and server == alias then
				own[key] = value
			elseif where == "filesystem" and key == "name" then
				collection.name = value
			elseif key == "range" and value == alias and not collection.ours then
				collection.ours = true
				names[#names + 1] = collection
			end
		end
	end
	local data = own.datastoragespace or own.storagespace or defaults.datastoragespace or defaults.storagespace
	return { storage = data, address = address, collections = names }
end

-- The port of the TCP address in "tcp://host:3334,ib://host:3335".
local function tcp_port(address)
	return tonumber((address or ""):match("tcp://[^,]*:(%d+)") or "")
end

-- One entry per collection of the server; collections share its storage and port.
local function server(p, run)
	local alias, file = server_words(p)
	alias = alias or (run { "hostname" } or ""):match("%S+")
	if not file then return { { pid = p.pid, how = "command line without a config file" } } end
	local path = file:sub(1, 1) == "/" and file or ("/proc/%d/cwd/%s"):format(p.pid, file)
	local text = run { "cat", path }
	if not text then return { { pid = p.pid, how = "config file " .. file .. ", which cannot be read" } } end
	local config, found = server_config(text, alias), {}
	for _, collection in ipairs(#config.collections > 0 and config.collections or { {} }) do
		found[#found + 1] = {
			pid = p.pid, volume = collection.name, storage = config.storage, service_port = tcp_port(config.address),
			how = ("config file %s, alias %s"):format(file, alias),
		}
	end
	return found
end

-- ---- mounts ----

local function unescape(text) -- a field of /proc/mounts
	return (text:gsub("\\(%d%d%d)", function(octal) return string.char(tonumber(octal, 8)) end))
end

-- The source "tcp://host:port/collection" of an OrangeFS mount, otherwise nil. FUSE has type "fuse" and puts
-- the program before the source; later versions have a separate type; the kernel's client is "orangefs",
-- before Linux 4.6 "pvfs2".
local function orangefs_source(source, kind)
	local spec = source:match("^pvfs2fuse#(.*)$")
	if kind == "fuse" or kind == "fuse.pvfs2fuse" then return spec or kind ~= "fuse" and source or nil end
	return (kind == "orangefs" or kind == "pvfs2") and source or nil
end

local function without_slash(path)
	return #path > 1 and path:gsub("/+$", "") or path
end

-- pvfs2fuse processes that name the mount point, or the kernel client's daemon, which serves all mounts.
local function client_pids(mount, processes)
	local fuse, kernel = {}, {}
	for _, p in ipairs(processes) do
		if program(p) == "pvfs2fuse" then
			for i = 2, #p.cmdline do
				if without_slash(p.cmdline[i]) == mount then
					fuse[#fuse + 1] = p.pid
					break
				end
			end
		elseif program(p) == "pvfs2-client-core" then
			kernel[#kernel + 1] = p.pid
		end
	end
	return #fuse > 0 and fuse or kernel
end

local function mounts(processes, run)
	local found = {}
	for line in (run { "cat", "/proc/mounts" } or ""):gmatch("[^\n]+") do
		local source, point, kind = line:match("^(%S+) (%S+) (%S+)")
		local spec = source and orangefs_source(unescape(source), kind)
		if spec then
			local mount = { mount = unescape(point), source = spec, volume = spec:match("/([^/]+)$"), how = "/proc/mounts" }
			mount.pid = client_pids(mount.mount, processes)[1]
			found[#found + 1] = mount
		end
	end
	return found
end

-- ---- the lab ----

local PORT = 3334

-- The handles of each kind of object are divided among the servers.
local function ranges(lab, name, first)
	local lines, size = {}, 1 << 32
	for i, s in ipairs(lab.servers) do
		local from = first + (i - 1) * size
		lines[#lines + 1] = ("\t\t\tRange %s %d-%d"):format(s.name, from, from + size - 1)
	end
	return ("\t\t<%s>\n%s\n\t\t</%s>\n"):format(name, table.concat(lines, "\n"), name)
end

-- Timeouts: a request is abandoned after 'timeout' and repeated once. On a disk shared with a hog, single
-- requests take longer than 5 s, and a server that abandons one leaves the client's connection unusable.
-- DBMaxSize: an LMDB file has this size from the start, without occupying the space.
local CONFIG = [[
<Defaults>
	LogFile %s/log/orangefs.log
	LogStamp datetime
	EventLogging none
	BMIModules bmi_tcp
	FlowModules flowproto_multiqueue
	DataStorageSpace %s/data
	MetadataStorageSpace %s/meta
	ServerJobBMITimeoutSecs %d
	ServerJobFlowTimeoutSecs %d
	ClientJobBMITimeoutSecs %d
	ClientJobFlowTimeoutSecs %d
	TroveMaxConcurrentIO %d
	ClientRetryLimit 1
	ClientRetryDelayMilliSecs 500
	PrecreateBatchSize 0,128,128,128,32,128,0
	PrecreateLowThreshold 0,32,32,32,16,32,0
	<Security>
		TurnOffTimeouts yes
	</Security>
</Defaults>
<Aliases>
%s
</Aliases>
<FileSystem>
	Name lab
	ID 20091
	RootHandle 1048576
	FileStuffing yes
	FlowBufferSizeBytes %d
%s%s	<Distribution>
		Name simple_stripe
		Param strip_size
		Value %d
	</Distribution>
	<StorageHints>
		TroveMethod %s
		TroveSyncMeta yes
		TroveSyncData no
		DBMaxSize 67108864
	</StorageHints>
</FileSystem>
]]

local METHODS = { directio = true, ["alt-aio"] = true }

local function config(node, lab, storage)
	local params, aliases = lab.params, {}
	if not METHODS[params.method] then
		error(("method '%s': use directio or alt-aio"):format(params.method), 0)
	end
	for i, s in ipairs(lab.servers) do aliases[i] = ("\tAlias %s tcp://%s:%d"):format(s.name, s.address, PORT) end
	local t = params.timeout
	return CONFIG:format(node.dir, storage, storage, t, t, t, t, params.disk_calls, table.concat(aliases, "\n"), params.flow_buffer,
	                     ranges(lab, "MetaHandleRanges", 3), ranges(lab, "DataHandleRanges", 1 << 62),
	                     params.strip, params.method)
end

local function succeeds(node, argv)
	local output, reason = node:try(argv)
	return output and true or nil, reason
end

---@type culprit.FileSystem
return {
	summary = "OrangeFS, PVFS's successor (FUSE clients)",

	discover = function(host, processes, run)
		if host.role ~= "server" then return mounts(processes, run) end
		local found = {}
		for _, p in ipairs(processes) do
			if program(p) == "pvfs2-server" then
				for _, one in ipairs(server(p, run)) do found[#found + 1] = one end
			end
		end
		return found
	end,

	-- A host may run several servers: choose those whose alias is the host's name, otherwise all.
	server_pids = function(host, processes)
		local all, mine = {}, {}
		for _, p in ipairs(processes) do
			if program(p) == "pvfs2-server" then
				all[#all + 1] = p.pid
				if server_words(p) == host.name then mine[#mine + 1] = p.pid end
			end
		end
		return #mine > 0 and mine or all
	end,

	client_pids = function(host, processes)
		return client_pids(without_slash(host.mount), processes)
	end,

	-- A file of 64 strips has strips on each of up to 64 servers, unless the collection's DefaultNumDFiles
	-- limits it. Reading waits for the disk.
	probe = function(host)
		return { "sh", "-c", [[set -e
			d=$(mktemp -d "$1/.culprit-probe.XXXXXX")
			trap 'rm -rf "$d"' EXIT
			dd if=/dev/zero of="$d/a" bs=64k count=64 2>&1
			dd if="$d/a" of=/dev/null bs=64k 2>&1
			]], "sh", host.mount, host.name }
	end,

	-- Needs the mount in a pvfs2tab on the client.
	health = function(host)
		return host.role == "client" and { "pvfs2-ping", "-m", host.mount } or nil
	end,

	service = function(host) return host.address, host.service_port end,

	-- Tested with 2.10, TroveMethod directio and alt-aio, pvfs2fuse, timeouts of 5 s and one retry. Killed: calls
	-- fail with ECONNREFUSED within a second, with EPIPE or ECONNRESET if they were in progress. Stopped: a call
	-- waits 10 to 15 s, until the client has abandoned it twice, then fails with EPERM (the error for "cancelled"
	-- has no errno). The others did not occur; the kernel may return them for a connection.
	lost_errnos = { "ECONNREFUSED", "EPIPE", "ECONNRESET", "EPERM", "ECONNABORTED", "ENOTCONN", "ETIMEDOUT",
	                "EHOSTUNREACH", "ENETUNREACH" },

	-- Tested in the same way: ENOSPC, EMFILE and EROFS of a small write reach the application unchanged. In a
	-- transfer (more than the 16 KiB of one request) they do not: with directio the call waits, as for a
	-- stopped server; with alt-aio it succeeds, and the data is lost.
	errno_map = {},

	cannot = {
		["hot-file"] = "every file is on all servers",
		["err-vmsize"] = "a running pvfs2-server needs no further memory; one started under the limit does not serve",
	},

	-- Metadata (LMDB) may be next to the data, in STORAGE, STORAGE/meta or elsewhere; a server does not start
	-- without it. Its files are sparse. Data files are created at their first write.
	empty_storage = { keep = { "*.db/*", "*/*.db/*", "*/*/*.db/*" } },

	missing = { "hard link" },

	-- BMI over TCP: magic number, mode, tag and payload size, little-endian. A request is an unexpected message
	-- (mode 2); its answer and the data of its flow have the same tag (eager 4, rendezvous 8). The operation is
	-- the first word of the encoded request, after a header of 8 bytes: receivers read BMI's header with a
	-- separate call, so the next call begins with that word.
	messages = {
		length    = { offset = 16, size = 8, add = 24 },
		longest   = "64MiB",
		id        = { offset = 8, size = 8 },
		kind      = { offset = 4, size = 4, call = 2, answer = { 4, 8 } },
		check     = { offset = 0, size = 4, value = 51903 },
		procedure = { offset = 32, size = 4 },
		several   = true,
		names     = {
			"CREATE", "REMOVE", "IO", "GETATTR", "SETATTR", "LOOKUP_PATH", "CRDIRENT", "RMDIRENT",
			"CHDIRENT", "TRUNCATE", "MKDIR", "READDIR", "GETCONFIG", "WRITE_COMPLETION", "FLUSH",
			"MGMT_SETPARAM", "MGMT_NOOP", "STATFS", "PERF_UPDATE", "MGMT_PERF_MON",
			"MGMT_ITERATE_HANDLES", "MGMT_DSPACE_INFO_LIST", "MGMT_EVENT_MON", "MGMT_REMOVE_OBJECT",
			"MGMT_REMOVE_DIRENT", "MGMT_GET_DIRDATA_HANDLE", "JOB_TIMER", "PROTO_ERROR", "GETEATTR",
			"SETEATTR", "DELEATTR", "LISTEATTR", "SMALL_IO", "LISTATTR", "BATCH_CREATE",
			"BATCH_REMOVE", "PRECREATE_POOL_REFILLER", "UNSTUFF", "MIRROR", "IMM_COPIES",
			"TREE_REMOVE", "TREE_GET_FILE_SIZE", "MGMT_GET_UID", "TREE_SETATTR", "MGMT_GET_DIRENT",
			"MGMT_CREATE_ROOT_DIR", "MGMT_SPLIT_DIRENT", "ATOMICEATTR", "TREE_GETATTR",
			"MGMT_GET_USER_CERT", "MGMT_GET_USER_CERT_KEYREQ",
		},
	},

	-- A request or response is one message of at most 16 KiB after BMI's header, including the data of a small read
	-- or write. Larger data is a flow, which BMI sends in rendezvous mode (8).
	bulk = { above = "16408B", header = 24, kind = 8 },

	-- The layers of Dinh 2009: REQ, requests from the receipt of the first message to the send of the last; BMI,
	-- messages from the sender's call to the receiver's; Flow, like REQ for requests with separate data; Trove,
	-- calls on the data's files.
	layers = {
		{ name = "BMI",   from = "wire" },
		{ name = "Flow",  from = "data" },
		{ name = "Trove", from = "disk" },
		{ name = "REQ",   from = "request" },
	},

	lab = {
		programs = {
			["pvfs2-server"] = "OrangeFS, which ci/orangefs.sh builds",
			["pvfs2-check-server"] = "OrangeFS, which ci/orangefs.sh builds",
			["pvfs2fuse"] = "OrangeFS, which ci/orangefs.sh builds",
		},
		path    = { "/opt/orangefs/sbin", "/opt/orangefs/bin" },
		layouts = { { name = "stripe", summary = "every file is striped over all servers" } },
		params  = {
			method      = { default = "directio", help = "how servers use their disks: directio, or alt-aio (page cache)" },
			strip       = { default = "64KiB", unit = "bytes", min = "4KiB", max = "64MiB", integer = true,
			                help = "bytes on one server before the next server" },
			flow_buffer = { default = "256KiB", unit = "bytes", min = "64KiB", max = "64MiB", integer = true,
			                help = "largest piece of a transfer" },
			disk_calls  = { default = 16, unit = "number", min = 1, max = 1000, integer = true,
			                help = "concurrent data calls of a server; further calls wait inside it, invisible to tracers" },
			timeout     = { default = "30s", unit = "seconds", min = "1s", max = "1h", integer = true,
			                help = "time after which clients and servers abandon a request" },
		},
		port    = PORT,

		format = function(node, lab)
			local file = node:write("orangefs.conf", config(node, lab, node.storage))
			node:run { "pvfs2-server", "-f", file, "-a", node.name }
		end,

		-- SIGXFSZ is ignored, so that a write beyond RLIMIT_FSIZE fails instead of killing the
		-- server.
		start_server = function(node)
			node:spawn("server", { "env", "--ignore-signal=XFSZ", "pvfs2-server", "-d", node.dir .. "/orangefs.conf",
			                       "-a", node.name })
			node:wait(20, "pvfs2-server to answer", function()
				return succeeds(node, { "pvfs2-check-server", "-h", node.address, "-f", "lab", "-n", "tcp", "-p",
				                        tostring(PORT) })
			end)
		end,

		start_client = function(node, lab)
			local s = lab.servers[(node.number - 1) % #lab.servers + 1]
			local spec = ("fs_spec=tcp://%s:%d/lab"):format(s.address, PORT)
			node:spawn("client", { "pvfs2fuse", node.mount, "-f", "-o", spec })
		end,

		-- statfs asks every server. A new root folder answers EACCES for up to a second.
		ready = function(node)
			local text = node:read("/proc/mounts") or ""
			if not text:find(" " .. node.mount .. " fuse", 1, true) then return nil, "not mounted" end
			local folder = ("%s/.ready-%s"):format(node.mount, node.name)
			for _, argv in ipairs { { "stat", "-f", node.mount }, { "mkdir", folder }, { "rmdir", folder } } do
				local output, reason = node:try(argv)
				if not output then return nil, reason end
			end
			return true
		end,
	},
}
