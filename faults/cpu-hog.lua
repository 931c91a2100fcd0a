-- A foreign process keeps the victim's processors busy (Dinh 2009, section 6.3.2, the unbalanced
-- experiment). Nodes of a lab share their processors, so there the fault slows all of them.

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
		local argv = { "cpu" }
		if ctx.params.threads > 0 then argv = { "cpu", "--threads", ("%d"):format(ctx.params.threads) } end
		ctx.state.hog = ctx.victim:process { self = true, argv = argv }
	end,

	-- By effect: it has computed for 50 ms since the last look.
	verify = function(ctx)
		local cpu_s, why = culprit.growth(ctx, ctx.state.hog, "cpu_s", 0.05)
		return cpu_s and { cpu_s = cpu_s }, why
	end,
}
