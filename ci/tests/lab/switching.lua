-- sftp by servers that root starts and that become another user (ci/tests/helpers/switcher.c), each on a port that only
-- root can take. Beside its mount every client has programs that connect, and close the connection, all the time.

local PORT = 322

-- Pids of a program. Of a server the process that root started, not what it forked for its clients.
local function pids(processes, name)
	local found, own = {}, {}
	for _, p in ipairs(processes) do own[p.pid] = p.comm == name end
	for _, p in ipairs(processes) do
		if own[p.pid] and not own[p.ppid] then found[#found + 1] = p.pid end
	end
	return found
end

---@type culprit.FileSystem
return {
	summary = "files of sftp servers that became another user",
	server_pids = function(_, processes) return pids(processes, "switcher") end,
	client_pids = function(_, processes)
		local all = pids(processes, "mergerfs")
		for _, name in ipairs { "sshfs", "switcher" } do table.move(pids(processes, name), 1, 64, #all + 1, all) end
		return all
	end,
	service = function(host) return host.address, host.service_port end,
	probe = function(host)
		return { "sh", "-c", [[set -e
			d=$(mktemp -d "$1/.culprit-probe.XXXXXX")
			trap 'rm -rf "$d"' EXIT
			for i in 0 1 2 3 4 5 6 7; do for k in 0 1 2 3 4 5 6 7; do echo x >"$d/$i$k"; done; done
			]], "sh", host.mount }
	end,
	lost_errnos = { "EIO", "ENOTCONN" },
	errno_map = { EFBIG = { "EIO", "EPERM" }, ENOSPC = { "EIO", "EPERM" }, EROFS = { "EIO", "EPERM" } },
	empty_storage = {},
	lab = {
		programs = { sshfs = "sshfs", mergerfs = "mergerfs", switcher = "make out/helpers/switcher",
		             ["sftp-server"] = "openssh-sftp-server" },
		path     = { "/usr/lib/openssh", "/var/cache/culprit-switching" },
		layouts  = { { name = "random", summary = "whole files, each on a server drawn at random" } },
		port     = PORT,
		start_server = function(node)
			node:run { "chown", "nobody:nogroup", node.storage }
			node:run { "switcher", tostring(PORT), node.storage }
		end,
		start_client = function(node, lab)
			local folders = {}
			for i, s in ipairs(lab.servers) do
				folders[i] = node.dir .. "/" .. s.name
				node:run { "mkdir", "-p", folders[i] }
				node:spawn(s.name, { "sshfs", "-f", "-o", ("direct_io,reconnect,directport=%d"):format(PORT),
				                     s.address .. ":.", folders[i] })
				node:wait(10, "sshfs to mount " .. s.name, function()
					return (node:read("/proc/mounts") or ""):find(" " .. folders[i] .. " fuse.sshfs", 1, true) ~= nil
				end)
				node:spawn("knock-" .. s.name, { "switcher", "knock", s.address, tostring(PORT) })
			end
			node:spawn("client", { "mergerfs", "-f", "-o", "category.create=rand,minfreespace=0,fsname=pool",
			                       table.concat(folders, ":"), node.mount })
		end,
		ready = function(node)
			if not (node:read("/proc/mounts") or ""):find(" " .. node.mount .. " fuse.mergerfs ", 1, true) then
				return nil, "it is not mounted"
			end
			return true
		end,
	},
}
