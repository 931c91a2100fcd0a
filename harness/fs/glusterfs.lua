-- GlusterFS: one glusterfsd process a brick on servers, one glusterfs process a mount on clients.
-- Both are the same executable; what it is called as (argv[0]) tells them apart.

---@type culprit.FileSystem
return {
	summary = "GlusterFS (bricks, FUSE clients)",

	-- Bricks that name the storage folder (--brick-name, as glusterd starts them), else all bricks.
	server_pids = function(host, processes)
		local all, mine = {}, {}
		for _, p in ipairs(processes) do
			local program = (p.cmdline[1] or ""):match("[^/]*$")
			if program == "glusterfsd" then
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
			local program = (p.cmdline[1] or ""):match("[^/]*$")
			if program == "glusterfs" and p.cmdline[#p.cmdline] == host.mount then
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
