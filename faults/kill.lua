-- A server that crashes: SIGKILL. Its sockets are closed by the kernel, so clients hear of it at once.
--
-- GlusterFS 10.3 (distribute, pieces of 4 MiB): a client's write to the victim fails with ENOTCONN and
-- dd ends; new names that belong to the victim fail with EIO or ENOTCONN at open. Clients find the server again
-- within 4 s of its start, and what was on it is there.

local function alive(node, pid)
	for _, p in ipairs(node:processes()) do
		if p.pid == pid and p.state ~= "Z" then return true end
	end
	return false
end

---@type culprit.Fault
return {
	summary  = "the victim's server process is killed",
	resource = "service",
	workload_may_fail = true,

	check = function(ctx)
		if #ctx.victim.pids ~= 1 then
			return nil, ("%s: %d server processes, there must be one"):format(ctx.victim.name, #ctx.victim.pids)
		end
		return ctx.victim:can("service.kill")
	end,

	inject = function(ctx)
		ctx.state.pid = ctx.victim.pids[1]
		ctx.victim:kill_service { pid = ctx.state.pid }
	end,

	-- By effect: it is gone, and nothing listens in its place.
	verify = function(ctx)
		if alive(ctx.victim, ctx.state.pid) then return nil, ("process %d is there"):format(ctx.state.pid) end
		return { killed = ctx.state.pid }
	end,
}
