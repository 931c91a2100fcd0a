-- A server hangs: its process is stopped (SIGSTOP) with all its threads and all that it has forked, which the agent
-- has seen stopped before 'verify' looks at the process. Its sockets stay open, and the kernel still acknowledges what
-- arrives, so clients see a server that is connected but silent.

-- 'T': stopped; 't': stopped under a tracer.
local function stopped(node)
	local state = {}
	for _, p in ipairs(node:processes()) do state[p.pid] = p.state end
	for _, pid in ipairs(node.pids) do
		if not state[pid] then return nil, ("%s: process %d is gone"):format(node.name, pid) end
		if not state[pid]:match("[Tt]") then
			return nil, ("%s: process %d is in state %s, not stopped"):format(node.name, pid, state[pid])
		end
	end
	return true
end

---@type culprit.Fault
return {
	summary  = "the victim's server process is stopped",
	resource = "service",

	check = function(ctx)
		return ctx.victim:can("signal.stop")
	end,

	inject = function(ctx)
		for _, pid in ipairs(ctx.victim.pids) do ctx.victim:hold { pid = pid } end
	end,

	-- By effect, twice in a row: a traced process that runs may be in state 't' for a moment.
	verify = function(ctx)
		local is, why = stopped(ctx.victim)
		local was = ctx.state.stopped
		ctx.state.stopped = is
		if not is then return nil, why end
		if not was then return nil, "stopped, seen once" end
		return { pids = ctx.victim.pids }
	end,
}
