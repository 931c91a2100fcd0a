-- GlusterFS: servers run one glusterfsd process per brick, clients one glusterfs process per mount. Both are
-- the same executable; argv[0] distinguishes them.

local function program(p)
	return (p.cmdline[1] or ""):match("[^/]*$")
end

-- The value of a long option, as '--name value' or '--name=value'.
local function option(p, name)
	for i, word in ipairs(p.cmdline) do
		if word == name then return p.cmdline[i + 1] end
		if word:sub(1, #name + 1) == name .. "=" then return word:sub(#name + 2) end
	end
end

-- Ports on which process 'pid' listens, on any address: the inodes of its sockets, looked up in
-- /proc/PID/net.
local function listening(pid, run)
	local text = run { "sh", "-c", "ls -l /proc/$1/fd; cat /proc/$1/net/tcp /proc/$1/net/tcp6", "sh", tostring(pid) } or ""
	local mine, ports, seen = {}, {}, {}
	for inode in text:gmatch("socket:%[(%d+)%]") do mine[inode] = true end
	for port, inode in text:gmatch("%d+: %x+:(%x%x%x%x) %x+:0000 0A %x+:%x+ %x+:%x+ %x+ +%d+ +%d+ (%d+)") do
		port = tonumber(port, 16)
		if mine[inode] and not seen[port] then
			seen[port] = true
			ports[#ports + 1] = port
		end
	end
	return ports
end

-- If glusterd started the brick, its command line has all values. If it was started with -f FILE, the volume
-- file has them.
local function brick(p, run)
	local found = { pid = p.pid, storage = option(p, "--brick-name"), how = "command line" }
	local id, file = option(p, "--volfile-id"), option(p, "-f") or option(p, "--volfile")
	found.volume = id and id:match("^/?([^./]+)")
	found.service_port = tonumber(option(p, "--brick-port") or "")
	if file and not found.storage then
		local text = run { "cat", file } or ""
		found.how = "volume file " .. file
		found.storage = text:match("%f[%w]option%s+directory%s+(%S+)")
		found.service_port = tonumber(text:match("%f[%w]option%s+transport%.socket%.listen%-port%s+(%d+)") or "")
	end
	if not found.service_port then
		local ports = listening(p.pid, run)
		if #ports == 1 then found.service_port = ports[1] end
		found.how = found.how .. ", listening socket"
	end
	return found
end

local function unescape(text) -- a field of /proc/mounts
	return (text:gsub("\\(%d%d%d)", function(octal) return string.char(tonumber(octal, 8)) end))
end

-- The lab runs daemons from volume files, without glusterd.

local port = 24007

-- The graphs have no cache (read-ahead, io-cache, write-behind) and pass O_DIRECT on to the brick: the disk
-- gets the application's own requests, as with the direct I/O of Kasick et al. 2009.
local function brick_volume(node)
	return ([[
volume posix
  type storage/posix
  option directory %s
end-volume
volume locks
  type features/locks
  subvolumes posix
end-volume
volume threads
  type performance/io-threads
  option thread-count 16
  subvolumes locks
end-volume
volume brick
  type debug/io-stats
  subvolumes threads
end-volume
volume server
  type protocol/server
  option transport-type tcp
  option transport.socket.listen-port %d
  option transport.socket.nodelay on
  option auth.addr.brick.allow *
  subvolumes brick
end-volume
]]):format(node.storage, port)
end

local function client_volume(lab)
	local disperse = lab.layout == "disperse"
	local text, names = {}, {}
	local function add(...) text[#text + 1] = string.format(...) end
	for i, server in ipairs(lab.servers) do
		names[i] = server.name
		add("volume %s\n  type protocol/client\n  option transport-type tcp\n  option remote-host %s", server.name, server.address)
		add("  option remote-port %d\n  option remote-subvolume brick\n  option transport.socket.nodelay on\nend-volume", port)
	end
	add("volume files\n  type cluster/%s\n%s  subvolumes %s\nend-volume", lab.layout,
		disperse and "  option redundancy 1\n" or "", table.concat(names, " "))
	if not disperse then
		add("volume pieces\n  type features/shard\n  option shard-block-size 4MB\n  subvolumes files\nend-volume")
	end
	add("volume fs\n  type debug/io-stats\n  subvolumes %s\nend-volume\n", disperse and "files" or "pieces")
	return table.concat(text, "\n")
end

local complaint = "^%[.*%] [EC] %[" -- a line of GlusterFS's log with level error or critical

---@type culprit.FileSystem
return {
	summary = "GlusterFS (bricks, FUSE clients)",

	-- Returns the bricks or mounts on the host. With cluster.brick-multiplex one process serves several bricks
	-- and its command line names only one: then the inventory must give 'storage'.
	discover = function(host, processes, run)
		local found = {}
		if host.role == "server" then
			for _, p in ipairs(processes) do
				if program(p) == "glusterfsd" then found[#found + 1] = brick(p, run) end
			end
		else
			for line in (run { "cat", "/proc/mounts" } or ""):gmatch("[^\n]+") do
				local source, point, kind = line:match("^(%S+) (%S+) (%S+)")
				if kind == "fuse.glusterfs" then
					local mount = { mount = unescape(point), source = unescape(source), how = "/proc/mounts" }
					-- A mount made from a volume file has no volume; glusterfs prints "(null)" for it.
					local volume = mount.source:match(":/?([^/]+)")
					mount.volume = volume ~= "(null)" and volume or nil
					for _, p in ipairs(processes) do
						if program(p) == "glusterfs" and p.cmdline[#p.cmdline] == mount.mount then mount.pid = p.pid end
					end
					found[#found + 1] = mount
				end
			end
		end
		return found
	end,

	-- The bricks whose command line names the storage folder (--brick-name, set by glusterd), otherwise
	-- all bricks.
	server_pids = function(host, processes)
		local all, mine = {}, {}
		for _, p in ipairs(processes) do
			if program(p) == "glusterfsd" then
				all[#all + 1] = p.pid
				for _, word in ipairs(p.cmdline) do
					if word == host.storage then mine[#mine + 1] = p.pid break end
				end
			end
		end
		return #mine > 0 and mine or all
	end,

	-- File names are hashed over the bricks. With 64 files, all of ten bricks get at least one with a
	-- probability of 99 %.
	probe = function(host)
		return { "sh", "-c", [[set -e
			d=$(mktemp -d "$1/.culprit-probe.XXXXXX")
			trap 'rm -rf "$d"' EXIT
			for i in 0 1 2 3 4 5 6 7; do for k in 0 1 2 3 4 5 6 7; do echo x >"$d/$i$k"; done; done
			]], "sh", host.mount, host.name }
	end,

	-- Asks glusterd, which the lab does without.
	health = function(host)
		return host.role == "server" and { "gluster", "--mode=script", "volume", "status" } or nil
	end,

	-- The process whose last argument is the mount point.
	client_pids = function(host, processes)
		local pids = {}
		for _, p in ipairs(processes) do
			if program(p) == "glusterfs" and p.cmdline[#p.cmdline] == host.mount then
				pids[#pids + 1] = p.pid
			end
		end
		return pids
	end,

	-- Clients connect only to a brick's host address and service_port.
	service = function(host) return host.address, host.service_port end,

	-- Tested with 10.3, distribute, FUSE, and one brick killed by SIGKILL, stopped, or out of address space: a
	-- call that needs a brick without a connection fails with ENOTCONN at once, until the brick is back. The
	-- other errnos did not occur; the kernel may return them for a connection, and client xlators pass them
	-- on. With a stopped brick, calls first wait for network.ping-timeout (42 s), then get ENOTCONN.
	lost_errnos = { "ENOTCONN", "ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "ETIMEDOUT", "EHOSTUNREACH",
	                "ENETUNREACH", "EPIPE" },

	-- Tested in the same way: EROFS, EMFILE, ENOSPC, EFBIG and EINVAL of a brick reach the application
	-- unchanged. A brick without memory (ENOMEM) drops the connection instead, which looks like a lost server.
	errno_map = {},

	-- GlusterFS makes a folder for the first two bytes of its files' ids on demand: with one free inode it makes
	-- the file, fails to make the folder (ENOSPC), and removes the file again.
	empty_storage = { prune = ".glusterfs/*/*", inodes_of_file = 2 },

	-- ONC RPC (RFC 5531) over TCP: a record mark of 4 bytes, whose highest bit ends the record; then xid and kind;
	-- in calls also RPC version 2, program, version and procedure. Program 1298437 carries file operations; the
	-- others carry the handshake, its pings, and notifications from servers to clients. The header of an answer has
	-- no procedure.
	messages = {
		length     = { offset = 0, size = 4, big = true, mask = 0x7fffffff, add = 4 },
		last       = { offset = 0, size = 4, big = true, mask = 0x80000000 },
		longest    = "256MiB",
		id         = { offset = 4, size = 4, big = true },
		kind       = { offset = 8, size = 4, big = true, call = 0, answer = 1 },
		check_call = { offset = 12, size = 4, big = true, value = 2 },
		program    = { offset = 16, size = 4, big = true },
		procedure  = { offset = 24, size = 4, big = true },
		names      = {
			[1298437]   = {
				"STAT", "READLINK", "MKNOD", "MKDIR", "UNLINK", "RMDIR", "SYMLINK", "RENAME", "LINK",
				"TRUNCATE", "OPEN", "READ", "WRITE", "STATFS", "FLUSH", "FSYNC", "SETXATTR",
				"GETXATTR", "REMOVEXATTR", "OPENDIR", "FSYNCDIR", "ACCESS", "CREATE", "FTRUNCATE",
				"FSTAT", "LK", "LOOKUP", "READDIR", "INODELK", "FINODELK", "ENTRYLK", "FENTRYLK",
				"XATTROP", "FXATTROP", "FGETXATTR", "FSETXATTR", "RCHECKSUM", "SETATTR", "FSETATTR",
				"READDIRP", "RELEASE", "RELEASEDIR", "FREMOVEXATTR", "FALLOCATE", "DISCARD",
				"ZEROFILL", "IPC", "SEEK", "LEASE", "GETACTIVELK", "SETACTIVELK", "ICREATE",
				"NAMELINK", "PUT", "COPY_FILE_RANGE",
			},
			[14398633]  = { "SETVOLUME", "GETSPEC", "PING" },
			[52743234]  = { "CBK_FETCHSPEC", "CBK_INO_FLUSH" },
			[123451501] = { "DUMP" },
		},
	},

	-- A brick's io-threads (performance/io-threads) take requests from a queue, call the file system below
	-- (storage/posix), and write the answers.
	layers = {
		{ name = "application", from = "application" },
		{ name = "fuse",        from = "fuse" },
		{ name = "client",      from = "call" },
		{ name = "wire",        from = "wire" },
		{ name = "request",     from = "request" },
		{ name = "io-threads",  from = "waiting" },
		{ name = "posix",       from = "disk" },
		{ name = "posix-meta",  from = "metadata" },
	},

	lab = {
		programs = { glusterfs = "glusterfs-client", glusterfsd = "glusterfs-server" },
		layouts  = {
			{ name = "distribute", summary = "files are split into pieces of 4 MB, each on one server, by hash" },
			{ name = "disperse", servers = 3, summary = "stripes over all servers, one of them redundant" },
		},
		params   = {
			direct = { default = false, help = "bypass the clients' page cache even for programs that do not use "
				.. "O_DIRECT; their requests are then sequential" },
		},
		port     = port,

		-- glusterfsd forks into the background; its foreground process ends when the brick listens.
		start_server = function(node)
			local log = node.dir .. "/log/brick.log"
			node:run({ "mkdir", "-p", "/run/gluster", "/var/log/glusterfs" })
			node:run({ "glusterfsd", "-f", node:write("brick.vol", brick_volume(node)), "-l", log },
				{ log = log, complaint = complaint })
		end,

		-- With "disable" the requests of one O_DIRECT call are sent in parallel, so that a record reaches all
		-- servers at the same time, as in Kasick et al. 2009. With "enable" they are sent sequentially, 128 KB at a
		-- time.
		start_client = function(node, lab)
			local log = node.dir .. "/log/client.log"
			node:run({ "mkdir", "-p", "/run/gluster", "/var/log/glusterfs" })
			node:run({ "glusterfs", "-f", node:write("client.vol", client_volume(lab)), "-l", log,
			           "--direct-io-mode=" .. (lab.params.direct and "enable" or "disable"), node.mount },
				{ log = log, complaint = complaint })
		end,

		ready = function(node, lab)
			for _, server in ipairs(lab.servers) do
				local text = node:read(("%s/.meta/graphs/active/%s/private"):format(node.mount, server.name))
				if not (text and text:find("connected = 1", 1, true)) then
					return nil, ("the client is not connected to '%s'"):format(server.name)
				end
			end
			return true
		end,
	},
}
