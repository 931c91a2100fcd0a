-- Too little address space for the server (001, section 5, RLIMIT_AS): in PVFS mmap fails with ENOMEM, and the server
-- aborts.
--
-- GlusterFS 10.3: a brick maps 260 MB before it has a client, 800 to 1100 MB once clients are connected. Started under 300,000
-- kB it listens, but no client can connect any more (EIO, ENOTCONN). So the limit is set while it runs: mmap, brk and new
-- threads fail with ENOMEM. It goes on for some requests, and then drops the client's connection: the write fails
-- with ENOTCONN. The process survives.

---@type culprit.Fault
return {
	summary  = "the victim's server gets no more memory",
	resource = "memory",
	workload_may_fail = true,
	params   = {
		limit = { default = "300000KiB", unit = "bytes", min = "1MiB", max = "1TiB", help = "address space of the server (RLIMIT_AS)" },
	},

	check = function(ctx)
		if #ctx.victim.pids ~= 1 then
			return nil, ("%s: %d server processes, there must be one"):format(ctx.victim.name, #ctx.victim.pids)
		end
		return ctx.victim:can("service.limit")
	end,

	inject = function(ctx)
		ctx.state.pid = ctx.victim.pids[1]
		ctx.victim:limit_service { pid = ctx.state.pid, limits = { as = ctx.params.limit } }
	end,

	-- By effect: the limit is in force. That the server dies of it later is what it is for.
	verify = function(ctx)
		local now, why = ctx.victim:limits(ctx.state.pid)
		if not now and ctx.state.acted then return { server = "has died" } end
		if not now then return nil, why end
		if now.as.soft ~= ctx.params.limit then
			return nil, ("the limit is %d, not %d"):format(now.as.soft, ctx.params.limit)
		end
		ctx.state.acted = true
		return { pid = ctx.state.pid, soft_limit = now.as.soft }
	end,
}
