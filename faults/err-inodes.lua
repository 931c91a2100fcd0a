-- Storage with few inodes for its size (001, section 5): new files fail with ENOSPC though there is space.
-- The server is restarted on a small file system that holds the folders of its storage, but none of its files.
--
-- GlusterFS 10.3 (distribute): some 280 inodes are taken from the start (.glusterfs has a folder for each of 256 first
-- bytes), more with every folder, and a new file takes up to two more; so 800 to 1700 of 2048 are left for new files.
-- For a cell of seconds set 'spare': 40 let some twenty files be made. When none is left, mkdirat and mknodat in the
-- server fail with ENOSPC, and the client's open(O_CREAT) of a new file on the victim with ENOSPC, at once. A file in a
-- folder that could not be made on the victim any more fails with ESTALE. Nothing crashes.

---@type culprit.Fault
return {
	summary  = "the victim's storage has few inodes",
	resource = "storage",
	needs    = "loop devices, e2fsprogs",
	from_start = true,
	workload_may_fail = true,
	params   = {
		inodes = { default = 2048, unit = "number", min = 300, max = 100000000, integer = true,
		           help = "inodes of the small file system" },
		spare  = { default = 0, unit = "number", min = 0, max = 100000000, integer = true,
		           help = "if not 0: so many are free at first, instead of 'inodes' in all" },
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
			storage = { path = ctx.victim.storage, size_bytes = ctx.params.size,
			            inodes = ctx.params.inodes, spare_inodes = ctx.params.spare,
			            prune = ".glusterfs/*/*" },
		}
	end,

	-- By effect: what the file system under the storage folder says of itself.
	verify = function(ctx)
		local now = ctx.victim:fs_info(ctx.victim.storage)
		-- mkfs rounds inodes up to whole blocks of them.
		local most = ctx.params.spare > 0 and ctx.params.spare + 64 or ctx.params.inodes * 2
		if now.point ~= ctx.victim.storage or now.free_inodes > most
			or now.size_bytes > ctx.params.size then
			return nil, ("%s has %d inodes and %d bytes"):format(now.point, now.inodes, now.size_bytes)
		end
		return { inodes = now.inodes, free_inodes = now.free_inodes, size_bytes = now.size_bytes }
	end,
}
