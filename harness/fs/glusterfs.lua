-- GlusterFS: one glusterfsd process a brick on servers, one glusterfs process a mount on clients.
-- Both are the same executable; what it is called as (argv[0]) tells them apart.

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

-- Ports at which process 'pid' listens, any address: its sockets' inodes in the kernel's tables.
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

-- Started by glusterd, a brick's command line says all. Started by hand (-f FILE), its volume file does.
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

	-- What serves, or is mounted, there. With cluster.brick-multiplex one process has several bricks, and its
	-- command line names one: give 'storage' then.
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

	-- Bricks that name the storage folder (--brick-name, as glusterd starts them), else all bricks.
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

	-- Names are hashed over the bricks: of 64, each of ten bricks has one but for once in a hundred.
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

	-- Clients speak to a brick at its host's address and service_port; their sockets lead nowhere else.
	service = function(host) return host.address, host.service_port end,

	-- Tried with 10.3, distribute, FUSE, one brick SIGKILLed, stopped, or out of address space: a call that needs
	-- a brick whose connection is gone fails with ENOTCONN, at once and until it is back. The rest never came
	-- up there; they are what the kernel may say of a connection, and client xlators hand it on.
	-- A stopped brick fails nothing: calls wait (for network.ping-timeout, 42 s, and then ENOTCONN).
	lost_errnos = { "ENOTCONN", "ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "ETIMEDOUT", "EHOSTUNREACH",
	                "ENETUNREACH", "EPIPE" },

	-- Tried likewise: EROFS, EMFILE, ENOSPC, EFBIG and EINVAL of a brick reach the application as they are. A brick
	-- that can get no memory (ENOMEM) drops the connection instead: that is a lost server, not a propagated error.
	errno_map = {},
}
