-- The storage has too little space (Kasick et al. 2009, section 5). The server is restarted on a small file
-- system with the folders of its storage, and of its files only those that it needs to start (empty_storage in the
-- file system's own file).
--
-- GlusterFS 10.3 (distribute): pwrite64 in the server and the client's write fail with ENOSPC ("No space
-- left on device"), and dd ends, once clients have filled the storage: 24 MiB take some 15 s in the lab.
-- Nothing crashes or hangs (PVFS hung in the paper).

local culprit = require "culprit"

---@type culprit.Fault
return {
	summary  = "the victim's storage is small",
	resource = "storage",
	needs    = "loop devices, e2fsprogs",
	storage  = "empty",
	from_start = true,
	workload_may_fail = true,
	params   = {
		size = { default = "256MiB", unit = "bytes", min = "4MiB", max = "1TiB",
		         help = "size of the small file system, besides what a server needs to start" },
	},

	check = function(ctx)
		local storage = culprit.small_storage(ctx, ctx.params.size)
		return culprit.one_server(ctx, "service.restart", { storage = storage })
	end,

	inject = function(ctx)
		ctx.victim:restart_service {
			pid = ctx.victim.pids[1],
			storage = culprit.small_storage(ctx, ctx.params.size),
		}
	end,

	-- By effect: what is free on the file system under the storage folder.
	verify = function(ctx)
		local now = ctx.victim:fs_info(ctx.victim.storage)
		if now.point ~= ctx.victim.storage or now.free_bytes > ctx.params.size then
			return nil, ("%s has %d bytes free"):format(now.point, now.free_bytes)
		end
		return { size_bytes = now.size_bytes, free_bytes = now.free_bytes }
	end,
}
