-- Storage with few inodes for its size (001, section 5): new files fail with ENOSPC though there is space.
-- The server is restarted on a small file system that holds the folders of its storage, but none of its files.
--
-- GlusterFS 10.3 (distribute): 280 inodes are taken from the start (.glusterfs has a folder for each of 256 first bytes, and
-- each new file takes up to two more), so some 800 of 2048 new files fit, and a cell that is to see the error wants fewer
-- inodes or many files.

---@type culprit.Fault
return {
	summary  = "the victim's storage has few inodes",
	resource = "storage",
	from_start = true,
	workload_may_fail = true,
	params   = {
		inodes = { default = 2048, unit = "number", min = 300, max = 100000000, integer = true,
		           help = "inodes of the small file system" },
		size   = { default = "8MiB", unit = "bytes", min = "2MiB", max = "1TiB", help = "its size" },
	},

	check = function(ctx)
		if #ctx.victim.pids ~= 1 then
			return nil, ("%s: %d server processes, there must be one"):format(ctx.victim.name, #ctx.victim.pids)
		end
		return ctx.victim:can("service.restart")
	end,

	inject = function(ctx)
		-- GlusterFS makes a folder for every two first bytes of its files' ids when it needs it.
		ctx.victim:restart_service {
			pid = ctx.victim.pids[1],
			storage = { path = ctx.victim.storage, size_bytes = ctx.params.size, inodes = ctx.params.inodes,
			            prune = ".glusterfs/*/*" },
		}
	end,

	-- By effect: what the file system under the storage folder says of itself.
	verify = function(ctx)
		local now = ctx.victim:fs_info(ctx.victim.storage)
		-- mkfs rounds inodes up to whole blocks of them.
		if now.point ~= ctx.victim.storage or now.inodes > ctx.params.inodes * 2 or now.size_bytes > ctx.params.size then
			return nil, ("%s has %d inodes and %d bytes"):format(now.point, now.inodes, now.size_bytes)
		end
		return { inodes = now.inodes, free_inodes = now.free_inodes, size_bytes = now.size_bytes }
	end,
}
