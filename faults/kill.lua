-- A server crashes: SIGKILL. The kernel closes its sockets, so clients learn of it at once.
--
-- GlusterFS 10.3 (distribute, shards of 4 MiB): a client's write to the victim fails with ENOTCONN and dd
-- ends; open of new names that belong to the victim fails with EIO or ENOTCONN. Clients reconnect within 4
-- s of the server's restart, and its data is there.

local culprit = require "culprit"

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
		return culprit.one_server(ctx, "service.kill")
	end,

	inject = function(ctx)
		ctx.state.pid = ctx.victim.pids[1]
		ctx.victim:kill_service { pid = ctx.state.pid }
	end,

	-- By effect: the process is gone.
	verify = function(ctx)
		if alive(ctx.victim, ctx.state.pid) then return nil, ("process %d is there"):format(ctx.state.pid) end
		return { killed = ctx.state.pid }
	end,
}
