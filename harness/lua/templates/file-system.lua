-- Describe the file system here: its servers, its clients, and which versions you tested.
--
-- This is a minimal file system: every server offers its storage by sftp; every client mounts all servers with
-- sshfs and merges them with mergerfs, which places whole files at random. It works unchanged (apt-get install
-- sshfs mergerfs socat):
--     culprit lab up --fs ./my-file-system.lua
--     culprit doctor
-- Replace it piece by piece. The manual is harness/fs/README.md; an inventory names the file by its path:
--     file_system = { type = "./my-file-system.lua" }

local PORT = 2022

-- A process is { pid, ppid, comm, exe, cmdline = { "sshfs", ... }, state, start_ticks }.
local function program(p)
	return (p.cmdline[1] or ""):match("[^/]*$")
end

-- Pids of the processes of a program, or only of those with this word in their command line.
local function pids(processes, name, word)
	local found = {}
	for _, p in ipairs(processes) do
		local has = word == nil
		for _, w in ipairs(p.cmdline) do has = has or w == word end
		if program(p) == name and has then found[#found + 1] = p.pid end
	end
	return found
end

local function is_mounted(text, mount) -- text: content of /proc/mounts
	return text:find(" " .. mount .. " fuse.mergerfs ", 1, true) ~= nil
end

---@type culprit.FileSystem
return {
	summary = "files of many sftp servers in one folder (sshfs, mergerfs)",

	-- ---- Which processes are the file system's? They are traced, and faults act on those of a server.
	-- ----

	-- Here one process per connection; socat only starts them.
	server_pids = function(_, processes)
		return pids(processes, "sftp-server")
	end,

	-- All processes between an application and the servers. 'host' is the node of the inventory.
	client_pids = function(host, processes)
		local all = pids(processes, "mergerfs", host.mount)
		table.move(pids(processes, "sshfs"), 1, 64, #all + 1, all)
		return all
	end,

	-- ---- What is on a host? For inventories that omit storage, service_port and mount. Optional. ----

	-- 'run' returns the output of a command on the host, or nil. Only inspect; change nothing.
	discover = function(host, processes, run)
		local found = {}
		if host.role == "server" then
			for _, p in ipairs(processes) do -- socat TCP-LISTEN:2022,fork EXEC:sftp-server -d /srv/storage,nofork
				local words = program(p) == "socat" and table.concat(p.cmdline, " ") or ""
				local port, folder = words:match("TCP%-LISTEN:(%d+).*sftp%-server %-d ([^, ]+)")
				if port then
					found[#found + 1] = { pid = p.pid, storage = folder, service_port = tonumber(port), how = "command line" }
				end
			end
		else
			for point in (run { "cat", "/proc/mounts" } or ""):gmatch("(%S+) fuse%.mergerfs ") do
				found[#found + 1] = { mount = point, how = "/proc/mounts" }
			end
		end
		return found
	end,

	-- The address at which clients reach a server, which identifies its sockets.
	service = function(host) return host.address, host.service_port end,

	-- A command that exits with 0 on a client only if every server works. Limit: 30 s. Write to each server: an
	-- answer from a cache proves nothing. 64 randomly placed files reach each of a few servers.
	probe = function(host)
		return { "sh", "-c", [[set -e
			d=$(mktemp -d "$1/.culprit-probe.XXXXXX")
			trap 'rm -rf "$d"' EXIT
			for i in 0 1 2 3 4 5 6 7; do for k in 0 1 2 3 4 5 6 7; do echo x >"$d/$i$k"; done; done
			]], "sh", host.mount }
	end,

	-- The file system's own command that says how it is, for abort_if of scenarios; nil: not on this host.
	health = function(host) return host.role == "server" and { "df", "-h", host.storage } or nil end,

	-- ---- What do errors mean? 'culprit doctor --learn-errnos' finds out. ----

	-- An application gets these errnos when a server is lost.
	lost_errnos = { "EIO", "ENOTCONN" },

	-- Errno of a server's call -> errnos that an application may see instead: sftp has few error codes.
	errno_map = { EFBIG = { "EIO", "EPERM" }, ENOSPC = { "EIO", "EPERM" }, EROFS = { "EIO", "EPERM" } },

	-- ---- What can faults and workloads do here? ----

	empty_storage = {}, -- a server can start on storage without its files; or a string: why it cannot
	cannot = { kill = "the process of a connection is not restarted" },
	missing = {}, -- unsupported steps of workloads: "hard link", "symbolic link", "truncate", "direct I/O"

	-- ---- How does the lab start it? Not needed for your own hosts. ----

	lab = {
		-- Required programs: program -> Debian package, or a hint of several words.
		programs = { sshfs = "sshfs", mergerfs = "mergerfs", socat = "socat", ["sftp-server"] = "openssh-sftp-server" },
		path     = { "/usr/lib/openssh" },
		layouts  = { { name = "random", summary = "whole files, each on a random server" } },
		params   = { -- culprit lab up --fs ./my-file-system.lua,cache=true
			cache = { default = false, help = "clients keep data in their page cache" },
		},
		port     = PORT,

		-- The functions run as root on the nodes. Order: start_manager on every manager (none here); format, then
		-- start_server on all servers in parallel; start_client on all clients in parallel; ready on each client
		-- until it is true. All are optional. 'node' is the current node; 'lab' has layout, params, servers,
		-- clients, managers.

		-- Returns when the server is ready.
		start_server = function(node)
			node:spawn("server", { "socat", ("TCP-LISTEN:%d,reuseaddr,fork"):format(PORT),
			                       ("EXEC:sftp-server -d %s,nofork"):format(node.storage) })
			node:wait(10, "socat to listen", function()
				local listening = ("00000000:%04X 00000000:0000 0A"):format(PORT)
				return (node:read("/proc/net/tcp") or ""):find(listening, 1, true) ~= nil
			end)
		end,

		start_client = function(node, lab)
			local folders, options = {}, ("directport=%d"):format(PORT)
			if not lab.params.cache then options = options .. ",direct_io" end
			for i, s in ipairs(lab.servers) do
				folders[i] = node.dir .. "/" .. s.name
				node:run { "mkdir", "-p", folders[i] }
				node:spawn(s.name, { "sshfs", "-f", "-o", options, s.address .. ":.", folders[i] })
				node:wait(10, "sshfs to mount " .. s.name, function()
					return (node:read("/proc/mounts") or ""):find(" " .. folders[i] .. " fuse.sshfs", 1, true) ~= nil
				end)
			end
			node:spawn("client", { "mergerfs", "-f", "-o", "category.create=rand,minfreespace=0,fsname=pool",
			                       table.concat(folders, ":"), node.mount })
		end,

		-- True, or nil and what is missing. culprit repeats the call for up to 60 s.
		ready = function(node)
			if not is_mounted(node:read("/proc/mounts") or "", node.mount) then return nil, "not mounted" end
			return true
		end,
	},
}
