-- A rogue process on the server (Kasick et al. 2009, section 5): the victim connects to a host that is
-- neither server nor client and sends it zeros, which compete with the data that clients read.

local culprit = require "culprit"

---@type culprit.Fault
return {
	summary  = "the victim sends zeros to a port of the first outsider",
	resource = "network/hog",
	needs    = "an outsider",
	params   = {
		port    = { default = 47200, integer = true, min = 1024, max = 60000,
		            help = "port for the first server's zeros; the k-th server's go to the (k-1)-th port after it" },
		senders = { default = 1, integer = true, min = 1, max = 64, help = "connections" },
		share   = { default = "100%", unit = "percent", min = "1%", max = "100%",
		            help = "share of the time in which each connection sends" },
	},

	check = culprit.has_outsider,

	-- Several victims send to one outsider: each has a port of its own.
	inject = function(ctx)
		local port = ctx.params.port
		for i, server in ipairs(ctx.servers) do
			if server.name == ctx.victim.name then port = port + i - 1 end
		end
		culprit.send_zeros(ctx, ctx.victim, ctx.outsiders[1], port)
	end,

	verify = culprit.zeros_arrive,
}
