-- A rogue sender (Kasick et al. 2009, section 5): a host that is neither server nor client connects to a
-- port of the victim and sends zeros, which compete with the data that clients write.

local culprit = require "culprit"

---@type culprit.Fault
return {
	summary  = "the first outsider sends zeros to a port of the victim",
	resource = "network/hog",
	needs    = "an outsider",
	params   = {
		port    = { default = 47200, integer = true, min = 1024, max = 65535, help = "port that takes the zeros" },
		senders = { default = 1, integer = true, min = 1, max = 64, help = "connections" },
		share   = { default = "100%", unit = "percent", min = "1%", max = "100%",
		            help = "share of the time in which each connection sends" },
	},

	check = culprit.has_outsider,

	inject = function(ctx)
		culprit.send_zeros(ctx, ctx.outsiders[1], ctx.victim, ctx.params.port)
	end,

	verify = culprit.zeros_arrive,
}
