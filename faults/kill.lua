-- A server crashes: SIGKILL. The kernel closes its sockets, so clients learn of it at once. All server processes of the
-- victim are killed, with all that they have forked, and later started again in the order in which the file system's own
-- file names them (server_pids).
--
-- GlusterFS 10.3 (distribute, shards of 4 MiB): a client's write to the victim fails with ENOTCONN and dd
-- ends; open of new names that belong to the victim fails with EIO or ENOTCONN. Clients reconnect within 4
-- s of the server's restart, and its data is there.

local culprit = require "culprit"

-- One of the processes that is still there, or nil.
local function survivor(node, pids)
	local lives = {}
	for _, p in ipairs(node:processes()) do lives[p.pid] = p.state ~= "Z" end
	for _, pid in ipairs(pids) do
		if lives[pid] then return pid end
	end
end

---@type culprit.Fault
return {
	summary  = "the victim's server process is killed",
	resource = "service",
	workload_may_fail = true,

	check = function(ctx)
		return culprit.each_server(ctx, "service.kill")
	end,

	inject = function(ctx)
		local pids = ctx.victim.pids
		ctx.state.pids = pids
		for i = #pids, 1, -1 do ctx.victim:kill_service { pid = pids[i] } end
	end,

	-- By effect: the processes are gone.
	verify = function(ctx)
		local pid = survivor(ctx.victim, ctx.state.pids)
		if pid then return nil, ("process %d is there"):format(pid) end
		return { killed = ctx.state.pids }
	end,
}
