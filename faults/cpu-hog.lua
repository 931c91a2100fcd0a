-- A server that computes for somebody else (002, section 6.3.2, the unbalanced experiment: all processors of
-- one node kept busy). Nodes of a lab share their processors: there it slows all of them.

---@type culprit.Fault
return {
	summary  = "processors of the victim are kept busy",
	resource = "cpu",
	params   = {
		threads = { default = 0, integer = true, min = 0, max = 1024, help = "busy threads; 0: one a processor" },
	},

	check = function(ctx)
		return ctx.victim:can("process.start")
	end,

	inject = function(ctx)
		local argv = { "cpu" }
		if ctx.params.threads > 0 then argv = { "cpu", "--threads", ("%d"):format(ctx.params.threads) } end
		ctx.state.hog = ctx.victim:process { self = true, argv = argv }
	end,

	-- By effect: it has computed since the last look.
	verify = function(ctx)
		local now = ctx.state.hog:status()
		local before = ctx.state.cpu_s or 0
		ctx.state.cpu_s = now.cpu_s
		if not now.running then return nil, "the hog has ended (exit " .. tostring(now.exit) .. ")" end
		if now.cpu_s < before + 0.05 then
			return nil, ("the hog has computed for %.2f s, not 50 ms since the last look"):format(now.cpu_s)
		end
		return { cpu_s = now.cpu_s }
	end,
}
