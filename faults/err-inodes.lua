-- The storage has few inodes for its size (Kasick et al. 2009, section 5): new files fail with ENOSPC
-- though there is space. The server is restarted on a small file system with the folders of its storage, and
-- of its files only those that it needs to start (empty_storage in the file system's own file).
--
-- GlusterFS 10.3 (distribute): some 280 inodes are used from the start (.glusterfs has a folder for each of
-- 256 first bytes), more with every folder, and a new file uses up to two; so 800 to 1700 of 2048 are left
-- for new files. For a cell of seconds set 'spare': with 40, about twenty files can be made. Then mkdirat
-- and mknodat in the server fail with ENOSPC, and so does the client's open(O_CREAT) of a new file on the
-- victim, at once. A file in a folder that could not be made on the victim fails with ESTALE. Nothing
-- crashes.

local culprit = require "culprit"

local function small(ctx)
	local inodes, spare = ctx.params.inodes, ctx.params.spare
	return culprit.small_storage(ctx, ctx.params.size, { inodes = inodes, spare_inodes = spare })
end

---@type culprit.Fault
return {
	summary  = "the victim's storage has few inodes",
	resource = "storage",
	needs    = "loop devices, e2fsprogs",
	storage  = "empty",
	from_start = true,
	workload_may_fail = true,
	params   = {
		inodes = { default = 2048, unit = "number", min = 300, max = 100000000, integer = true,
		           help = "inodes of the small file system" },
		spare  = { default = 0, unit = "number", min = 0, max = 100000000, integer = true,
		           help = "if not 0: inodes that are free at first, in place of 'inodes'" },
		size   = { default = "8MiB", unit = "bytes", min = "2MiB", max = "1TiB",
		           help = "its size, besides what a server needs to start" },
	},

	check = function(ctx)
		return culprit.one_server(ctx, "service.restart", { storage = small(ctx) })
	end,

	inject = function(ctx)
		ctx.victim:restart_service { pid = ctx.victim.pids[1], storage = small(ctx) }
	end,

	-- By effect: the properties of the file system under the storage folder. mkfs rounds inodes up to whole
	-- blocks. At the end of the phase they must have run out, or be too few for a file: else nothing has failed that
	-- could be noticed.
	verify = function(ctx)
		local now = ctx.victim:fs_info(ctx.victim.storage)
		local most = ctx.params.spare > 0 and ctx.params.spare + 64 or ctx.params.inodes * 2
		if now.point ~= ctx.victim.storage or now.free_inodes > most or now.free_bytes > ctx.params.size then
			return nil, ("%s has %d inodes and %d bytes free"):format(now.point, now.free_inodes, now.free_bytes)
		end
		if ctx.state.seen and now.free_inodes >= (ctx.file_system.empty_storage.inodes_of_file or 1) then
			return nil, ("inodes that are still free: %d; the workload made too few files; use a smaller 'spare' or a longer " ..
				"phase"):format(now.free_inodes)
		end
		ctx.state.seen = true
		return { inodes = now.inodes, free_inodes = now.free_inodes, free_bytes = now.free_bytes }
	end,
}
