-- GlusterFS: servers run one glusterfsd process per brick, clients one glusterfs process per mount. Both
-- are the same executable; argv[0] tells them apart.

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

-- If glusterd started the brick, its command line has all values. If it was started with -f FILE, the
-- volume file has them.
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

local function unescape(text) -- of /proc/mounts
	return (text:gsub("\\(%d%d%d)", function(octal) return string.char(tonumber(octal, 8)) end))
end

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
					mount.volume = mount.source:match(":/?([^/]+)")
					for _, p in ipairs(processes) do
						if program(p) == "glusterfs" and p.cmdline[#p.cmdline] == mount.mount then mount.pid = p.pid end
					end
					found[#found + 1] = mount
				end
			end
		end
		return found
	end,

	-- The bricks whose command line names the storage folder (--brick-name, set by glusterd), or else all
	-- bricks.
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

	-- File names are hashed over the bricks. With 64 files, each of ten bricks gets one with a probability of
	-- 99 %.
	probe = function(host)
		return { "sh", "-c", [[set -e
			d=$(mktemp -d "$1/.culprit-probe.XXXXXX")
			trap 'rm -rf "$d"' EXIT
			for i in 0 1 2 3 4 5 6 7; do for k in 0 1 2 3 4 5 6 7; do echo x >"$d/$i$k"; done; done
			]], "sh", host.mount, host.name }
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

	-- Clients connect to a brick at its host's address and service_port, and to nothing else.
	service = function(host) return host.address, host.service_port end,

	-- Tested with 10.3, distribute, FUSE, one brick SIGKILLed, stopped, or out of address space: a call that
	-- needs a brick without a connection fails with ENOTCONN at once, until the brick is back. The other
	-- errnos did not occur; the kernel may return them for a connection, and client xlators pass them on. With
	-- a stopped brick no call fails at first: calls wait for network.ping-timeout (42 s), then get ENOTCONN.
	lost_errnos = { "ENOTCONN", "ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "ETIMEDOUT", "EHOSTUNREACH",
	                "ENETUNREACH", "EPIPE" },

	-- Tested in the same way: EROFS, EMFILE, ENOSPC, EFBIG and EINVAL of a brick reach the application
	-- unchanged. A brick without memory (ENOMEM) drops the connection instead: a lost server, not a propagated
	-- error.
	errno_map = {},
}
