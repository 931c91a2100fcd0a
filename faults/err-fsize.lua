-- Files of the server may not grow beyond a size (001, section 5, RLIMIT_FSIZE): in PVFS a write in the server
-- fails with EFBIG, and SIGXFSZ ends the server.
--
-- GlusterFS 10.3: its I/O threads block all signals, so SIGXFSZ stays pending and the server goes on. pwrite64 fails
-- with EFBIG in the server, and the client's write with EFBIG ("File too large"); dd ends. With features/shard no
-- file on a brick is larger than a piece (4 MiB in the lab): the limit must be below that to be met.

---@type culprit.Fault
return {
	summary  = "files of the victim's server may not grow beyond a size",
	resource = "files",
	workload_may_fail = true,
	params   = {
		limit = { default = "128MiB", unit = "bytes", min = "4KiB", max = "1TiB",
		          help = "largest file that the server may write (RLIMIT_FSIZE)" },
	},

	check = function(ctx)
		if #ctx.victim.pids ~= 1 then
			return nil, ("%s: %d server processes, there must be one"):format(ctx.victim.name, #ctx.victim.pids)
		end
		return ctx.victim:can("service.limit")
	end,

	inject = function(ctx)
		ctx.state.pid = ctx.victim.pids[1]
		ctx.victim:limit_service { pid = ctx.state.pid, limits = { fsize = ctx.params.limit } }
	end,

	-- By effect: the limit is in force. That the server dies of it later is what it is for.
	verify = function(ctx)
		local now, why = ctx.victim:limits(ctx.state.pid)
		if not now and ctx.state.acted then return { server = "has died" } end
		if not now then return nil, why end
		if now.fsize.soft ~= ctx.params.limit then
			return nil, ("the limit is %d, not %d"):format(now.fsize.soft, ctx.params.limit)
		end
		ctx.state.acted = true
		return { pid = ctx.state.pid, soft_limit = now.fsize.soft }
	end,
}
