-- A foreign process keeps the victim's processors busy (Dinh 2009, section 6.3.2, the unbalanced
-- experiment). In a lab these are the victim's own if nodes have a share of processor time each
-- ('culprit lab up --cpus'); else the nodes share them, and the fault slows all of them.

local culprit = require "culprit"

---@type culprit.Fault
return {
	summary  = "processors of the victim are kept busy",
	resource = "cpu",
	params   = {
		threads = { default = 0, integer = true, min = 0, max = 1024, help = "busy threads; 0: one for each processor" },
	},

	check = function(ctx)
		return ctx.victim:can("process.start")
	end,

	inject = function(ctx)
		culprit.take_processors(ctx, ctx.params.threads)
	end,

	verify = culprit.processors_taken,
}
