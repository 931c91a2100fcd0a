-- Too little space for the server's data (001, section 5).
-- The server is restarted on a small file system that holds the folders of its storage, but none of its files.
--
-- GlusterFS 10.3 (distribute): pwrite64 in the server fails with ENOSPC, the client's write with ENOSPC ("No space left on
-- device"), and dd ends. It takes the time that clients need to fill it: 24 MiB in the lab some 15 s. Nothing crashes or
-- hangs (in 001, PVFS hung).

---@type culprit.Fault
return {
	summary  = "the victim's storage is small",
	resource = "storage",
	needs    = "loop devices, e2fsprogs",
	from_start = true,
	workload_may_fail = true,
	params   = {
		size = { default = "256MiB", unit = "bytes", min = "4MiB", max = "1TiB", help = "size of the small file system" },
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
			            prune = ".glusterfs/*/*" },
		}
	end,

	-- By effect: what the file system under the storage folder says of itself.
	verify = function(ctx)
		local now = ctx.victim:fs_info(ctx.victim.storage)
		if now.point ~= ctx.victim.storage or now.size_bytes > ctx.params.size then
			return nil, ("%s has %d bytes"):format(now.point, now.size_bytes)
		end
		return { size_bytes = now.size_bytes, free_bytes = now.free_bytes }
	end,
}
