-- Too few files that the server may have open (001, section 5): EMFILE arises in the server and reaches the
-- application, which takes it for a limit of its own.
--
-- 001 starts the server as an unprivileged user under RLIMIT_NOFILE 50. GlusterFS can do neither: bricks need
-- CAP_SYS_ADMIN for trusted.* attributes, and open 256 folders before they listen (started under 50, one
-- never does). So the soft limit is set while it runs; what is open stays open, and nothing more opens.
--
-- GlusterFS 10.3: openat in the server fails with EMFILE; the client's open(O_CREAT) of a new file on the victim
-- fails with EMFILE ("Too many open files"), at once, every time, and files on other servers work. The brick's own health check
-- (each 30 s) fails too: it then takes itself off, and 30 s later ends itself with SIGTERM, even if the limit has been
-- set back since. So undoing it starts the server again.

---@type culprit.Fault
return {
	summary  = "the victim's server may open too few files",
	resource = "files",
	workload_may_fail = true,
	params   = {
		limit = { default = 50, unit = "number", min = 3, max = 1000000, integer = true,
		          help = "files open at a time (RLIMIT_NOFILE)" },
	},

	check = function(ctx)
		if #ctx.victim.pids ~= 1 then
			return nil, ("%s: %d server processes, there must be one"):format(ctx.victim.name, #ctx.victim.pids)
		end
		return ctx.victim:can("service.limit")
	end,

	inject = function(ctx)
		ctx.state.pid = ctx.victim.pids[1]
		-- Never more than are open: a server that was started lately may have fewer than 50, and would not meet the limit.
		local list = ctx.victim:run { argv = { "ls", "/proc/" .. ctx.state.pid .. "/fd" } }
		local _, open = list.output:gsub("%d+", "")
		ctx.state.limit = open > 0 and math.min(open, ctx.params.limit) or ctx.params.limit
		ctx.victim:limit_service { pid = ctx.state.pid, limits = { nofile = ctx.state.limit } }
	end,

	-- By effect: the limit is in force. That the server dies of it later is what it is for.
	verify = function(ctx)
		local now, why = ctx.victim:limits(ctx.state.pid)
		if not now and ctx.state.acted then return { server = "has died" } end
		if not now then return nil, why end
		if now.nofile.soft ~= ctx.state.limit then
			return nil, ("the limit is %d, not %d"):format(now.nofile.soft, ctx.state.limit)
		end
		ctx.state.acted = true
		return { pid = ctx.state.pid, soft_limit = now.nofile.soft }
	end,
}
