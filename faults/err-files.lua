-- The server may open too few files (Kasick et al. 2009, section 5): EMFILE arises in the server and
-- reaches the application, which takes it for a limit of its own.
--
-- In the paper the server is started as an unprivileged user under RLIMIT_NOFILE 50. GlusterFS allows
-- neither: bricks need CAP_SYS_ADMIN for trusted.* attributes, and open 256 folders before they listen. So
-- the soft limit is set while the server runs: open files stay open, and no further ones can be opened.
--
-- GlusterFS 10.3: openat in the server fails with EMFILE, and so does the client's open(O_CREAT) of a new
-- file on the victim, at once and every time; files on other servers work. The brick's health check (every
-- 30 s) fails too: the brick goes offline and, 30 s later, ends itself with SIGTERM, even if the limit has
-- been reset. So the undo restarts the server.

local culprit = require "culprit"

-- At most as many as are open: a server that was started lately may have fewer than 50, and would not reach
-- the limit.
local function limit(ctx)
	local least = ctx.params.limit
	for _, pid in ipairs(ctx.victim.pids) do
		local list = ctx.victim:run { argv = { "ls", "/proc/" .. pid .. "/fd" } }
		local _, open = list.output:gsub("%d+", "")
		if open > 2 then least = math.min(least, open) end
	end
	return least
end

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
		return culprit.each_server(ctx, "service.limit", { limits = { nofile = limit(ctx) } })
	end,

	inject = function(ctx)
		culprit.limit_server(ctx, "nofile", limit(ctx))
	end,

	verify = culprit.limit_holds,
}
